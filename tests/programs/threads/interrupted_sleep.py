import threading
import time

from vmscope.tool import Capability, vm

env = vm().get_env()
env.add_capabilities({Capability.CAN_SIGNAL_THREAD})
main = env.get_current_thread()
asleep = threading.Event()


def interrupt():
    asleep.wait()
    time.sleep(0.1)  # it sleeps by now, which nothing tells
    env.interrupt_thread(main)


threading.Thread(target=interrupt).start()
try:
    asleep.set()
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
