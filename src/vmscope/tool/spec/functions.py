"""The interface's functions: one row a slot, from which checks, documentation and, for C callers, tables are made.

A row: slot, JVM TI name, phases, capability or None, parameters, errors beyond those that the parameters imply.
A parameter is `name:type`, in C's order. A type of `TYPES` says what a caller from C gives and which error a wrong
value gets; `[]` after it is an array, `?` allows None (for a thread: the current one). `*` before the name is a
pointer that takes a result: in Python the value returned. `#` is a length that Python's sequences have themselves.
"""

from __future__ import annotations

from vmscope.tool.spec.codes import Phases

ANY, ONLOAD, SET_UP, STARTED, LIVE = Phases.ANY, Phases.ONLOAD, Phases.SET_UP, Phases.STARTED, Phases.LIVE

# type: (what it is in C, the error of a wrong value or 0). A type with a `*` at its end is a pointer in itself.
TYPES: dict[str, tuple[str, int]] = {
    "thread": ("jthread", 10),
    "late_thread": ("jthread", 0),  # checked by the function itself, after what depends on the event
    "group": ("jthreadGroup", 11),
    "object": ("jobject", 20),
    "class": ("jclass", 21),
    "method": ("jmethodID", 23),
    "code": ("jmethodID", 23),  # of a method that is not a native one
    "location": ("jlocation", 24),
    "field": ("jfieldID", 25),
    "module": ("jobject", 26),
    "service": ("jclass", 21),
    "monitor": ("jrawMonitorID", 50),
    "loader": ("jobject", 103),
    "mode": ("jvmtiEventMode", 103),
    "event": ("jvmtiEvent", 102),
    "any_event": ("jvmtiEvent", 0),
    "error": ("jvmtiError", 103),
    "phase": ("jvmtiPhase", 0),
    "filter": ("jvmtiHeapObjectFilter", 103),
    "format": ("jvmtiJlocationFormat", 0),
    "verbose": ("jvmtiVerboseFlag", 103),
    "bool": ("jboolean", 103),
    "count": ("jint", 103),
    "int": ("jint", 0),
    "long": ("jlong", 0),
    "float": ("jfloat", 0),
    "double": ("jdouble", 0),
    "text": ("char*", 100),
    "bytes": ("unsigned char*", 100),
    "data": ("void*", 0),
    "functions": ("jniNativeInterface*", 100),
    "capabilities": ("jvmtiCapabilities", 100),
    "callbacks": ("jvmtiEventCallbacks", 100),
    "heap_callbacks": ("jvmtiHeapCallbacks", 100),
    "definition": ("jvmtiClassDefinition", 100),
    "start_function": ("jvmtiStartFunction", 100),
    "extension_callback": ("jvmtiExtensionEvent", 100),
    "root_callback": ("jvmtiHeapRootCallback", 100),
    "stack_callback": ("jvmtiStackReferenceCallback", 100),
    "reference_callback": ("jvmtiObjectReferenceCallback", 100),
    "object_callback": ("jvmtiHeapObjectCallback", 100),
    "thread_info": ("jvmtiThreadInfo", 0),
    "group_info": ("jvmtiThreadGroupInfo", 0),
    "monitor_usage": ("jvmtiMonitorUsage", 0),
    "monitor_depth": ("jvmtiMonitorStackDepthInfo", 0),
    "frame": ("jvmtiFrameInfo", 0),
    "stack": ("jvmtiStackInfo", 0),
    "line": ("jvmtiLineNumberEntry", 0),
    "variable": ("jvmtiLocalVariableEntry", 0),
    "timer": ("jvmtiTimerInfo", 0),
    "extension_function": ("jvmtiExtensionFunctionInfo", 0),
    "extension_event": ("jvmtiExtensionEventInfo", 0),
}  # fmt: skip
LATE = frozenset(("thread", "group", "object", "module", "service", "filter", "mode"))  # looked at last
THREAD_FIRST = frozenset(("GetThreadCpuTime",))  # except these

