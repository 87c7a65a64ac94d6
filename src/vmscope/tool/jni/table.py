"""The functions of a JNIEnv: one table, from which the C stubs, the checks of arguments and the tests are made.

Names, slots and types are those of the JNI specification up to version 24; JDK 17 has the slots to 233.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SLOTS = 236

# What a type is called in jni.h. A reference may be null where a `?` follows it.
C_TYPES = {
    "void": "void",
    "boolean": "jboolean", "byte": "jbyte", "char": "jchar", "short": "jshort",
    "int": "jint", "long": "jlong", "float": "jfloat", "double": "jdouble", "size": "jsize",
    "object": "jobject", "class": "jclass", "string": "jstring", "throwable": "jthrowable", "weak": "jweak",
    "array": "jarray", "object[]": "jobjectArray",
    "method": "jmethodID", "field": "jfieldID", "kind": "jobjectRefType",
    "chars": "const char*", "chars*": "char*", "units": "const jchar*", "units*": "jchar*", "flag*": "jboolean*",
    "bytes": "const jbyte*", "memory": "void*", "values": "const jvalue*", "list": "va_list", "...": "...",
    "natives": "const JNINativeMethod*", "vm*": "JavaVM**",
}  # fmt: skip

# The primitive types in the order in which the families of functions have them, with their letter in signatures.
PRIMITIVES = {
    "boolean": "Z", "byte": "B", "char": "C", "short": "S", "int": "I", "long": "J", "float": "F", "double": "D",
}  # fmt: skip
for _type in PRIMITIVES:
    C_TYPES |= {f"{_type}[]": f"j{_type}Array", f"{_type}*": f"j{_type}*", f"const_{_type}*": f"const j{_type}*"}
LETTERS = {"object": "L", **PRIMITIVES, "void": "V"}

# Slot, name, result, parameters; then the Python method that does it, or none where C does.
SINGLE = """\
4 GetVersion int:
5 DefineClass class: chars? object? bytes size: define_class
6 FindClass class: chars: find_class
7 FromReflectedMethod method: object: from_reflected_method
8 FromReflectedField field: object: from_reflected_field
9 ToReflectedMethod object: class method boolean: to_reflected_method
10 GetSuperclass class: class: get_superclass
11 IsAssignableFrom boolean: class class: is_assignable_from
12 ToReflectedField object: class field boolean: to_reflected_field
13 Throw int: throwable
14 ThrowNew int: class chars?: throw_new
15 ExceptionOccurred throwable:
16 ExceptionDescribe void:: exception_describe
17 ExceptionClear void:
18 FatalError void: chars?: fatal_error
19 PushLocalFrame int: int
20 PopLocalFrame object: object?
21 NewGlobalRef object: object?
22 DeleteGlobalRef void: object?
23 DeleteLocalRef void: object?
24 IsSameObject boolean: object? object?
25 NewLocalRef object: object?
26 EnsureLocalCapacity int: int
27 AllocObject object: class: alloc_object
28 NewObject object: class method ...
29 NewObjectV object: class method list
30 NewObjectA object: class method values: new_object
31 GetObjectClass class: object
32 IsInstanceOf boolean: object? class: is_instance_of
33 GetMethodID method: class chars chars: get_method_id
94 GetFieldID field: class chars chars: get_field_id
113 GetStaticMethodID method: class chars chars: get_static_method_id
144 GetStaticFieldID field: class chars chars: get_static_field_id
163 NewString string: units? size: new_string
164 GetStringLength size: string: get_string_length
165 GetStringChars units: string flag*: get_string_chars
166 ReleaseStringChars void: string units: release_string
167 NewStringUTF string: chars?: new_string_utf
168 GetStringUTFLength size: string: get_string_utf_length
169 GetStringUTFChars chars: string flag*: get_string_utf_chars
170 ReleaseStringUTFChars void: string chars: release_string
171 GetArrayLength size: array: get_array_length
172 NewObjectArray object[]: size class object?: new_object_array
173 GetObjectArrayElement object: object[] size: get_object_array_element
174 SetObjectArrayElement void: object[] size object?: set_object_array_element
215 RegisterNatives int: class natives int: register_natives
216 UnregisterNatives int: class: unregister_natives
217 MonitorEnter int: object: monitor_enter
218 MonitorExit int: object: monitor_exit
219 GetJavaVM int: vm*
220 GetStringRegion void: string size size units*: get_string_region
221 GetStringUTFRegion void: string size size chars*: get_string_utf_region
222 GetPrimitiveArrayCritical memory: array flag*: get_primitive_array_critical
223 ReleasePrimitiveArrayCritical void: array memory int: release_primitive_array_critical
224 GetStringCritical units: string flag*: get_string_chars
225 ReleaseStringCritical void: string units: release_string
226 NewWeakGlobalRef weak: object?
227 DeleteWeakGlobalRef void: weak?
228 ExceptionCheck boolean:
229 NewDirectByteBuffer object: memory long: new_direct_byte_buffer
230 GetDirectBufferAddress memory: object: get_direct_buffer_address
231 GetDirectBufferCapacity long: object: get_direct_buffer_capacity
232 GetObjectRefType kind: object?
233 GetModule object: class: get_module
234 IsVirtualThread boolean: object?
235 GetStringUTFLengthAsLong long: string: get_string_utf_length
"""

# May be called with an exception pending: they are what is done about one, and what gives things back.
DESPITE_EXCEPTION = frozenset(
    "GetVersion ExceptionOccurred ExceptionDescribe ExceptionClear ExceptionCheck FatalError PushLocalFrame"
    " PopLocalFrame DeleteGlobalRef DeleteLocalRef DeleteWeakGlobalRef NewLocalRef NewGlobalRef IsSameObject"
    " ReleaseStringChars ReleaseStringUTFChars ReleaseStringCritical ReleasePrimitiveArrayCritical MonitorExit"
    " EnsureLocalCapacity GetJavaVM GetObjectRefType".split()
) | {f"Release{each.capitalize()}ArrayElements" for each in PRIMITIVES}


class JniFunction:
    """A row: `method` does it in Python, unless it is empty, with the letter of its type where it is of a family."""

    __slots__ = ("letter", "method", "name", "parameters", "result", "slot")

    def __init__(self, slot: int, name: str, result: str, parameters: str, method: str = "", letter: str = "") -> None:
        self.slot = slot
        self.name = name
        self.result = result
        self.parameters = tuple(parameters.split())
        self.method = method
        self.letter = letter

    @property
    def variadic(self) -> bool:
        """Whether it takes its last arguments as C does."""
        return self.parameters[-1:] in (("...",), ("list",))

    def with_array(self) -> JniFunction:
        """The form of a variadic one that takes them in an array."""
        return FUNCTIONS[self.slot + (2 if self.parameters[-1] == "..." else 1)]


def _single() -> Iterator[JniFunction]:
    for line in SINGLE.splitlines():
        head, parameters, method = [*line.split(":"), "", ""][:3]
        slot, name, result = head.split()
        yield JniFunction(int(slot), name, result, parameters, method.strip())


def _calls() -> Iterator[JniFunction]:
    for first, kind, receiver, method in (
        (34, "", "object", "call_method"),
        (64, "Nonvirtual", "object class", "call_nonvirtual_method"),
        (114, "Static", "class", "call_static_method"),
    ):
        for place, (result, letter) in enumerate(LETTERS.items()):
            slot, name, given = first + 3 * place, f"Call{kind}{result.capitalize()}Method", f"{receiver} method"
            yield JniFunction(slot, name, result, f"{given} ...")
            yield JniFunction(slot + 1, f"{name}V", result, f"{given} list")
            yield JniFunction(slot + 2, f"{name}A", result, f"{given} values", method, letter)


def _fields() -> Iterator[JniFunction]:
    for first, kind, receiver in ((95, "", "object"), (145, "Static", "class")):
        for place, (each, letter) in enumerate(list(LETTERS.items())[:-1]):
            name = f"{kind}{each.capitalize()}Field"
            given = f"{receiver} field"
            value = each if each != "object" else "object?"
            get, put = (f"{verb}_{kind.lower()}{'_' * bool(kind)}field" for verb in ("get", "set"))
            yield JniFunction(first + place, f"Get{name}", each, given, get, letter)
            yield JniFunction(first + 9 + place, f"Set{name}", "void", f"{given} {value}", put, letter)


def _arrays() -> Iterator[JniFunction]:
    for place, (each, letter) in enumerate(PRIMITIVES.items()):
        name = f"{each.capitalize()}Array"
        array = f"{each}[]"
        yield JniFunction(175 + place, f"New{name}", array, "size", "new_array", letter)
        yield JniFunction(183 + place, f"Get{name}Elements", f"{each}*", f"{array} flag*", "get_array_elements", letter)
        yield JniFunction(
            191 + place, f"Release{name}Elements", "void", f"{array} {each}* int", "release_array_elements", letter
        )
        yield JniFunction(
            199 + place, f"Get{name}Region", "void", f"{array} size size {each}*", "get_array_region", letter
        )
        yield JniFunction(
            207 + place, f"Set{name}Region", "void", f"{array} size size const_{each}*", "set_array_region", letter
        )


FUNCTIONS = {row.slot: row for rows in (_single(), _calls(), _fields(), _arrays()) for row in rows}


def c_type(name: str) -> str:
    """As jni.h has it."""
    return C_TYPES[name.removesuffix("?")]
