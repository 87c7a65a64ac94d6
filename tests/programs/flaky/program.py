import pytest

runs = []


@pytest.fixture
def value():
    runs.append("set up")
    yield 1
    runs.append("torn down")


@pytest.mark.flaky(reason="a thread may come first")
def test_once(value):
    assert runs.count("set up") == 2, "too early"


@pytest.mark.flaky(reason="never mended")
def test_always():
    assert not "reached"


@pytest.mark.flaky(reason="rarely")
def test_right(value):
    assert value == 1


@pytest.mark.flaky(condition=False, reason="elsewhere")
def test_elsewhere():
    assert not "reached"


def test_plain():
    assert not "reached"


def test_order():
    assert runs == ["set up", "torn down"] * 3
