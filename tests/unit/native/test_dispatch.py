"""An event dispatcher, in C and in Python: who is called, in which order, and what becomes of what they raise."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

from tests.implementations import both

OWN = "/somewhere/own/"


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


class Env:
    """What of an environment an event dispatcher sees."""

    def __init__(self) -> None:
        self.failures: dict[int, int] = {}
        self.failed_with: list[BaseException] = []

    def failed(self, event: int, error: BaseException) -> None:
        self.failures[event] = self.failures.get(event, 0) + 1
        self.failed_with.append(error)


class Here:
    """A thread."""

    ended = 0

    def end(self) -> None:
        self.ended += 1


HERE = Here()
Calls = list[tuple[object, ...]]


def here() -> Here:
    return HERE


def row(
    env: Env, callback: Callable[..., object], threads: tuple[object, ...] | None = None, failing: bool = False
) -> tuple[Env, Callable[..., object], tuple[object, ...] | None, bool]:
    return env, callback, threads, failing


def code_in(filename: str) -> CodeType:
    return compile("0", filename, "eval")


CODE = code_in("/elsewhere/module.py")


@pytest.mark.parametrize(
    ("shape", "given", "told"),
    [
        ("entry", (CODE, 0), (CODE,)),
        ("return", (CODE, 4, "value"), (CODE, False, "value")),
        ("unwind", (CODE, 4, ValueError), (CODE, True, None)),
        ("plain", (CODE, 4, 1, 2, 3, 4), (CODE, 4, 1, 2, 3, 4)),
        ("plain", (), ()),
    ],
)
def test_what_a_shape_makes_of_the_arguments(
    native: Any, shape: str, given: tuple[object, ...], told: tuple[object, ...]
) -> None:
    calls: Calls = []
    dispatcher, env = native.EventDispatcher(65, shape, here, OWN), Env()
    dispatcher.listen((row(env, lambda *arguments: calls.append(arguments)),))
    assert dispatcher(*given) is None
    assert calls == [(env, HERE, *told)]


def test_nobody_listens(native: Any) -> None:
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    assert dispatcher(CODE, 0) is None
    dispatcher.listen(())
    assert dispatcher(CODE, 0) is None


def test_listeners_are_called_in_their_order(native: Any) -> None:
    calls: list[int] = []
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen(tuple(row(Env(), lambda *_, number=number: calls.append(number)) for number in range(5)))
    dispatcher(CODE, 0)
    assert calls == [0, 1, 2, 3, 4]


def test_anything_that_can_be_called_may_listen(native: Any) -> None:
    class Counts:
        def __init__(self) -> None:
            self.count = 0

        def __call__(self, *_: object) -> None:
            self.count += 1

        def method(self, *_: object) -> None:
            self.count += 10

    calls: list[object] = []
    counts = Counts()
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(Env(), counts), row(Env(), counts.method), row(Env(), calls.append, ())))
    dispatcher(CODE, 0)
    assert counts.count == 11


def test_the_threads_that_somebody_listens_to(native: Any) -> None:
    calls: list[str] = []
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(Env(), lambda *_: calls.append("other"), (Here(),)),))
    dispatcher(CODE, 0)
    assert calls == []
    dispatcher.listen(
        (
            row(Env(), lambda *_: calls.append("other"), (Here(), Here())),
            row(Env(), lambda *_: calls.append("here"), (Here(), HERE)),
            row(Env(), lambda *_: calls.append("all")),
        )
    )
    dispatcher(CODE, 0)
    assert calls == ["here", "all"]


def test_each_thread_is_asked_for_its_own(native: Any) -> None:
    local = threading.local()
    told: list[object] = []

    def current() -> Here:
        if not hasattr(local, "here"):
            local.here = Here()
        found: Here = local.here
        return found

    dispatcher = native.EventDispatcher(65, "entry", current, OWN)
    dispatcher.listen((row(Env(), lambda env, thread, code: told.append(thread)),))

    def run() -> None:
        for _ in range(10):
            dispatcher(CODE, 0)
            assert told[-1] is current()

    for _ in range(4):  # one after the other: a thread that follows has its ident, but not its Thread
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(told) == 40
    assert len({id(each) for each in told}) == 4


def test_a_thread_that_has_left_sends_nothing(native: Any) -> None:
    told: list[object] = []
    ended: list[int] = []

    def run() -> None:
        mine = Here()
        dispatcher = native.EventDispatcher(65, "entry", lambda: mine, OWN)
        dispatcher.listen((row(Env(), lambda *_: told.append(mine)),))
        dispatcher(CODE, 0)
        native.leave_thread(mine)
        dispatcher(CODE, 0)
        ended.append(mine.ended)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert (len(told), ended) == (1, [1])


def test_own_code_is_passed_over(native: Any) -> None:
    told: list[object] = []
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(Env(), lambda env, thread, code: told.append(code.co_filename)),))
    names = ["/somewhere/own/a.py", "/somewhere/own/b/c.py", "/somewhere/owner/a.py", "/somewhere/own/", "x", "ä/ö", ""]
    for name in names:
        dispatcher(code_in(name), 0)
    assert told == ["/somewhere/owner/a.py", "x", "ä/ö", ""]


def test_own_code_in_a_folder_that_is_not_ascii(native: Any) -> None:
    told: list[object] = []
    dispatcher = native.EventDispatcher(65, "return", here, "/ä/")
    dispatcher.listen((row(Env(), lambda env, thread, code, *_: told.append(code.co_filename)),))
    for name in ("/ä/a.py", "/ä/€.py", "/a/a.py", "/\u20ac/ä/"):
        dispatcher(code_in(name), 0, None)
    assert told == ["/a/a.py", "/\u20ac/ä/"]


def test_what_a_callback_raises_goes_to_its_environment(native: Any) -> None:
    calls: list[str] = []
    bad, good = Env(), Env()
    error = ValueError("not for the program")

    def raises(*_: object) -> None:
        raise error

    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(bad, raises), row(good, lambda *_: calls.append("good"))))
    dispatcher(CODE, 0)
    dispatcher(CODE, 0)
    assert bad.failed_with == [error, error]
    assert bad.failures == {65: 2}
    assert calls == ["good", "good"]
    assert good.failures == {}


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, StopIteration, MemoryError, BaseException])
def test_whatever_it_is(native: Any, kind: type[BaseException]) -> None:
    env = Env()

    def raises(*_: object) -> None:
        raise kind

    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(env, raises),))
    dispatcher(CODE, 0)
    assert [type(error) for error in env.failed_with] == [kind]


def test_an_interrupt_is_the_programs_and_the_others_are_still_called(native: Any) -> None:
    calls: list[str] = []
    env = Env()

    def raises(*_: object) -> None:
        raise KeyboardInterrupt("first" if not calls else "second")

    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(env, raises), row(env, lambda *_: calls.append("called")), row(env, raises)))
    with pytest.raises(KeyboardInterrupt, match="first"):
        dispatcher(CODE, 0)
    assert calls == ["called"]
    assert env.failures == {}


def test_what_an_environment_raises_again_is_the_programs(native: Any) -> None:
    calls: list[str] = []
    error = TimeoutError()

    class Hands(Env):
        def failed(self, event: int, error: BaseException) -> None:
            raise error

    def raises(*_: object) -> None:
        raise error

    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(Hands(), raises), row(Env(), lambda *_: calls.append("called"))))
    with pytest.raises(TimeoutError) as found:
        dispatcher(CODE, 0)
    assert found.value is error
    assert calls == ["called"]


def test_a_call_that_went_well_forgets_failures(native: Any) -> None:
    env = Env()
    fails = [True, True, False, True]

    def sometimes(*_: object) -> None:
        if fails.pop(0):
            raise ValueError

    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(env, sometimes),))
    counts = []
    for _ in range(4):
        dispatcher(CODE, 0)
        counts.append(env.failures.get(65, 0))
    assert counts == [1, 2, 0, 1]
    dispatcher.listen((row(env, lambda *_: None, None, True),))  # as after a change of listeners
    dispatcher(CODE, 0)
    assert env.failures == {}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_environment_that_cannot_even_log(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Env):
        def failed(self, event: int, error: BaseException) -> None:
            raise RuntimeError("no log")

    def raises(*_: object) -> None:
        raise ValueError

    seen: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: seen.append(str(unraisable.exc_value)))
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(Broken(), raises),))
    dispatcher(CODE, 0)
    assert seen == ["no log"]


def test_the_default_hook_is_told_too(
    native: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It takes nothing but what CPython itself makes."""

    class Broken(Env):
        def failed(self, event: int, error: BaseException) -> None:
            raise RuntimeError("no log")

    def raises(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("sys.unraisablehook", sys.__unraisablehook__)
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)
    dispatcher.listen((row(Broken(), raises),))
    dispatcher(CODE, 0)
    told = capfd.readouterr().err
    assert told.startswith("Exception ignored in")
    assert told.endswith("RuntimeError: no log\n")


