/* What native agents see: function tables in the C ABI of JNI and JVM TI, and the handles that go through them.
 *
 * Layouts, slots and numbers are those of the JNI and JVM TI specifications. Everything here is the main interpreter's:
 * agents are loaded into a process. A thread's own state is touched by that thread alone; everything that holds Python
 * objects is changed with the GIL. */
#ifndef VMSCOPE_JNI_INTERFACE_H
#define VMSCOPE_JNI_INTERFACE_H

#include "native.h"

#define JVMTI_SLOTS 156
#define JVMTI_EXTENSIONS 2 /* functions over those, with numbers behind them */
#define JNI_SLOTS 236      /* JDK 25's; 17 has the first 234 */

/* JVM TI's errors that are decided here; all others come from the interface's own functions. */
enum {
    ERROR_NONE = 0,
    ERROR_INVALID_THREAD = 10,
    ERROR_INVALID_OBJECT = 20,
    ERROR_INVALID_MONITOR = 50,
    ERROR_NOT_MONITOR_OWNER = 51,
    ERROR_INTERRUPT = 52,
    ERROR_NOT_AVAILABLE = 98,
    ERROR_MUST_POSSESS = 99,
    ERROR_NULL_POINTER = 100,
    ERROR_ILLEGAL_ARGUMENT = 103,
    ERROR_OUT_OF_MEMORY = 110,
    ERROR_WRONG_PHASE = 112,
    ERROR_INTERNAL = 113,
    ERROR_UNATTACHED = 115,
    ERROR_INVALID_ENVIRONMENT = 116,
};

enum {
    JNI_OK = 0,
    JNI_ERR = -1,
    JNI_EDETACHED = -2,
    JNI_EVERSION = -3,
    JNI_ENOMEM = -4,
    JNI_EEXIST = -5,
    JNI_EINVAL = -6
};

typedef union {
    uint8_t z;
    int8_t b;
    uint16_t c;
    int16_t s;
    int32_t i;
    int64_t j;
    float f;
    double d;
    void *l;
} Value; /* jvalue */

/* -- threads (threads.c) ------------------------------------------------------------------------- */

/* What this OS thread has as its JNIEnv: `functions` comes first, as the ABI wants it. */
typedef struct Native {
    const void *const *functions;
    uint64_t magic;
    uint16_t number;      /* of the thread, in its local references */
    PyThreadState *state; /* of a thread that Python knows by AttachCurrentThread alone; else NULL */
    uint32_t held;        /* locks of vmscope's that this thread has: callbacks of the collector are postponed */
    uint32_t postponed_count, postponed_room;
    struct Postponed *postponed;
    int without_python; /* in a callback in which nothing of Python may be touched: no JNIEnv, UNATTACHED */
    PyObject *pending;  /* the exception that JNI calls pending, or NULL */
    PyObject *aside;    /* what a signal's handler raised while an agent's function ran: raised when that returns */
    PyObject **locals;  /* local references: NULL where one was deleted */
    uint16_t *serials;  /* of each place; grows when its reference goes */
    uint32_t count, capacity, room;
    uint32_t *frames; /* where each frame's references begin, with OWN_FRAME */
    uint32_t depth;
    struct Native *next; /* of those whose threads have ended */
} Native;

extern VMSCOPE_THREAD_LOCAL Native *jni_here;
extern PyInterpreterState *jni_interpreter; /* the main one, which has loaded all this */
Native *jni_new_native(void);

/* The calling thread's, made when it is first needed; NULL without memory. */
static inline Native *
jni_native(void)
{
    return jni_here != NULL ? jni_here : jni_new_native();
}

/* Whether Python's main interpreter knows the calling thread, and may be called on it now. */
int jni_attached(void);
/* Opens and closes the frame of local references of a call into an agent, with the GIL. -1 without memory. Frames that
 * the agent has opened and left open go with it. */
int jni_push_frame(Native *native);
void jni_pop_frame(Native *native);
/* With the GIL: lets go of what threads left behind that ended without detaching. */
void jni_tidy(void);
/* With the GIL, after an agent's function: reports the exception that it left pending, if any. `environment` may be
 * NULL, `place` is an event's number, or one of these. */
enum { IN_THREAD = 0, IN_START = -1, IN_UNLOAD = -2 };
void jni_drop_pending(Native *native, const void *environment, int place);
/* With the GIL: the exception that is set, with its traceback, and no longer set. */
PyObject *jni_fetch(void);
/* With the GIL, and an exception set, which cannot be reported to an agent: it goes, unless a signal's handler has raised it,
 * for the program, which came in the middle of what the agent asked for. That is put aside. */
void jni_swallow(void);
/* Whether Python is about to go, for all threads but the one that ends it. */
int jni_closed(void);
/* With the GIL, before this thread takes a lock of vmscope's (0, or -1 with MemoryError) and after it has given it back. */
int jni_hold(void);
void jni_let_go(void);
/* With the GIL, after an agent's function: 0, or -1 with what was put aside raised again. */
int jni_raise_aside(Native *native);
/* Those that an agent opens itself; it can close none but its own: whether there was one. */
#define OWN_FRAME (UINT32_C(1) << 31)
int jni_push_own_frame(Native *native);
int jni_pop_own_frame(Native *native);
/* How many frames are not the agent's own: its calls that have not returned, and what attaching it began. */
uint32_t jni_calls(const Native *native);
/* Where the innermost frame's references begin. */
uint32_t jni_frame_begin(const Native *native);

