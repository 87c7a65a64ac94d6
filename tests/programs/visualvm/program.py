class Line:
    def __init__(self, number):
        self.number, self.text = number, f"line {number}"


class Order:
    def __init__(self, number):
        self.name, self.lines = f"order \u20ac {number}", [Line(each) for each in range(10)]


class Rush(Order):
    __slots__ = ("until",)


orders = [Order(number) for number in range(30)] + [Rush(number) for number in range(5)]
