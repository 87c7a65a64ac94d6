"""A shop in Flask that counts what it does, for gunicorn; docs/five-minutes.md walks through it.

    vmscope run -XX:Instrument=gunicorn -m gunicorn --chdir examples --workers 4 flask_service:app

Each worker counts for itself, and is a VM of its own in `vmscope ps`.
"""

from __future__ import annotations

import time

from flask import Flask, abort

import vmscope

orders = vmscope.counter("shop.orders", units=vmscope.Units.EVENTS)
pricing = vmscope.histogram("shop.pricing", bounds=[0.001, 0.005, 0.02, 0.1])  # seconds
known = vmscope.gauge("shop.prices.known")

app = Flask(__name__)
prices: dict[int, int] = {}


@app.get("/order/<int:article>")
def order(article: int) -> dict[str, int]:
    if article >= 1000:
        abort(404)
    with pricing.time():
        price = prices.get(article) or ask_for_price(article)
    orders.labels(size="large" if price > 500 else "small").inc()
    return {"article": article, "price": price}


def ask_for_price(article: int) -> int:
    time.sleep(0.01)  # a database, far away
    prices[article] = 1 + article * 7919 % 1000
    known.set(len(prices))
    return prices[article]
