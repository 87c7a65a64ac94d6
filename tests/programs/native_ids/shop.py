class Shop:
    def __init__(self):
        self.sold = 0

    def sell(self, count):
        return count

    @staticmethod
    def close(hour):
        return hour


class Stall(Shop):
    pass


def run():
    stall = Stall()
    stall.sell(1)
    Shop.close(2)
