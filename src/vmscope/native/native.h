/* What the parts of the extension share: a module object's state, and who adds what to it. */
#ifndef VMSCOPE_NATIVE_H
#define VMSCOPE_NATIVE_H

#include "compat.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* Takes the attach socket's name away; async-signal-safe (socket.c). */
void vmscope_unlink_socket(void);

/* What a signal that ends the process does for the region; async-signal-safe. */
int vmscope_end_region(void);

/* Each part adds its types and functions to the module; 0, or -1 with an exception set. */
int vmscope_add_slots(PyObject *module);
int vmscope_add_histogram(PyObject *module);
int vmscope_add_cells(PyObject *module);
int vmscope_add_thread(PyObject *module);
int vmscope_add_delayed_call(PyObject *module);
int vmscope_add_serving(PyObject *module);
int vmscope_add_periodic_call(PyObject *module);
int vmscope_add_mirror(PyObject *module);
int vmscope_add_crash_handler(PyObject *module);
int vmscope_add_termination_signals(PyObject *module);
int vmscope_add_sampler(PyObject *module);
int vmscope_add_gc_probe(PyObject *module);
int vmscope_add_import_timer(PyObject *module);
int vmscope_add_tally(PyObject *module);
int vmscope_add_file_lock(PyObject *module);
int vmscope_add_scan(PyObject *module);
int vmscope_add_thread_states(PyObject *module);
int vmscope_add_suspend_gate(PyObject *module);
int vmscope_add_deferring_lock(PyObject *module);
int vmscope_add_locks(PyObject *module);
int vmscope_add_stack_snapshot(PyObject *module);
int vmscope_add_os_threads(PyObject *module);
int vmscope_add_remote_stacks(PyObject *module);
int vmscope_add_gc_objects(PyObject *module);
int vmscope_add_class_histogram(PyObject *module);
int vmscope_add_heap_walk(PyObject *module);
int vmscope_add_exception_handlers(PyObject *module);
int vmscope_add_dump(PyObject *module);
int vmscope_add_mapping(PyObject *module);
int vmscope_add_beneath(PyObject *module);
int vmscope_add_descriptor(PyObject *module);
int vmscope_add_entries(PyObject *module);
int vmscope_add_dispatch(PyObject *module);
int vmscope_add_handler_chain(PyObject *module);
int vmscope_add_protocol(PyObject *module);
int vmscope_add_attach_signal(PyObject *module);
int vmscope_add_listener(PyObject *module);
int vmscope_add_allocations(PyObject *module);
int vmscope_add_jni(PyObject *module);
int vmscope_add_flight(PyObject *module);
int vmscope_add_answer(PyObject *module);

/* The state of one module object; each object is a strong reference. */
typedef struct {
    PyTypeObject *long_slot;
    PyTypeObject *counter_slot;
    PyTypeObject *float_gauge_slot;
    PyTypeObject *text_slot;
    PyTypeObject *histogram_slot;
    PyTypeObject *timer;
    PyTypeObject *mirror;
    PyTypeObject *call;
    PyTypeObject *deferring_lock_exit; /* NULL where there is none */
    PyTypeObject *snapshot;            /* NULL: there is none */
    PyObject *current; /* what the dispatchers made last ask for the thread; their serial, which no others have */
    uint64_t serial;
} NativeState;

extern PyModuleDef vmscope_native_def;

static inline NativeState *
vmscope_state(PyObject *module)
{
    return (NativeState *)PyModule_GetState(module);
}

/* The state behind an object of one of our types, or of a subclass made in Python. */
static inline NativeState *
vmscope_state_of(PyObject *self)
{
    PyObject *module = PyType_GetModuleByDef(Py_TYPE(self), &vmscope_native_def);
    return module == NULL ? NULL : vmscope_state(module);
}

/* A type made from a spec and added under its own name; a new reference, or NULL with an exception set. */
static inline PyTypeObject *
vmscope_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, (PyObject *)base);
    if (type != NULL && PyModule_AddType(module, type) < 0) {
        Py_CLEAR(type);
    }
    return type;
}

/* Sends the client of a call a line, `#` and the text, at once, and without letting go of the GIL; nothing where it has
 * gone, or reads too little (listener.c). */
void vmscope_tell_client(PyObject *call, const char *text);

#define VMSCOPE_MAX_TEXT 32768 /* bytes; the longest that -XX:PerfMaxStringConstLength allows */

/* -- labels (labels.c) ------------------------------------------------------------------------------ */

typedef struct Children Children; /* of one slot, by their labels */

/* The method labels(**labels) of the slot whose children stand at `where`: METH_FASTCALL | METH_KEYWORDS. */
PyObject *vmscope_labels(PyObject *self, _Atomic(Children *) *where, PyObject *const *values, Py_ssize_t positional,
                         PyObject *names);

#define VMSCOPE_LABELS_DOC "The counter of the same kind with these labels, always the same object."

void vmscope_free_children(_Atomic(Children *) *where);

/* -- slots: the live values (slots.c, histogram.c); the mirror reads them without the GIL ----------- */

