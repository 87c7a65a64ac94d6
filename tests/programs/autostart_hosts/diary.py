import os


def agent_on_load(vm, options):
    say(options, "load")


def agent_on_unload(vm):
    say(os.environ["DIARY"], "unload")


def say(path, word):
    with open(path, "a") as diary:
        diary.write(f"{os.getpid()} {word}\n")