def test_listeners_that_change_while_they_are_called(native: Any) -> None:
    calls: list[str] = []
    first, second, third = Env(), Env(), Env()
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)

    def changes(*_: object) -> None:
        calls.append("first")
        dispatcher.listen(
            (
                row(first, changes),
                row(Env(), lambda *_: calls.append("new: not for this event")),
                row(third, lambda *_: calls.append("third, another callback")),
            )
        )

    dispatcher.listen(
        (
            row(first, changes),
            row(second, lambda *_: calls.append("second: gone by now")),
            row(third, lambda *_: calls.append("third")),
        )
    )
    dispatcher(CODE, 0)
    assert calls == ["first", "third, another callback"]


def test_a_listener_that_takes_everything_away(native: Any) -> None:
    calls: list[int] = []
    dispatcher = native.EventDispatcher(65, "entry", here, OWN)

    def ends(*_: object) -> None:
        calls.append(1)
        dispatcher.listen(())

    dispatcher.listen((row(Env(), ends), row(Env(), lambda *_: calls.append(2))))
    dispatcher(CODE, 0)
    dispatcher(CODE, 0)
    assert calls == [1]


def test_a_relay_within_a_relay(native: Any) -> None:
    calls: list[object] = []
    dispatcher = native.EventDispatcher(65, "plain", here, OWN)

    def again(env: Env, thread: Here, depth: int) -> None:
        calls.append(depth)
        if depth < 3:
            dispatcher(depth + 1)

    dispatcher.listen((row(Env(), again),))
    dispatcher(0)
    assert calls == [0, 1, 2, 3]


