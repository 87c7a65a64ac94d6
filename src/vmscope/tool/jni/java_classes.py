"""The classes of Java that agents ask for by name, and the classes of Python that stand for them."""

from __future__ import annotations

import sys
from threading import Thread
from types import ModuleType
from typing import Any

from vmscope.tool.model.threads import ThreadGroup


class System:
    """java/lang/System: static methods only."""


class Runtime:
    """java/lang/Runtime."""


class VMSupport:
    """jdk/internal/vm/VMSupport: the properties that agents tell others of."""


class Field:
    """java/lang/reflect/Field: a field of a class, by its name."""

    __slots__ = ("klass", "name")

    def __init__(self, klass: type | ModuleType, name: str) -> None:
        self.klass = klass
        self.name = name


_loaders: Any = sys.modules["_frozen_importlib_external"]

CLASSES: dict[str, type] = {
    "java/lang/Object": object,
    "java/lang/String": str,
    "java/lang/CharSequence": str,
    "java/lang/Class": type,
    "java/lang/Module": ModuleType,
    "java/lang/ClassLoader": _loaders.FileLoader,
    "java/lang/Thread": Thread,
    "java/lang/ThreadGroup": ThreadGroup,
    "java/lang/System": System,
    "java/lang/Runtime": Runtime,
    "java/lang/Boolean": bool,
    "java/lang/Byte": int,
    "java/lang/Short": int,
    "java/lang/Integer": int,
    "java/lang/Long": int,
    "java/lang/Character": str,
    "java/lang/Float": float,
    "java/lang/Double": float,
    "java/lang/Iterable": list,
    "java/lang/reflect/Field": Field,
    "java/nio/Buffer": memoryview,
    "java/nio/ByteBuffer": memoryview,
    "java/nio/DirectByteBuffer": memoryview,
    "java/util/ArrayList": list,
    "java/util/HashMap": dict,
    "java/util/HashSet": set,
    "java/util/List": list,
    "java/util/Map": dict,
    "java/util/Properties": dict,
    "java/util/Set": set,
    "jdk/internal/vm/VMSupport": VMSupport,
    # exceptions
    "java/lang/Throwable": BaseException,
    "java/lang/Exception": Exception,
    "java/lang/Error": Exception,
    "java/lang/RuntimeException": RuntimeError,
    "java/lang/ArithmeticException": ArithmeticError,
    "java/lang/ArrayIndexOutOfBoundsException": IndexError,
    "java/lang/ArrayStoreException": TypeError,
    "java/lang/AssertionError": AssertionError,
    "java/lang/ClassCastException": TypeError,
    "java/lang/ClassFormatError": ValueError,
    "java/lang/ClassNotFoundException": ModuleNotFoundError,
    "java/lang/IllegalAccessException": PermissionError,
    "java/lang/IllegalArgumentException": ValueError,
    "java/lang/IllegalMonitorStateException": RuntimeError,
    "java/lang/IllegalStateException": RuntimeError,
    "java/lang/IndexOutOfBoundsException": IndexError,
    "java/lang/InstantiationException": TypeError,
    "java/lang/InternalError": SystemError,
    "java/lang/InterruptedException": InterruptedError,
    "java/lang/LinkageError": ImportError,
    "java/lang/NegativeArraySizeException": ValueError,
    "java/lang/NoClassDefFoundError": ImportError,
    "java/lang/NoSuchFieldError": AttributeError,
    "java/lang/NoSuchFieldException": AttributeError,
    "java/lang/NoSuchMethodError": AttributeError,
    "java/lang/NoSuchMethodException": AttributeError,
    "java/lang/NullPointerException": TypeError,
    "java/lang/NumberFormatException": ValueError,
    "java/lang/OutOfMemoryError": MemoryError,
    "java/lang/SecurityException": PermissionError,
    "java/lang/StackOverflowError": RecursionError,
    "java/lang/StringIndexOutOfBoundsException": IndexError,
    "java/lang/ThreadDeath": SystemExit,
    "java/lang/UnsatisfiedLinkError": ImportError,
    "java/lang/UnsupportedOperationException": NotImplementedError,
    "java/lang/VirtualMachineError": SystemError,
    "java/io/FileNotFoundException": FileNotFoundError,
    "java/io/IOException": OSError,
    "java/util/NoSuchElementException": LookupError,
    "java/util/concurrent/TimeoutException": TimeoutError,
}
