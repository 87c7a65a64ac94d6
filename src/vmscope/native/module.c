/* The one extension module: multi-phase init, so that each sub-interpreter has its own. */
#include "native.h"

static int
native_exec(PyObject *module)
{
    /* clang-format off */ /* one a line */
    static int (*const parts[])(PyObject *) = {
        vmscope_add_slots,
        vmscope_add_histogram,
        vmscope_add_cells,
        vmscope_add_thread,
        vmscope_add_delayed_call,
        vmscope_add_serving,
        vmscope_add_periodic_call,
        vmscope_add_mirror,
        vmscope_add_sampler,
        vmscope_add_gc_probe,
        vmscope_add_file_lock,
        vmscope_add_scan,
        vmscope_add_mapping,
        vmscope_add_crash_handler,
        vmscope_add_tally,
        vmscope_add_import_timer,
        vmscope_add_thread_states,
        vmscope_add_dispatch,
        vmscope_add_handler_chain,
        vmscope_add_suspend_gate,
        vmscope_add_termination_signals,
        vmscope_add_gc_objects,
        vmscope_add_class_histogram,
        vmscope_add_locks,
        vmscope_add_stack_snapshot,
        vmscope_add_protocol,
        vmscope_add_attach_signal,
        vmscope_add_listener,
        vmscope_add_os_threads,
        vmscope_add_remote_stacks,
        vmscope_add_allocations,
        vmscope_add_dump,
        vmscope_add_deferring_lock,
        vmscope_add_jni,
        vmscope_add_beneath,
        vmscope_add_descriptor,
        vmscope_add_entries,
        vmscope_add_heap_walk,
        vmscope_add_exception_handlers,
        vmscope_add_flight,
        vmscope_add_answer,
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i](module) < 0) {
            return -1;
        }
    }
    return PyModule_AddStringConstant(module, "IMPLEMENTATION", "c");
}

static int
native_traverse(PyObject *module, visitproc visit, void *arg)
{
    NativeState *state = vmscope_state(module);
    Py_VISIT(state->long_slot);
    Py_VISIT(state->counter_slot);
    Py_VISIT(state->float_gauge_slot);
    Py_VISIT(state->text_slot);
    Py_VISIT(state->histogram_slot);
    Py_VISIT(state->timer);
    Py_VISIT(state->mirror);
    Py_VISIT(state->call);
    Py_VISIT(state->deferring_lock_exit);
    Py_VISIT(state->snapshot);
    Py_VISIT(state->current);
    return 0;
}

static int
native_clear(PyObject *module)
{
    NativeState *state = vmscope_state(module);
    Py_CLEAR(state->long_slot);
    Py_CLEAR(state->counter_slot);
    Py_CLEAR(state->float_gauge_slot);
    Py_CLEAR(state->text_slot);
    Py_CLEAR(state->histogram_slot);
    Py_CLEAR(state->timer);
    Py_CLEAR(state->mirror);
    Py_CLEAR(state->call);
    Py_CLEAR(state->deferring_lock_exit);
    Py_CLEAR(state->snapshot);
    Py_CLEAR(state->current);
    return 0;
}

static PyModuleDef_Slot native_slots[] = {
    {Py_mod_exec, native_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

PyModuleDef vmscope_native_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "vmscope.native._native",
    .m_doc = "The parts of vmscope that must be fast or must not hold the GIL.",
    .m_size = sizeof(NativeState),
    .m_slots = native_slots,
    .m_traverse = native_traverse,
    .m_clear = native_clear,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    return PyModuleDef_Init(&vmscope_native_def);
}
