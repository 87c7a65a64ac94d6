import signal


class Stop(Exception):
    pass


def handler(number, frame):
    raise Stop


def in_jvmti():
    print("never")


def in_jni():
    print("never")


def in_wait():
    print("never")


for action, kind in ((handler, Stop), (signal.default_int_handler, KeyboardInterrupt)):
    signal.signal(signal.SIGUSR1, action)
    for function in (in_jvmti, in_jni, in_wait):
        try:
            function()
        except kind as error:
            print(repr(error), flush=True)
