import sys

from cart import Cart, fill  # type: ignore[import-not-found]

from vmscope import tool

cart = Cart()
cart.add(1)
agents = [tool.load_agent("vmscope.agents.exceptions") for _ in sys.argv[1:]]
fill(cart)
for agent in agents:
    tool.unload_agent(agent)
print(cart.total(), len(agents))