Row = tuple[int, str, Phases, int | None, str, tuple[int, ...]]
LOCAL = "thread:thread? depth:count slot:int"
LOCAL_ERRORS = (15, 31, 32, 34, 35)
CLASS_FORMAT = (60, 61, 62, 63, 64, 66, 67, 68, 69, 70, 71, 72, 79)

# fmt: off
FUNCTIONS: tuple[Row, ...] = (
    (2, "SetEventNotificationMode", SET_UP, None, "mode:mode event_type:event event_thread:late_thread?",
     (10, 15, 99, 103)),
    (3, "GetAllModules", LIVE, None, "*count:int *modules:module[]", ()),
    (4, "GetAllThreads", LIVE, None, "*count:int *threads:thread[]", ()),
    (5, "SuspendThread", LIVE, 20, "thread:thread?", (14, 15)),
    (6, "ResumeThread", LIVE, 20, "thread:thread?", (13, 15, 65)),
    (7, "StopThread", LIVE, 10, "thread:thread exception:object", (15,)),
    (8, "InterruptThread", LIVE, 10, "thread:thread?", (15,)),
    (9, "GetThreadInfo", LIVE, None, "thread:thread? *info:thread_info", ()),
    (10, "GetOwnedMonitorInfo", LIVE, 5, "thread:thread? *count:int *monitors:object[]", (15,)),
    (11, "GetCurrentContendedMonitor", LIVE, 6, "thread:thread? *monitor:object", (15,)),
    (12, "RunAgentThread", LIVE, None, "thread:thread proc:start_function argument:data? priority:int", (12,)),
    (13, "GetTopThreadGroups", LIVE, None, "*count:int *groups:group[]", ()),
    (14, "GetThreadGroupInfo", LIVE, None, "group:group *info:group_info", ()),
    (15, "GetThreadGroupChildren", LIVE, None,
     "group:group *thread_count:int *threads:thread[] *group_count:int *groups:group[]", ()),
    (16, "GetFrameCount", LIVE, None, "thread:thread? *count:int", (15,)),
    (17, "GetThreadState", LIVE, None, "thread:thread? *state:int", ()),
    (18, "GetCurrentThread", STARTED, None, "*thread:thread", ()),
    (19, "GetFrameLocation", LIVE, None, "thread:thread? depth:count *method:method *location:location", (15, 31)),
    (20, "NotifyFramePop", LIVE, 18, "thread:thread? depth:count", (13, 15, 31, 32, 40)),
    (21, "GetLocalObject", LIVE, 14, f"{LOCAL} *value:object", LOCAL_ERRORS),
    (22, "GetLocalInt", LIVE, 14, f"{LOCAL} *value:int", LOCAL_ERRORS),
    (23, "GetLocalLong", LIVE, 14, f"{LOCAL} *value:long", LOCAL_ERRORS),
    (24, "GetLocalFloat", LIVE, 14, f"{LOCAL} *value:float", LOCAL_ERRORS),
    (25, "GetLocalDouble", LIVE, 14, f"{LOCAL} *value:double", LOCAL_ERRORS),
    (26, "SetLocalObject", LIVE, 14, f"{LOCAL} value:object?", LOCAL_ERRORS),
    (27, "SetLocalInt", LIVE, 14, f"{LOCAL} value:int", LOCAL_ERRORS),
    (28, "SetLocalLong", LIVE, 14, f"{LOCAL} value:long", LOCAL_ERRORS),
    (29, "SetLocalFloat", LIVE, 14, f"{LOCAL} value:float", LOCAL_ERRORS),
    (30, "SetLocalDouble", LIVE, 14, f"{LOCAL} value:double", LOCAL_ERRORS),
    (31, "CreateRawMonitor", SET_UP, None, "name:text *monitor:monitor", ()),
    (32, "DestroyRawMonitor", SET_UP, None, "monitor:monitor", (51,)),
    (33, "RawMonitorEnter", ANY, None, "monitor:monitor", ()),
    (34, "RawMonitorExit", ANY, None, "monitor:monitor", (51,)),
    (35, "RawMonitorWait", ANY, None, "monitor:monitor millis:long", (51, 52)),
    (36, "RawMonitorNotify", ANY, None, "monitor:monitor", (51,)),
    (37, "RawMonitorNotifyAll", ANY, None, "monitor:monitor", (51,)),
    (38, "SetBreakpoint", LIVE, 19, "method:code location:location", (40,)),
    (39, "ClearBreakpoint", LIVE, 19, "method:code location:location", (41,)),
    (40, "GetNamedModule", LIVE, None, "class_loader:loader? package_name:text *module:module", ()),
    (41, "SetFieldAccessWatch", LIVE, 2, "klass:class field:field", (40, 79)),
    (42, "ClearFieldAccessWatch", LIVE, 2, "klass:class field:field", (41,)),
    (43, "SetFieldModificationWatch", LIVE, 1, "klass:class field:field", (40, 79)),
    (44, "ClearFieldModificationWatch", LIVE, 1, "klass:class field:field", (41,)),
    (45, "IsModifiableClass", STARTED, None, "klass:class *is_modifiable_class:bool", ()),
    (46, "Allocate", ANY, None, "size:long *memory:bytes", (103, 110)),
    (47, "Deallocate", ANY, None, "memory:bytes?", ()),
    (48, "GetClassSignature", STARTED, None, "klass:class *signature:text? *generic:text?", ()),
    (49, "GetClassStatus", STARTED, None, "klass:class *status:int", ()),
    (50, "GetSourceFileName", STARTED, 11, "klass:class *source_name:text", (101,)),
    (51, "GetClassModifiers", STARTED, None, "klass:class *modifiers:int", ()),
    (52, "GetClassMethods", STARTED, None, "klass:class *count:int *methods:method[]", (22,)),
    (53, "GetClassFields", STARTED, None, "klass:class *count:int *fields:field[]", (22,)),
    (54, "GetImplementedInterfaces", STARTED, None, "klass:class *count:int *interfaces:class[]", (22,)),
    (55, "IsInterface", STARTED, None, "klass:class *is_interface:bool", ()),
    (56, "IsArrayClass", STARTED, None, "klass:class *is_array_class:bool", ()),
    (57, "GetClassLoader", STARTED, None, "klass:class *class_loader:loader", ()),
    (58, "GetObjectHashCode", STARTED, None, "object:object *hash_code:int", ()),
    (59, "GetObjectMonitorUsage", LIVE, 7, "object:object *info:monitor_usage", ()),
    (60, "GetFieldName", STARTED, None, "klass:class field:field *name:text? *signature:text? *generic:text?", ()),
    (61, "GetFieldDeclaringClass", STARTED, None, "klass:class field:field *declaring_class:class", ()),
    (62, "GetFieldModifiers", STARTED, None, "klass:class field:field *modifiers:int", ()),
    (63, "IsFieldSynthetic", STARTED, 4, "klass:class field:field *is_synthetic:bool", ()),
    (64, "GetMethodName", STARTED, None, "method:method *name:text? *signature:text? *generic:text?", ()),
    (65, "GetMethodDeclaringClass", STARTED, None, "method:method *declaring_class:class", ()),
    (66, "GetMethodModifiers", STARTED, None, "method:method *modifiers:int", ()),
    (67, "ClearAllFramePops", LIVE, 18, "thread:thread?", (13, 15)),
    (68, "GetMaxLocals", STARTED, None, "method:method *max_locals:int", (104,)),
    (69, "GetArgumentsSize", STARTED, None, "method:method *size:int", (104,)),
    (70, "GetLineNumberTable", STARTED, 12, "method:method *count:int *table:line[]", (101, 104)),
    (71, "GetMethodLocation", STARTED, None, "method:method *start:location *end:location", (101, 104)),
    (72, "GetLocalVariableTable", LIVE, 14, "method:method *count:int *table:variable[]", (101, 104)),
    (73, "SetNativeMethodPrefix", ANY, 36, "prefix:text?", ()),
    (74, "SetNativeMethodPrefixes", ANY, 36, "#count:count prefixes:text[]", ()),
    (75, "GetBytecodes", STARTED, 3, "method:method *count:int *bytecodes:bytes", (104,)),
    (76, "IsMethodNative", STARTED, None, "method:method *is_native:bool", ()),
    (77, "IsMethodSynthetic", STARTED, 4, "method:method *is_synthetic:bool", ()),
    (78, "GetLoadedClasses", LIVE, None, "*count:int *classes:class[]", ()),
    (79, "GetClassLoaderClasses", LIVE, None, "initiating_loader:loader? *count:int *classes:class[]", ()),
    (80, "PopFrame", LIVE, 8, "thread:thread?", (13, 15, 31, 32)),
    (81, "ForceEarlyReturnObject", LIVE, 33, "thread:thread? value:object?", (13, 15, 31, 32, 34)),
    (82, "ForceEarlyReturnInt", LIVE, 33, "thread:thread? value:int", (13, 15, 31, 32, 34)),
    (83, "ForceEarlyReturnLong", LIVE, 33, "thread:thread? value:long", (13, 15, 31, 32, 34)),
    (84, "ForceEarlyReturnFloat", LIVE, 33, "thread:thread? value:float", (13, 15, 31, 32, 34)),
    (85, "ForceEarlyReturnDouble", LIVE, 33, "thread:thread? value:double", (13, 15, 31, 32, 34)),
    (86, "ForceEarlyReturnVoid", LIVE, 33, "thread:thread?", (13, 15, 31, 32, 34)),
    (87, "RedefineClasses", LIVE, 9, "#count:count definitions:definition[]", (21, *CLASS_FORMAT)),
    (88, "GetVersionNumber", ANY, None, "*version:int", ()),
    (89, "GetCapabilities", ANY, None, "*capabilities:capabilities", ()),
    (90, "GetSourceDebugExtension", STARTED, 13, "klass:class *source_debug_extension:text", (101,)),
    (91, "IsMethodObsolete", STARTED, None, "method:method *is_obsolete:bool", ()),
    (92, "SuspendThreadList", LIVE, 20, "#count:count threads:thread[] *results:error", ()),
    (93, "ResumeThreadList", LIVE, 20, "#count:count threads:thread[] *results:error", ()),
    (94, "AddModuleReads", LIVE, None, "module:module to_module:module", (80,)),
    (95, "AddModuleExports", LIVE, None, "module:module package_name:text to_module:module", (80, 103)),
    (96, "AddModuleOpens", LIVE, None, "module:module package_name:text to_module:module", (80, 103)),
    (97, "AddModuleUses", LIVE, None, "module:module service:service", (80,)),
    (98, "AddModuleProvides", LIVE, None, "module:module service:service implementation:service", (80,)),
    (99, "IsModifiableModule", LIVE, None, "module:module *is_modifiable_module:bool", ()),
    (100, "GetAllStackTraces", LIVE, None, "max_frame_count:count *stacks:stack[] *count:int", ()),
    (101, "GetThreadListStackTraces", LIVE, None,
     "#count:count threads:thread[] max_frame_count:count *stacks:stack[]", ()),
    (102, "GetThreadLocalStorage", STARTED, None, "thread:thread? *data:data", (15,)),
    (103, "SetThreadLocalStorage", STARTED, None, "thread:thread? data:data?", (15,)),
    (104, "GetStackTrace", LIVE, None,
     "thread:thread? start_depth:int max_frame_count:count *frames:frame *count:int", (15, 103)),
    (106, "GetTag", STARTED, 0, "object:object *tag:long", ()),
    (107, "SetTag", STARTED, 0, "object:object tag:long", ()),
    (108, "ForceGarbageCollection", LIVE, None, "", ()),
    (109, "IterateOverObjectsReachableFromObject", LIVE, 0,
     "object:object object_reference_callback:reference_callback user_data:data?", ()),
    (110, "IterateOverReachableObjects", LIVE, 0,
     "heap_root_callback:root_callback? stack_ref_callback:stack_callback? "
     "object_ref_callback:reference_callback? user_data:data?", ()),
    (111, "IterateOverHeap", LIVE, 0,
     "object_filter:filter heap_object_callback:object_callback user_data:data?", ()),
    (112, "IterateOverInstancesOfClass", LIVE, 0,
     "klass:class object_filter:filter heap_object_callback:object_callback user_data:data?", ()),
    (114, "GetObjectsWithTags", LIVE, 0,
     "#tag_count:count tags:long[] *count:int *objects:object[]? *object_tags:long[]?", (103,)),
    (115, "FollowReferences", LIVE, 0,
     "heap_filter:int klass:class? initial_object:object? callbacks:heap_callbacks user_data:data?", ()),
    (116, "IterateThroughHeap", LIVE, 0,
     "heap_filter:int klass:class? callbacks:heap_callbacks user_data:data?", ()),
    (118, "SuspendAllVirtualThreads", LIVE, 44, "#count:count except_list:thread[]?", ()),
    (119, "ResumeAllVirtualThreads", LIVE, 44, "#count:count except_list:thread[]?", ()),
    (120, "SetJNIFunctionTable", STARTED, None, "function_table:functions", ()),
    (121, "GetJNIFunctionTable", STARTED, None, "*function_table:functions", ()),
    (122, "SetEventCallbacks", SET_UP, None, "callbacks:callbacks? #size:count", ()),
    (123, "GenerateEvents", LIVE, None, "event_type:any_event", (99, 103)),
    (124, "GetExtensionFunctions", SET_UP, None, "*count:int *functions:extension_function[]", ()),
    (125, "GetExtensionEvents", SET_UP, None, "*count:int *events:extension_event[]", ()),
    (126, "SetExtensionEventCallback", SET_UP, None, "event_index:int callback:extension_callback?", (103,)),
    (127, "DisposeEnvironment", ANY, None, "", ()),
    (128, "GetErrorName", ANY, None, "error:error *name:text", ()),
    (129, "GetJLocationFormat", ANY, None, "*format:format", ()),
    (130, "GetSystemProperties", SET_UP, None, "*count:int *properties:text[]", ()),
    (131, "GetSystemProperty", SET_UP, None, "property:text *value:text", (98,)),
    (132, "SetSystemProperty", ONLOAD, None, "property:text value:text?", (98,)),
    (133, "GetPhase", ANY, None, "*phase:phase", ()),
    (134, "GetCurrentThreadCpuTimerInfo", STARTED, 22, "*info:timer", ()),
    (135, "GetCurrentThreadCpuTime", STARTED, 22, "*nanos:long", ()),
    (136, "GetThreadCpuTimerInfo", LIVE, 23, "*info:timer", ()),
    (137, "GetThreadCpuTime", LIVE, 23, "thread:thread? *nanos:long", (15,)),
    (138, "GetTimerInfo", ANY, None, "*info:timer", ()),
    (139, "GetTime", ANY, None, "*nanos:long", ()),
    (140, "GetPotentialCapabilities", SET_UP, None, "*capabilities:capabilities", ()),
    (142, "AddCapabilities", SET_UP, None, "capabilities:capabilities", (98,)),
    (143, "RelinquishCapabilities", SET_UP, None, "capabilities:capabilities", ()),
    (144, "GetAvailableProcessors", ANY, None, "*count:int", ()),
    (145, "GetClassVersionNumbers", STARTED, None, "klass:class *minor_version:int *major_version:int", (101,)),
    (146, "GetConstantPool", STARTED, 35, "klass:class *count:int *byte_count:int *constant_pool:bytes", (101,)),
    (147, "GetEnvironmentLocalStorage", ANY, None, "*data:data", ()),
    (148, "SetEnvironmentLocalStorage", ANY, None, "data:data?", ()),
    (149, "AddToBootstrapClassLoaderSearch", SET_UP, None, "segment:text", (103,)),
    (150, "SetVerboseFlag", ANY, None, "flag:verbose value:bool", ()),
    (151, "AddToSystemClassLoaderSearch", SET_UP, None, "segment:text", (103, 106)),
    (152, "RetransformClasses", LIVE, 37, "#count:count classes:class[]", CLASS_FORMAT),
    (153, "GetOwnedMonitorStackDepthInfo", LIVE, 34, "thread:thread? *count:int *monitors:monitor_depth[]", (15,)),
    (154, "GetObjectSize", STARTED, None, "object:object *size:long", ()),
    (155, "GetLocalInstance", LIVE, 14, "thread:thread? depth:count *value:object", (15, 31, 32, 35)),
    (156, "SetHeapSamplingInterval", SET_UP, 43, "sampling_interval:count", ()),
)
# fmt: on
SLOTS = 156  # those without a row are reserved
SINCE = {67: 25, 118: 21, 119: 21}  # the version that gave a slot its function, where that is later than 11


