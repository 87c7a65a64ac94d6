"""The functions that CPython has no mechanism for. They check what the others check; then they are not available."""

from __future__ import annotations

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import impossible
from vmscope.tool.spec.available_capabilities import NO_VIRTUAL_THREADS

UNWIND = "CPython offers no way to unwind another frame than by an exception"
PREFIX = "C functions are found by their address, never by a name that could have a prefix"
MODULES = "a Python module reads, exports and opens everything; there is nothing to add"
JNI = "C code is bound to CPython's functions by the linker, and has no table of them (docs.python.org/3/c-api/stable)"
EXTENSION = "a code object has no room for one (codeobject.h: the fields of PyCodeObject)"


class Impossible(Base):
    pop_frame = impossible("pop_frame", UNWIND)
    force_early_return_object = impossible("force_early_return_object", UNWIND)
    force_early_return_int = impossible("force_early_return_int", UNWIND)
    force_early_return_long = impossible("force_early_return_long", UNWIND)
    force_early_return_float = impossible("force_early_return_float", UNWIND)
    force_early_return_double = impossible("force_early_return_double", UNWIND)
    force_early_return_void = impossible("force_early_return_void", UNWIND)
    set_native_method_prefix = impossible("set_native_method_prefix", PREFIX)
    set_native_method_prefixes = impossible("set_native_method_prefixes", PREFIX)
    add_module_reads = impossible("add_module_reads", MODULES)
    add_module_exports = impossible("add_module_exports", MODULES)
    add_module_opens = impossible("add_module_opens", MODULES)
    add_module_uses = impossible("add_module_uses", MODULES)
    add_module_provides = impossible("add_module_provides", MODULES)
    suspend_all_virtual_threads = impossible("suspend_all_virtual_threads", NO_VIRTUAL_THREADS)
    resume_all_virtual_threads = impossible("resume_all_virtual_threads", NO_VIRTUAL_THREADS)
    set_jni_function_table = impossible("set_jni_function_table", JNI)
    get_jni_function_table = impossible("get_jni_function_table", JNI)
    get_source_debug_extension = impossible("get_source_debug_extension", EXTENSION)
