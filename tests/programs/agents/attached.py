from vmscope import tool

agent = tool.load_agent("loud", "a=b")
print(tool.vm().agents, len(tool.vm().environments), tool.vm().environments[0].agent, flush=True)
tool.unload_agent(agent)
print(tool.vm().agents, len(tool.vm().environments), flush=True)
try:
    tool.unload_agent(agent)
except RuntimeError as error:
    print(error, flush=True)
tool.load_agent("loud")
