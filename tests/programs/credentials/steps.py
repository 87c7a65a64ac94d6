from vmscope.commands import registry


def walk(out):
    out.write("begun\n")
    out.flush()
    try:
        while True:
            yield
    finally:
        ended.append(True)


ended = []
registry.register(registry.Command("Test.walk", "Has no end.", walk))
