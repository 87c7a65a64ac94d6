"""The methods of Java's classes that agents call, on what stands for those classes in Python.

What a class of Python has under the same name comes first: `GetMethodID(cls, "toString", ...)` is Python's `toString`
where the class has one, and `Object.toString` as written here where it has none. Only of `threading.Thread` it is the
other way round: its `getName` is deprecated, and its `join` takes seconds.
"""

from __future__ import annotations

import time
from threading import Thread
from types import ModuleType

from vmscope import terminal
from vmscope.tool.functions import thread_queries
from vmscope.tool.functions.classes import is_array, is_interface
from vmscope.tool.jni import java_system, jthreads
from vmscope.tool.jni.names import class_name, find_class
from vmscope.tool.jni.text import length
from vmscope.tool.model import introspection, threads
from vmscope.tool.model.threads import ThreadGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Klass = type | ModuleType
    T = TypeVar("T")


# -- Object ---------------------------------------------------------------------------------------


def to_string(thing: object) -> str:
    return str(thing)


def hash_code(thing: object) -> int:
    return int32(hash(thing))


def equals(thing: object, other: object) -> bool:
    return bool(thing == other)


def get_class(thing: object) -> type:
    return type(thing)


def int32(number: int) -> int:
    """Its lowest 32 bits, as Java's int has them."""
    return (number & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000


# -- Class ----------------------------------------------------------------------------------------


def class_get_simple_name(klass: Klass) -> str:
    return class_name(klass).rpartition(".")[2].rpartition("$")[2]


def class_to_string(klass: Klass) -> str:
    return f"{'interface' if class_is_interface(klass) else 'class'} {class_name(klass)}"


def class_is_instance(klass: Klass, thing: object) -> bool:
    return introspection.is_a(klass, type) and isinstance(thing, klass)


def class_is_interface(klass: Klass) -> bool:
    return introspection.is_a(klass, type) and is_interface(klass)


def class_is_array(klass: Klass) -> bool:
    return introspection.is_a(klass, type) and is_array(klass)


def class_get_superclass(klass: Klass) -> type | None:
    return next(iter(introspection.bases(klass)), None) if introspection.is_a(klass, type) else None


def class_get_class_loader(klass: Klass) -> None:
    return None


def class_get_module(klass: Klass) -> ModuleType | None:
    return introspection.module_of(klass) if introspection.is_a(klass, type) else klass  # type: ignore[return-value]


def class_for_name(name: str) -> Klass:
    return find_class(name.replace(".", "/"))


# -- String ---------------------------------------------------------------------------------------


def string_length(text: str) -> int:
    return length(text)


def string_get_bytes(text: str, charset: str = "utf-8") -> bytearray:
    return bytearray(text.encode(charset, "replace"))


def string_new(value: object = "", charset: str = "utf-8") -> str:
    return bytes(value).decode(charset, "replace") if isinstance(value, bytes | bytearray) else str(value)


# -- boxes ----------------------------------------------------------------------------------------


def value(box: object) -> object:
    return box


def number_value(box: float) -> int:
    """As Java's casts of a float to an int: towards zero."""
    return int(box)


def float_value(box: float) -> float:
    return float(box)


def value_of_int(given: str | int) -> int:
    return int(given)


def value_of_bool(given: str | bool) -> bool:
    return given.lower() == "true" if isinstance(given, str) else bool(given)


def value_of_float(given: str | float) -> float:
    return float(given)


def value_of_string(given: object) -> str:
    return str(given)


# -- Thread, ThreadGroup --------------------------------------------------------------------------


def of_program(thread: Thread) -> threads.Thread:
    own = jthreads.thread_of(thread)
    assert isinstance(own, threads.Thread)
    return own


def thread_new(*given: object) -> Thread:
    """Takes a group, something to run, which an agent gives to RunAgentThread, and a name."""
    name = next((each for each in reversed(given) if isinstance(each, str)), None)
    thread = threads.Thread(name=threads.new_name() if name is None else name)
    thread.group = next((each for each in given if isinstance(each, ThreadGroup)), threads.MAIN)
    thread.daemon = False  # until it is an agent's that runs
    return jthreads.object_of(thread)


def thread_get_name(thread: Thread) -> str:
    return of_program(thread).name


def thread_set_name(thread: Thread, name: str) -> None:
    of_program(thread).rename(name)


def thread_get_id(thread: Thread) -> int:
    return of_program(thread).id


def thread_is_alive(thread: Thread) -> bool:
    return of_program(thread).alive


def thread_is_daemon(thread: Thread) -> bool:
    return of_program(thread).is_daemon


def thread_set_daemon(thread: Thread, on: bool) -> None:
    """An agent's thread is one anyway; of a thread that runs Java changes nothing either."""
    if of_program(thread).started:
        raise RuntimeError(f"{thread!r} runs")
    thread.daemon = on


def thread_get_priority(thread: Thread) -> int:
    return 5


def thread_set_priority(thread: Thread, priority: int) -> None:
    if not 1 <= priority <= 10:
        raise ValueError(f"a priority is from 1 to 10, not {priority}")


def thread_get_thread_group(thread: Thread) -> ThreadGroup | None:
    own = of_program(thread)
    return None if own.started and not own.alive else thread_queries.group_of(own)


def thread_is_interrupted(thread: Thread) -> bool:
    return of_program(thread).interrupted


def thread_resume(thread: Thread) -> None:
    """Deprecated in Java since 1.2, and gone in 23; agents look for it to set a breakpoint there."""
    raise NotImplementedError("a thread is resumed by the tool interface")


def thread_join(thread: Thread, millis: int = 0) -> None:
    thread.join(millis / 1000 if millis else None)


def thread_current() -> Thread:
    return jthreads.object_of(threads.current())


def thread_sleep(millis: int) -> None:
    time.sleep(millis / 1000)


def thread_yield() -> None:
    time.sleep(0)


def group_get_name(group: ThreadGroup) -> str:
    return group.name


def group_get_parent(group: ThreadGroup) -> ThreadGroup | None:
    return group.parent


def group_new(*given: object) -> ThreadGroup:
    parent = next((each for each in given if isinstance(each, ThreadGroup)), threads.MAIN)
    return ThreadGroup(next((each for each in given if isinstance(each, str)), ""), parent)


# -- Throwable ------------------------------------------------------------------------------------


def throwable_get_message(error: BaseException) -> str | None:
    return str(error) if error.args else None


def throwable_to_string(error: BaseException) -> str:
    text = str(error)
    return f"{class_name(type(error))}{': ' if text else ''}{text}"


def throwable_get_cause(error: BaseException) -> BaseException | None:
    return error.__cause__


def throwable_print_stack_trace(error: BaseException) -> None:
    import traceback

    terminal.ERR.show("".join(traceback.format_exception(error)))


# -- collections ----------------------------------------------------------------------------------


def put(table: dict[object, object], key: object, to: object) -> object:
    before = table.get(key)
    table[key] = to
    return before


def contains_key(table: dict[object, object], key: object) -> bool:
    return key in table


def size(things: list[object]) -> int:
    return len(things)


def is_empty(things: list[object]) -> bool:
    return not things


def contains(things: list[object], thing: object) -> bool:
    return thing in things


def list_add(things: list[object], thing: object) -> bool:
    things.append(thing)
    return True


def list_get(things: list[object], place: int) -> object:
    if place < 0:
        raise IndexError(f"no element has the index {place}")
    return things[place]


def set_add(things: set[object], thing: object) -> bool:
    before = len(things)
    things.add(thing)
    return len(things) > before


COLLECTION: dict[str, Callable[..., object]] = {"size": size, "isEmpty": is_empty, "contains": contains}

# By class: what an object's methods do, which get the object first.
METHODS: dict[type, dict[str, Callable[..., object]]] = {
    object: {"toString": to_string, "hashCode": hash_code, "equals": equals, "getClass": get_class},
    type: {
        "getName": class_name,
        "getTypeName": class_name,
        "getSimpleName": class_get_simple_name,
        "toString": class_to_string,
        "isInstance": class_is_instance,
        "isInterface": class_is_interface,
        "isArray": class_is_array,
        "getSuperclass": class_get_superclass,
        "getClassLoader": class_get_class_loader,
        "getModule": class_get_module,
    },
    ModuleType: {"getName": class_name},
    str: {"length": string_length, "getBytes": string_get_bytes, "intern": value, "charValue": value},
    bool: {"booleanValue": value},
    int: dict.fromkeys(("byteValue", "shortValue", "intValue", "longValue"), value)
    | dict.fromkeys(("floatValue", "doubleValue"), float_value),
    float: dict.fromkeys(("byteValue", "shortValue", "intValue", "longValue"), number_value)
    | dict.fromkeys(("floatValue", "doubleValue"), float_value),
    list: {**COLLECTION, "add": list_add, "get": list_get},
    set: {**COLLECTION, "add": set_add},
    dict: {
        "size": size,
        "isEmpty": is_empty,
        "containsKey": contains_key,
        "put": put,
        "setProperty": put,
        "getProperty": dict.get,
    },
    Thread: {
        "getName": thread_get_name,
        "setName": thread_set_name,
        "getId": thread_get_id,
        "threadId": thread_get_id,
        "isAlive": thread_is_alive,
        "isDaemon": thread_is_daemon,
        "setDaemon": thread_set_daemon,
        "getPriority": thread_get_priority,
        "setPriority": thread_set_priority,
        "getThreadGroup": thread_get_thread_group,
        "isInterrupted": thread_is_interrupted,
        "resume": thread_resume,
        "join": thread_join,
    },
    ThreadGroup: {"getName": group_get_name, "getParent": group_get_parent},
    BaseException: {
        "getMessage": throwable_get_message,
        "getLocalizedMessage": throwable_get_message,
        "toString": throwable_to_string,
        "getCause": throwable_get_cause,
        "printStackTrace": throwable_print_stack_trace,
    },
    **java_system.METHODS,
}

STATIC: dict[type, dict[str, Callable[..., object]]] = {
    type: {"forName": class_for_name},
    str: {"valueOf": value_of_string},
    bool: {"valueOf": value_of_bool, "parseBoolean": value_of_bool},
    int: {"valueOf": value_of_int, "parseInt": value_of_int, "parseLong": value_of_int},
    float: {"valueOf": value_of_float, "parseDouble": value_of_float, "parseFloat": value_of_float},
    Thread: {"currentThread": thread_current, "sleep": thread_sleep, "yield": thread_yield},
    **java_system.STATIC,
}

# What makes an object, where that is not a call of the class
CONSTRUCTORS: dict[type, Callable[..., object]] = {Thread: thread_new, ThreadGroup: group_new, str: string_new}


def of_class(table: dict[type, T], klass: object) -> T | None:
    """What a table has for a class. Not by its hash, which may be the program's own, or missing."""
    return next((entry for each, entry in table.items() if each is klass), None)
