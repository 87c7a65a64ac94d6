"""Python.asyncio_tasks: the tasks of every event loop, their stacks, what each awaits, and who awaits whom: a tree."""

from __future__ import annotations

import gc
import sys
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType

from vmscope import own_threads
from vmscope.commands import _layout as layout
from vmscope.commands.registry import Command
from vmscope.terminal import printable
from vmscope.tool.model.blocking_analysis import attribute
from vmscope.tool.model.thread_snapshot import Turns, kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

    from vmscope.commands.registry import Output

REGISTRIES = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")  # of asyncio.tasks, by version
WRAPPED = ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow")  # which do not say what they await
SYNCHRONIZERS = ("asyncio.locks.", "asyncio.queues.")
DEEPEST = 1000  # frames of a task, and of tasks that await each other


class Task:
    """One task that is not done, as of now."""

    __slots__ = ("awaiters", "awaits", "frames", "loop", "name", "on", "task")

    def __init__(self, task: Any, spelt: layout.Frames) -> None:
        base: Any = sys.modules["asyncio"].Task
        self.task = task
        self.name = printable(str(base.get_name(task)))
        self.loop = base.get_loop(task)
        self.frames: list[str] = []  # the outermost first
        self.on: object = None  # what it awaits, where that is not a task
        self.awaits: list[Any] = []
        self.awaiters = 0
        waiter = attribute_of(task, "_fut_waiter")
        for frame in coroutine_frames(base.get_coro(task)):
            code = frame.f_code
            self.frames.append(spelt(code, frame.f_lasti))
            self.awaits += grouped(frame)
            if code.co_filename.startswith(folder()) and code.co_argcount:
                first = frame.f_locals.get(code.co_varnames[0])
                if kind(first).startswith(SYNCHRONIZERS):
                    self.on = first
        if waiter is not None:
            self.awaits += awaited(waiter)
            self.on = self.on or waiter


def attribute_of(thing: Any, name: str) -> Any:
    """Of a future or task of asyncio's, in C or in Python."""
    found: Any = attribute(thing, name)
    return found.__get__(thing) if kind(found) == "builtins.getset_descriptor" else found


def folder() -> str:
    return str(sys.modules["asyncio"].__file__).rpartition("__init__")[0]


def coroutine_frames(awaitable: Any) -> Iterator[FrameType]:
    """From a coroutine on through what it awaits; of one that runs now only its own."""
    for _ in range(DEEPEST):
        if isinstance(awaitable, CoroutineType):
            frame, awaitable = awaitable.cr_frame, awaitable.cr_await
        elif isinstance(awaitable, GeneratorType):
            frame, awaitable = awaitable.gi_frame, awaitable.gi_yieldfrom
        elif isinstance(awaitable, AsyncGeneratorType):
            frame, awaitable = awaitable.ag_frame, awaitable.ag_await
        elif type(awaitable).__name__ in WRAPPED:
            inner = (CoroutineType, AsyncGeneratorType)
            awaitable = next((each for each in gc.get_referents(awaitable) if isinstance(each, inner)), None)
            continue
        else:
            return
        if frame is not None:
            yield frame


def grouped(frame: FrameType) -> list[Any]:
    """The tasks that a frame of asyncio waits for together."""
    code = frame.f_code
    if not code.co_filename.startswith(folder()):
        return []
    found: Any = None
    if code.co_qualname in ("TaskGroup.__aexit__", "TaskGroup._aexit"):
        found = attribute(frame.f_locals.get("self"), "_tasks")
    elif code.co_qualname == "_wait":
        found = frame.f_locals.get("fs")
    elif code.co_qualname == "wait_for":
        found = [frame.f_locals.get("fut")]
    return [*found] if isinstance(found, (set, list)) else []


def awaited(future: Any) -> list[Any]:
    """The tasks behind a future: itself, what is gathered in it, what it shields."""
    children = attribute(future, "_children")
    if isinstance(children, list):
        return list(children)
    found = [future]
    for callback, *_ in attribute_of(future, "_callbacks") or ():
        if isinstance(callback, FunctionType) and callback.__qualname__ == "shield.<locals>._outer_done_callback":
            names = zip(callback.__code__.co_freevars, callback.__closure__ or (), strict=False)
            found += [cell.cell_contents for name, cell in names if name == "inner"]
    return found


