class Cart:
    def __init__(self):
        self.items = []

    def add(self, number):
        if number % 3 == 0:
            raise ValueError(number)
        self.items.append(number)
        return number

    def total(self):
        found = 0
        for item in self.items:
            found += item
        return found


def numbers(count):
    try:
        for number in range(count):  # noqa: UP028
            yield number
    finally:
        done = True  # noqa: F841


def fill(cart):
    for number in numbers(10):
        try:
            cart.add(number)
        except ValueError:
            pass
    if cart is None:
        print("never")
    return cart