/* Where threads run at once, a counter that one of them updates must not share a cache line with another's: room
 * for the rest of the first and of the last line that an object's own memory touches. */
#ifdef Py_GIL_DISABLED
#define VMSCOPE_CACHE_LINE 64
#define VMSCOPE_APART char apart[VMSCOPE_CACHE_LINE];
#else
#define VMSCOPE_APART
#endif

typedef struct {
    PyObject_HEAD _Atomic int64_t value;
    _Atomic(Children *) children;
    VMSCOPE_APART
} LongSlot;

/* A counter's whole amounts are added up in `whole`; those that are not whole in `fraction`, the bits of a double. */
typedef struct {
    LongSlot whole;
    _Atomic int64_t fraction;
    VMSCOPE_APART
} CounterSlot;

/* Text is guarded by a sequence number: odd while it is being written. `words` holds `capacity` bytes
 * and at least one NUL, in whole 8-byte words. */
typedef struct {
    PyObject_HEAD _Atomic uint32_t sequence;
    uint32_t capacity;
    uint32_t word_count;
    _Atomic uint64_t *words;
} TextSlot;

/* `cells` holds the sum, then a count for each of bound_count + 1 buckets. */
typedef struct {
    PyObject_HEAD _Atomic int64_t *cells;
    double *bounds; /* growing; behind the cells, in the same block */
    size_t bound_count;
    double scale; /* what one observed unit adds to the sum; 0: the sum is the bits of a double */
    _Atomic(Children *) children;
} HistogramSlot;

#define VMSCOPE_MAX_BOUNDS 100

static inline void
vmscope_reset_histogram(HistogramSlot *self)
{
    for (size_t i = 0; i < self->bound_count + 2; i++) {
        atomic_store_explicit(&self->cells[i], 0, memory_order_relaxed);
    }
}

/* Sets the text to `length` bytes of UTF-8, at most the capacity. */
void vmscope_text_store(TextSlot *slot, const char *bytes, size_t length);

/* Adds to a cell, wrapping around. Whoever adds has the GIL where there is one: no other thread adds between the load and
 * the store, which a reader without the GIL sees whole; a locked instruction would cost a third of the call. */
static inline void
vmscope_add(_Atomic int64_t *cell, int64_t amount)
{
#ifdef Py_GIL_DISABLED
    atomic_fetch_add_explicit(cell, amount, memory_order_relaxed);
#else
    uint64_t before = (uint64_t)atomic_load_explicit(cell, memory_order_relaxed);
    atomic_store_explicit(cell, (int64_t)(before + (uint64_t)amount), memory_order_relaxed);
#endif
}

static inline double
vmscope_double(int64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline int64_t
vmscope_bits(double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Adds to a cell that is the bits of a double. */
static inline void
vmscope_add_double(_Atomic int64_t *cell, double amount)
{
    int64_t before = atomic_load_explicit(cell, memory_order_relaxed);
#ifdef Py_GIL_DISABLED
    while (!atomic_compare_exchange_weak_explicit(cell, &before, vmscope_bits(vmscope_double(before) + amount),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
#else
    atomic_store_explicit(cell, vmscope_bits(vmscope_double(before) + amount), memory_order_relaxed);
#endif
}

/* A real number as a double. Anything else: -1 with TypeError or OverflowError. */
static inline int
vmscope_as_double(PyObject *number, double *out)
{
    if (PyFloat_CheckExact(number)) {
        *out = PyFloat_AS_DOUBLE(number);
        return 0;
    }
    if (PyLong_CheckExact(number) && VMSCOPE_IS_COMPACT(number)) {
        *out = (double)VMSCOPE_COMPACT_VALUE(number);
        return 0;
    }
    *out = PyFloat_AsDouble(number);
    return *out == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* Adds an amount that is not negative to a CounterSlot: whole ones to `whole`, others to `fraction`, whose entry is made
 * with the first one (slots.c). -1 with an exception set. */
int vmscope_add_to_counter(PyObject *counter, double amount);

/* Counts a value in a HistogramSlot (histogram.c). -1 with an exception set. */
int vmscope_observe(PyObject *histogram, double value);

/* An exemplar that came with an amount (NULL: 1), for Python code to keep; nothing where it is NULL, None or empty. A new
 * reference to None; NULL with an exception. */
PyObject *vmscope_note_exemplar(PyObject *slot, PyObject *exemplar, PyObject *amount);

/* __init_subclass__ of the slots: METH_CLASS | METH_NOARGS. A subclass gets method descriptors of its own for what it
 * inherits: the interpreter's fast call of a method in C is for objects of the very type that the descriptor names. */
PyObject *vmscope_init_subclass(PyObject *subclass, PyObject *ignored);

#define VMSCOPE_INIT_SUBCLASS {"__init_subclass__", vmscope_init_subclass, METH_CLASS | METH_NOARGS, NULL}

/* Copies the text, padded with NULs to word_count words; 0, or -1 when a writer was at work. */
int vmscope_text_copy(const TextSlot *slot, uint64_t *out);

#endif