class Parameter:
    """One parameter of a row."""

    __slots__ = ("array", "direction", "error", "name", "null_error", "nullable", "type")

    def __init__(self, text: str) -> None:
        name, _, kind = text.partition(":")
        self.direction = name[0] if name[0] in "*#" else ""
        self.name = name.lstrip("*#")
        self.nullable = kind.endswith("?")
        kind = kind.rstrip("?")
        self.array = kind.endswith("[]")
        self.type = kind.removesuffix("[]")
        self.error = 100 if self.array or self.direction == "*" else TYPES[self.type][1]
        by_pointer = self.type in ("module", "service") or self.name == "exception"  # HotSpot looks whether it is null
        self.null_error = 100 if by_pointer else self.error

    @property
    def declaration(self) -> str:
        """Its type as jvmti.h has it, without `const`: what a caller from C passes."""
        base = TYPES[self.type][0]
        by_pointer = self.type in STRUCTS
        if self.direction == "*":
            return base + "*" * (1 + self.array)
        return base + "*" * (self.array or by_pointer)


STRUCTS = frozenset(("capabilities", "callbacks", "heap_callbacks"))  # in C handed over by pointer


class Function:
    """One row, taken apart. `method` is the name of the Environment's method."""

    __slots__ = ("capability", "errors", "method", "name", "parameters", "phases", "slot")

    def __init__(
        self, slot: int, name: str, phases: Phases, capability: int | None, parameters: str, errors: tuple[int, ...]
    ) -> None:
        self.slot = slot
        self.name = name
        self.phases = int(phases)
        self.capability = capability
        self.parameters = tuple(Parameter(text) for text in parameters.split())
        implied = {
            parameter.error for parameter in self.parameters if not (parameter.nullable and parameter.error == 100)
        }
        implied |= {112 if self.phases != ANY else 0, 99 if capability is not None else 0, 116}
        self.errors = tuple(sorted({*errors, *implied} - {0}))
        self.method = snake(name)

    def in_order(self) -> list[Parameter]:
        """The parameters as they are checked: from left to right, but objects other than classes last."""
        if self.name in THREAD_FIRST:
            return [*self.parameters]
        return sorted(self.parameters, key=lambda parameter: parameter.direction != "*" and parameter.type in LATE)


def snake(name: str) -> str:
    """`get_object_hash_code` for GetObjectHashCode, `get_jni_function_table` for GetJNIFunctionTable."""
    words = ""
    for index, letter in enumerate(name):
        after = name[index + 1 : index + 2]
        if letter.isupper() and index and (name[index - 1].islower() or after.islower()):
            words += "_"
        words += letter.lower()
    return words.replace("j_location", "jlocation")


BY_METHOD: dict[str, Function] = {function.method: function for function in (Function(*row) for row in FUNCTIONS)}
