import cart  # type: ignore[import-not-found]
import pytest


@pytest.mark.parametrize("number", range(6))
def test_add(number):
    made = cart.Cart()
    if number % 3 == 0:
        with pytest.raises(ValueError):
            made.add(number)
    else:
        assert made.add(number) == number


def test_total():
    assert cart.fill(cart.Cart()).total() == 27