def all_tasks(turn: Callable[[], None]) -> list[Task]:
    """Those that are not done, by name."""
    asyncio = sys.modules.get("asyncio")
    library = sys.modules.get("asyncio.tasks")
    if asyncio is None or library is None:
        return []
    known: dict[int, Any] = {}
    for name in REGISTRIES:
        tasks = vars(library).get(name, ())
        for each in [*getattr(tasks, "data", tasks)]:  # a copy in one go: a WeakSet's own iteration is not
            task = each() if hasattr(tasks, "data") else each
            if task is not None:
                known[id(task)] = task
    if sys.version_info >= (3, 14):  # which keeps them by thread
        for loop in running_loops():
            known.update((id(task), task) for task in library.all_tasks(loop))
    spelt = layout.Frames(turn)
    found: dict[int, Task] = {}
    for number, task in known.items():
        turn()
        if issubclass(type(task), asyncio.Task) and not asyncio.Task.done(task):
            found[number] = Task(task, spelt)
    for each in found.values():
        turn()
        awaits = {id(task): found[id(task)] for task in each.awaits if id(task) in found}
        each.awaits = sorted(awaits.values(), key=by_name)
        if each.awaits:
            each.on = None
        for other in each.awaits:
            other.awaiters += 1
    return sorted(found.values(), key=by_name)


def by_name(task: Task) -> tuple[int, str]:
    """Task-9 before Task-10."""
    return len(task.name), task.name


def running_loops() -> list[Any]:
    """By the frames that run them."""
    base: Any = sys.modules["asyncio"].AbstractEventLoop
    loops: dict[int, Any] = {}
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if frame.f_code.co_name == "run_forever" and frame.f_code.co_argcount:
                loop = frame.f_locals.get(frame.f_code.co_varnames[0])
                if issubclass(type(loop), base):
                    loops[id(loop)] = loop
            frame = frame.f_back
    return [*loops.values()]


def thread_of(loop: Any) -> str:
    """Where it runs."""
    ident = attribute(loop, "_thread_id")
    threading = own_threads.threading_module()
    thread = None if threading is None else threading._active.get(ident)
    if thread is not None:
        return f'runs in thread "{printable(str(thread._name))}"'
    return "does not run" if ident is None else f"runs in thread 0x{ident:016x}"


def lines_of(tasks: list[Task]) -> Iterator[str]:
    """By loop, each with the tree of its tasks: who is awaited stands below who awaits."""
    loops: dict[int, list[Task]] = {}
    for each in tasks:
        loops.setdefault(id(each.loop), []).append(each)
    for own in loops.values():
        count = f"{len(own)} task{'s' if len(own) > 1 else ''}"
        yield f"Event loop {layout.thing(own[0].loop)} {thread_of(own[0].loop)}: {count}\n"
        shown: set[int] = set()
        roots = [each for each in own if not each.awaiters]
        for root in roots:
            yield from tree(root, shown)
        for each in own:  # those that only await each other
            if id(each) not in shown:
                yield from tree(each, shown)
        yield "\n"


def tree(root: Task, shown: set[int]) -> Iterator[str]:
    """A task, its frames, the outermost first, and below the innermost the tasks that it awaits."""
    todo: list[tuple[Task, str, str]] = [(root, "", "")]
    while todo:
        task, before, after = todo.pop()
        state = "" if task.awaits or task.on is not None else ", to run"
        if id(task) in shown:
            yield f'{before}"{task.name}" {layout.thing(task.task)}: shown above\n'
            continue
        shown.add(id(task))
        yield f'{before}"{task.name}" {layout.thing(task.task)}{state}\n'
        indent = after + " "
        for frame in task.frames:
            yield f"{indent}   at {frame}\n"
        if task.on is not None:
            yield f"{indent}   - waiting on {layout.thing(task.on)}\n"
        last = len(task.awaits) - 1
        for at in range(last, -1, -1):
            mark, bar = ("└── ", "    ") if at == last else ("├── ", "│   ")
            todo.append((task.awaits[at], f"{indent}   {mark}", f"{indent}   {bar}"))


def write(out: Output, turn: Callable[[], None]) -> None:
    tasks = all_tasks(turn)
    for text in lines_of(tasks):
        out.write(text)
        turn()


def run(out: Output) -> None:
    if "asyncio" not in sys.modules:
        out.write("asyncio is not loaded\n")
        return
    write(out, Turns())


COMMANDS = (
    Command(
        "Python.asyncio_tasks",
        "The tasks of every event loop, their stacks, what each awaits, and who awaits whom.",
        run,
        impact="Medium: Depends on the number of tasks.",
    ),
)
