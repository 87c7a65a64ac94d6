"""The functions that CPython has no mechanism for. They check what the others check; then they are not available."""

from __future__ import annotations

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import unsupported
from vmscope.tool.spec.available_capabilities import NO_VIRTUAL_THREADS

UNWIND = "CPython offers no way to unwind another frame than by an exception"
PREFIX = "C functions are found by their address, never by a name that could have a prefix"
MODULES = "a Python module reads, exports and opens everything; there is nothing to add"
JNI = "C code is bound to CPython's functions by the linker, and has no table of them (docs.python.org/3/c-api/stable)"
EXTENSION = "a code object has no room for one (codeobject.h: the fields of PyCodeObject)"


class Unsupported(Base):
    pop_frame = unsupported("pop_frame", UNWIND)
    force_early_return_object = unsupported("force_early_return_object", UNWIND)
    force_early_return_int = unsupported("force_early_return_int", UNWIND)
    force_early_return_long = unsupported("force_early_return_long", UNWIND)
    force_early_return_float = unsupported("force_early_return_float", UNWIND)
    force_early_return_double = unsupported("force_early_return_double", UNWIND)
    force_early_return_void = unsupported("force_early_return_void", UNWIND)
    set_native_method_prefix = unsupported("set_native_method_prefix", PREFIX)
    set_native_method_prefixes = unsupported("set_native_method_prefixes", PREFIX)
    add_module_reads = unsupported("add_module_reads", MODULES)
    add_module_exports = unsupported("add_module_exports", MODULES)
    add_module_opens = unsupported("add_module_opens", MODULES)
    add_module_uses = unsupported("add_module_uses", MODULES)
    add_module_provides = unsupported("add_module_provides", MODULES)
    suspend_all_virtual_threads = unsupported("suspend_all_virtual_threads", NO_VIRTUAL_THREADS)
    resume_all_virtual_threads = unsupported("resume_all_virtual_threads", NO_VIRTUAL_THREADS)
    set_jni_function_table = unsupported("set_jni_function_table", JNI)
    get_jni_function_table = unsupported("get_jni_function_table", JNI)
    get_source_debug_extension = unsupported("get_source_debug_extension", EXTENSION)
