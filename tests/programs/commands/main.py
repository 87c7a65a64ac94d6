import _thread
import io
import sys

from vmscope import commands

assert "threading" not in sys.modules


def run(out):
    import threading

    out.write(threading.current_thread().name)


commands.register(commands.Command("T.first", "Imports.", run))
done = _thread.allocate_lock()
done.acquire()


def work():
    commands.execute("T.first", io.StringIO())
    done.release()


_thread.start_new_thread(work, ())
done.acquire()
import os
import threading

main = threading.main_thread()
print(
    main is threading.current_thread(),
    main.ident == _thread.get_ident(),
    main.native_id == os.getpid(),
    threading.enumerate() == [main],
    main.is_alive(),
)
late = threading.Thread(target=lambda: (main.join(), print("joined")))  # type: ignore[func-returns-value]
late.start()