/* -- handles (handles.c): with the GIL ------------------------------------------------------------ */

enum { LOCAL = 1, GLOBAL = 2, WEAK = 3 }; /* the lowest two bits of a reference: it is not an address */

/* A new reference to an object, as a handle; NULL for NULL and None, and without memory. */
void *jni_local(Native *native, PyObject *object);
void *jni_global(PyObject *object);
void *jni_weak(PyObject *object);
/* What a handle refers to, borrowed; NULL with `*found` 0 for one that is not, or no longer, a reference of this thread
 * or of all. A null handle, and a weak one whose object has gone, are found, and NULL. */
PyObject *jni_object(Native *native, const void *handle, int *found);
/* Has machine.thread_types, for which references to threads look; whoever uses one gets the program's own object. */
int jni_know_threads(PyObject *machine);
int jni_kind(Native *native, const void *handle); /* LOCAL, GLOBAL, WEAK, or 0 */
/* What is wrong with a handle that was not found, in words. */
const char *jni_wrong(const Native *native, const void *handle);
/* Deletes a reference; whether there was one. */
int jni_delete(Native *native, const void *handle);

static inline void *
jni_handle(uint32_t place, uint16_t serial, uint16_t number, int kind)
{
    return (void *)((uintptr_t)number << 48 | (uintptr_t)serial << 32 | (uintptr_t)place << 2 | (uintptr_t)kind);
}

/* Ids live as long as the process, and keep what they name alive. 0 without memory, with an exception set. */
void *jni_method_id(PyObject *method);
/* As jni_method_id for a code object that has an id already; NULL where it takes more than a look. */
extern Py_ssize_t jni_extra;
static inline void *
jni_known_method_id(PyObject *code)
{
#ifndef Py_GIL_DISABLED
    const struct { /* CPython's own */
        Py_ssize_t count;
        void *values[1];
    } *extras = PyCode_Check(code) ? ((PyCodeObject *)code)->co_extra : NULL;
    if (extras != NULL && jni_extra >= 0 && jni_extra < extras->count) {
        return extras->values[jni_extra];
    }
#else
    (void)code;
#endif
    return NULL;
}
PyObject *jni_method(const void *id); /* borrowed; NULL for what is none */
/* The types of the arguments that the calling library calls it with, a letter each: 1; 0 for what cannot be called, or
 * with an exception set. */
#define MOST_TYPES 255
int jni_types(const void *id, char types[MOST_TYPES + 1]);

/* An agent's callback for walks of the heap, behind what Python has of it, by its place among those (heap_callbacks.c);
 * NULL for one that is written in Python. */
void (*jni_heap_function(PyObject *callback, int kind))(void);

/* C's arguments for a function in Python: each stands where its kind says, the member of a Value. With the GIL. */
PyObject *jni_arguments(int count, const Value *values, const char *kinds); /* memory.c */

/* -- environments (environments.c) ---------------------------------------------------------------- */

#define ENVIRONMENT_MAGIC UINT64_C(0x766d73636f706531)

/* What a jvmtiEnv* points to. Never freed, as agents go on calling; reused long after it was disposed of. */
typedef struct {
    const void *const *functions;
    uint64_t magic;
    _Atomic int phase; /* the VM's, as this environment sees it */
    _Atomic int disposed;
    _Atomic uint64_t held; /* capabilities */
    _Atomic(void *) storage;
    PyObject *environment; /* the tool.Environment */
} Environment;

/* The checks that every function begins with, in HotSpot's order: phase, thread, disposal, capability. 0 or the error.
 * Functions for memory, raw monitors, storage and time need no thread that is attached; what asks for the current thread's
 * processor time works in callbacks in which nothing of Python may be touched, too. */
enum { NO_THREAD = 0, THREAD = 1, THREAD_OR_CALLBACK = 2 };
int jni_enter(Environment *environment, int slot, int needs);
/* Checks, and calls the function in Python: machine.function(environment, slot, arguments). */
int32_t jni_forward(Environment *environment, int slot, int count, const Value *arguments, const char *kinds);

extern PyObject *jni_bridge; /* what serves calls, set by start(); NULL before */
extern const void *const jvmti_functions[JVMTI_SLOTS];
extern const void *const jvmti_extensions[JVMTI_EXTENSIONS];
extern const void *jni_functions[JNI_SLOTS];
extern const void *const *jni_java_vm; /* a JavaVM: a pointer to the table */

void jni_report(const char *format, ...); /* with the GIL, as PyErr_Format: goes to machine.report(text) */

/* Each part's functions of the module; 0, or -1 with an exception set. */
int jni_add_threads(PyObject *module);
int jni_add_handles(PyObject *module);
int jni_add_environments(PyObject *module);
int jni_add_callbacks(PyObject *module);
int jni_add_heap_callbacks(PyObject *module);
int jni_add_memory(PyObject *module);
int jni_add_library(PyObject *module);
int jni_add_raw_monitors(PyObject *module);
int jni_add_java_vm(PyObject *module);
int jni_add_jnienv(PyObject *module);

#endif