def test_what_is_no_relay(native: Any) -> None:
    with pytest.raises(ValueError, match="shape"):
        native.EventDispatcher(65, "square", here, OWN)
    with pytest.raises(ValueError, match="folder"):
        native.EventDispatcher(65, "entry", here, "")
    dispatcher = native.EventDispatcher(65, "return", here, OWN)
    with pytest.raises(TypeError):
        dispatcher.listen([])
    with pytest.raises(TypeError):
        dispatcher.listen((row(Env(), print, [1]),))  # type: ignore[arg-type]
    for arguments in ((), (CODE, 0), (CODE,) * 7):
        with pytest.raises(TypeError):
            dispatcher(*arguments)


# -- chains ---------------------------------------------------------------------------------------


def test_a_chain_calls_each_and_gives_the_last_answer(native: Any) -> None:
    calls: Calls = []
    chain = native.HandlerChain((lambda *given: calls.append(("one", *given)), lambda *given: ("two", *given)), OWN)
    assert chain(CODE, 4, 5) == ("two", CODE, 4, 5)
    assert calls == [("one", CODE, 4, 5)]
    assert chain(code_in(f"{OWN}a.py"), 4) is None
    assert native.HandlerChain((), OWN)(CODE) is None


def test_a_chain_for_some_code_only(native: Any) -> None:
    def generator() -> Any:
        yield

    generators = 0x20
    chain = native.HandlerChain((lambda *_: "called",), OWN, generators)
    assert chain(generator.__code__) == "called"
    assert chain(CODE) is None
    assert chain("no code") is None


