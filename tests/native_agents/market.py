"""A small market, line for line what market/Basket.java is: examples/native's agents look at both, lines and all."""

from __future__ import annotations

import gc
import sys
import threading
import time


class Empty(Exception):
    """Nothing is in the basket."""


class Basket:
    gate = threading.Condition()
    arrived = False

    def __init__(self) -> None:
        self.prices: list[int] = []

    def add(self, article: int, other: Basket | None) -> int:
        price = article * 3
        self.prices.append(price)
        return price

    def total(self) -> int:
        if not self.prices:
            raise Empty
        return sum(self.prices)

    @staticmethod
    def ask(basket: Basket) -> int:
        try:
            return basket.total()
        except Empty:
            return 0

    @staticmethod
    def find(word: str) -> int:
        try:
            return int(word)
        except ValueError:
            raise Empty from None

    @staticmethod
    def look() -> None:
        """The agents look at the heap here."""

    @staticmethod
    def fill(count: int) -> list[Basket]:
        baskets: list[Basket] = []
        while len(baskets) < count:
            baskets.append(Basket())
            baskets[-1].add(len(baskets), baskets[0])
        return baskets

    @staticmethod
    def sell() -> None:
        baskets = Basket.fill(10)
        Basket.look()
        del baskets[4:]
        gc.collect()
        Basket.look()
        baskets += Basket.fill(2)
        Basket.look()
        Basket.ask(baskets[0])
        Basket.ask(Basket())

    @staticmethod
    def serve() -> None:
        with Basket.gate:
            Basket.arrived = True
            Basket.gate.notify_all()
            while Basket.arrived:
                Basket.gate.wait()

    @staticmethod
    def carry() -> None:
        time.sleep(600)

    @staticmethod
    def open() -> None:
        threading.Thread(target=Basket.serve, name="clerk", daemon=True).start()
        threading.Thread(target=Basket.carry, name="porter", daemon=True).start()
        with Basket.gate:
            while not Basket.arrived:
                Basket.gate.wait()
        print("open", flush=True)
        sys.stdin.readline()

    @staticmethod
    def main(words: list[str]) -> None:
        Basket.sell()
        try:
            Basket.find("apple")
        except Empty:
            gc.collect()
        for _ in range(4):
            gc.collect()
        if words:
            Basket.open()
