import os
import warnings

warnings.simplefilter("ignore")


def step():
    pass


def fork_here():
    pass


def fork_again():
    pass


step()
fork_here()
fork_again()
child = os.fork()
step()
if child:
    print("python's", os.waitpid(child, 0)[1], flush=True)