def test_what_a_handler_raises_stays_in_the_chain(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: seen.append(str(unraisable.exc_value)))

    def raises(*_: object) -> None:
        raise ValueError("kept")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    assert native.HandlerChain((lambda *_: 1, raises), OWN)(CODE) is None
    assert native.HandlerChain((raises, lambda *_: 1), OWN)(CODE) == 1
    with pytest.raises(KeyboardInterrupt):
        native.HandlerChain((interrupted, raises, interrupted, lambda *_: 1), OWN)(CODE)
    assert seen == ["kept"] * 3


def test_a_chain_that_is_dropped_while_it_runs(native: Any) -> None:
    chains: list[Any] = []
    chains.append(native.HandlerChain((lambda *_: chains.clear(), lambda *_: "done"), OWN))
    assert chains[0](CODE) == "done"


def test_what_is_no_chain(native: Any) -> None:
    with pytest.raises(TypeError):
        native.HandlerChain([], OWN)
    with pytest.raises(ValueError, match="folder"):
        native.HandlerChain((), "")
    with pytest.raises(TypeError):
        native.HandlerChain((), OWN)()


def test_after_a_call(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Calls = []
    unraisable: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda found: unraisable.append(str(found.exc_value)))

    def function(*arguments: object, **named: object) -> object:
        return len(arguments), named

    after = native.After(function, lambda *given: seen.append(given))
    assert after(1, 2, three=3) == (2, {"three": 3})
    assert seen == [((2, {"three": 3}), 1, 2)]
    assert after.__wrapped__ is function
    assert repr(after) == repr(function)
    assert native.After(function, lambda result: "other")() == "other"
    assert native.After(function, lambda result: 1 / 0)() == (0, {})
    assert unraisable == ["division by zero"]
    with pytest.raises(TypeError):
        native.After(len, print)()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native.After(function, interrupted)()


def test_before_a_call(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    unraisable: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda found: unraisable.append(str(found.exc_value)))
    after = native.After(lambda *given: seen.append("function"), None, lambda *given: seen.append(given))
    assert after(1) is None
    assert seen == [(1,), "function"]
    assert native.After(len, None, lambda _: 1 / 0)("four") == 4
    assert unraisable == ["division by zero"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native.After(seen.clear, None, interrupted)()
    assert seen


def test_after_a_method(native: Any) -> None:
    class Owner:
        def method(self, value: int) -> int:
            return value + 1

    seen: Calls = []
    Owner.method = native.After(Owner.method, lambda *given: seen.append(given))  # type: ignore[method-assign]
    owner = Owner()
    assert owner.method(1) == 2
    assert seen == [(2, owner, 1)]
    assert Owner.method(owner, 2) == 3


def test_a_local_variable(native: Any) -> None:
    value = 7
    frame = sys._getframe()
    assert native.variable(frame, "value") == value
    with pytest.raises(NameError):
        native.variable(frame, "nothing")


# -- threads at once ------------------------------------------------------------------------------


def test_threads_at_once_lose_nothing(native: Any) -> None:
    """Four threads send while another changes who listens: each event comes once to the one who always listens."""
    counts = dict.fromkeys(range(4), 0)
    steady, guest = Env(), Env()
    dispatcher = native.EventDispatcher(65, "plain", threading.current_thread, OWN)

    def count(env: Env, thread: object, number: int) -> None:
        counts[number] += 1

    listeners = (row(steady, count),)
    dispatcher.listen(listeners)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            dispatcher.listen((row(guest, lambda *_: None), *listeners))
            dispatcher.listen(listeners)

    def send(number: int) -> None:
        for _ in range(5_000):
            dispatcher(number)

    changer = threading.Thread(target=change)
    senders = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in (changer, *senders):
        thread.start()
    for thread in senders:
        thread.join()
    stop.set()
    changer.join()
    assert counts == dict.fromkeys(range(4), 5_000)
