"""The tool interface's numbers: versions, phases, errors. They are JVM TI's."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Version(IntEnum):
    """What `VM.get_env` may be asked for; CURRENT's functions, events and capabilities are those of the table."""

    V1_0 = 0x3001_0000
    V1_1 = 0x3001_0100
    V1_2 = 0x3001_0200
    V9 = 0x3009_0000
    V11 = 0x300B_0000
    V13 = 0x300D_0000
    V14 = 0x300E_0000
    V15 = 0x300F_0000
    V16 = 0x3010_0000
    V17 = 0x3011_0000
    V18 = 0x3012_0000
    V19 = 0x3013_0000
    V20 = 0x3014_0000
    V21 = 0x3015_0000
    V22 = 0x3016_0000
    V23 = 0x3017_0000
    V24 = 0x3018_0000
    V25 = 0x3019_0000
    CURRENT = V25

    @classmethod
    def offers(cls, number: object) -> bool:
        """Whether this version may be asked for. Its last byte is anybody's; since 13 the one before it, too."""
        return isinstance(number, int) and number & ~(0xFFFF if number >= cls.V13 else 0xFF) in {*cls}


class Phase(IntEnum):
    """What a VM goes through: PRIMORDIAL, ONLOAD, PRIMORDIAL, START, LIVE, DEAD."""

    ONLOAD = 1
    PRIMORDIAL = 2
    LIVE = 4
    START = 6
    DEAD = 8


class Phases(IntFlag):
    """Sets of phases: bit N for phase N."""

    ONLOAD = 1 << Phase.ONLOAD
    PRIMORDIAL = 1 << Phase.PRIMORDIAL
    START = 1 << Phase.START
    LIVE = 1 << Phase.LIVE
    DEAD = 1 << Phase.DEAD
    STARTED = START | LIVE
    SET_UP = ONLOAD | LIVE
    ANY = ONLOAD | PRIMORDIAL | START | LIVE | DEAD


class Error(IntEnum):
    """The errors by their JVM TI names; `tool.errors.ERRORS` has the class of each."""

    NONE = 0
    INVALID_THREAD = 10
    INVALID_THREAD_GROUP = 11
    INVALID_PRIORITY = 12
    THREAD_NOT_SUSPENDED = 13
    THREAD_SUSPENDED = 14
    THREAD_NOT_ALIVE = 15
    INVALID_OBJECT = 20
    INVALID_CLASS = 21
    CLASS_NOT_PREPARED = 22
    INVALID_METHODID = 23
    INVALID_LOCATION = 24
    INVALID_FIELDID = 25
    INVALID_MODULE = 26
    NO_MORE_FRAMES = 31
    OPAQUE_FRAME = 32
    TYPE_MISMATCH = 34
    INVALID_SLOT = 35
    DUPLICATE = 40
    NOT_FOUND = 41
    INVALID_MONITOR = 50
    NOT_MONITOR_OWNER = 51
    INTERRUPT = 52
    INVALID_CLASS_FORMAT = 60
    CIRCULAR_CLASS_DEFINITION = 61
    FAILS_VERIFICATION = 62
    UNSUPPORTED_REDEFINITION_METHOD_ADDED = 63
    UNSUPPORTED_REDEFINITION_SCHEMA_CHANGED = 64
    INVALID_TYPESTATE = 65
    UNSUPPORTED_REDEFINITION_HIERARCHY_CHANGED = 66
    UNSUPPORTED_REDEFINITION_METHOD_DELETED = 67
    UNSUPPORTED_VERSION = 68
    NAMES_DONT_MATCH = 69
    UNSUPPORTED_REDEFINITION_CLASS_MODIFIERS_CHANGED = 70
    UNSUPPORTED_REDEFINITION_METHOD_MODIFIERS_CHANGED = 71
    UNSUPPORTED_REDEFINITION_CLASS_ATTRIBUTE_CHANGED = 72
    UNSUPPORTED_OPERATION = 73
    UNMODIFIABLE_CLASS = 79
    UNMODIFIABLE_MODULE = 80
    NOT_AVAILABLE = 98
    MUST_POSSESS_CAPABILITY = 99
    NULL_POINTER = 100
    ABSENT_INFORMATION = 101
    INVALID_EVENT_TYPE = 102
    ILLEGAL_ARGUMENT = 103
    NATIVE_METHOD = 104
    CLASS_LOADER_UNSUPPORTED = 106
    OUT_OF_MEMORY = 110
    ACCESS_DENIED = 111
    WRONG_PHASE = 112
    INTERNAL = 113
    UNATTACHED_THREAD = 115
    INVALID_ENVIRONMENT = 116
