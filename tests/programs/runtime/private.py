import os

import vmscope
from tests.programs.sandbox import answer
from vmscope.wire.decode import decode

OPTIONS: list[str]  # what it is started with
import logging


class Records(logging.Handler):
    def emit(self, record):
        records.append((record.levelname, record.name, record.getMessage()))


records = []
logging.getLogger("vmscope").addHandler(Records())
logging.getLogger("vmscope").setLevel(logging.DEBUG)
early = vmscope.counter("test.early")
early.inc()
vmscope.start("-XX:+PerfDataSaveToFile", *OPTIONS)  # noqa: F821
counter, gauge = vmscope.counter("test.counter"), vmscope.gauge("test.gauge")
text, constant = vmscope.text("test.text"), vmscope.constant("test.constant", 7)


def use():
    for number in (early, counter):
        number.inc()
    gauge.set(-3)
    text.set("x")
    return early.value, counter.value, gauge.value, text.value, constant.value


running = use()
status = vmscope.status()
pid = os.fork()
if pid == 0:
    early.add(5)
    os._exit(early.value)  # type: ignore[arg-type]
child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
vmscope.stop()
try:
    with open(f"hsperfdata_{os.getpid()}", "rb") as file:
        data = file.read()
    saved = decode(data).values(data)
except FileNotFoundError:
    saved = None  # type: ignore[assignment]
answer(
    path=status.path,
    reason=status.reason,
    used=status.used,
    attach_reason=status.attach_reason,
    running=running,
    stopped=use(),
    child=child,
    records=records,
    saved=saved,
)
