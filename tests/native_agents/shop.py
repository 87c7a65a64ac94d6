"""As shop/Basket.java has it."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Able(ABC):
    @abstractmethod
    def act(self) -> None: ...


class Basket:
    class Line:
        pass

    all = 12

    def __init__(self, word: str = "nothing", count: int = 0) -> None:
        self.word = word
        self.count = count

    def total(self) -> int:
        return self.count * 2

    def name(self) -> str:
        return "basket"

    @staticmethod
    def price(pieces: int) -> int:
        return pieces * 3

    def fail(self, why: str) -> int:
        raise RuntimeError(why)

    @classmethod
    def mixed(
        cls, z: bool, b: int, c: str, s: int, i: int, j: int, f: float, d: float, text: str,
        a1: float, a2: float, a3: float, a4: float, a5: float, a6: float, j1: int, j2: int, j3: int, last: float,
    ) -> float:  # fmt: skip
        near = (z and 1) + b + ord(c) + s + i + j + f + d + len(text)
        far = a1 * 10 + a2 * 100 + a3 * 1000 + a4 * 10000 + a5 * 100000 + a6 * 1000000
        return near + far + j1 + j2 * 2 + j3 * 3 + last

    def __str__(self) -> str:
        return f"{self.word} {self.count}"


class Crate(Basket):
    def __init__(self) -> None:
        super().__init__(count=5)

    def name(self) -> str:
        return "crate"
