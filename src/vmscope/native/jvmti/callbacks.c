/* An agent's event callbacks, as callables that an environment can be given.
 *
 * The GIL is kept in those that come so often that giving it away would cost more than they do; an agent's raw monitors
 * give it away where they have to wait. In all others the agent's code runs without it, as it does in a JVM. */
#include "attributes.h"
#include "jni/interface.h"
#include "jni/gil.h"

#include <structmember.h>

enum {
    VM_INIT = 50,
    VM_DEATH = 51,
    THREAD_START = 52,
    THREAD_END = 53,
    CLASS_FILE_LOAD_HOOK = 54,
    CLASS_LOAD = 55,
    CLASS_PREPARE = 56,
    VM_START = 57,
    EXCEPTION = 58,
    EXCEPTION_CATCH = 59,
    SINGLE_STEP = 60,
    FRAME_POP = 61,
    BREAKPOINT = 62,
    FIELD_ACCESS = 63,
    FIELD_MODIFICATION = 64,
    METHOD_ENTRY = 65,
    METHOD_EXIT = 66,
    DATA_DUMP_REQUEST = 71,
    MONITOR_WAIT = 73,
    MONITOR_WAITED = 74,
    MONITOR_CONTENDED_ENTER = 75,
    MONITOR_CONTENDED_ENTERED = 76,
    RESOURCE_EXHAUSTED = 80,
    GARBAGE_COLLECTION_START = 81,
    GARBAGE_COLLECTION_FINISH = 82,
    OBJECT_FREE = 83,
    VM_OBJECT_ALLOC = 84,
    SAMPLED_OBJECT_ALLOC = 86,
    RESUME = 100, /* extension events */
    YIELD = 101,
    CALL_C = 102,
    RETURN_C = 103,
    RAISE_C = 104,
    LAST_EVENT = RAISE_C,
};

#define FIRST_EVENT VM_INIT
#define LIVE 4 /* the phase */
#define MOST_ARGUMENTS 8

/* What each event's callback gets after the environments. Objects: o a reference, m a method, f a field of the class
 * before it, v a value. Numbers: l a location or other jlong, i an int, z a boolean. Text: s, and n, a module's name as
 * Java has it. */
static const char *const kinds[LAST_EVENT + 1] = {
    [VM_INIT] = "o",
    [VM_DEATH] = "",
    [THREAD_START] = "o",
    [THREAD_END] = "o",
    [CLASS_FILE_LOAD_HOOK] = "oonob",
    [CLASS_LOAD] = "oo",
    [CLASS_PREPARE] = "oo",
    [VM_START] = "",
    [EXCEPTION] = "omloml",
    [EXCEPTION_CATCH] = "omlo",
    [SINGLE_STEP] = "oml",
    [FRAME_POP] = "omz",
    [BREAKPOINT] = "oml",
    [FIELD_ACCESS] = "omloof",
    [FIELD_MODIFICATION] = "omloofo",
    [METHOD_ENTRY] = "om",
    [METHOD_EXIT] = "omzo",
    [DATA_DUMP_REQUEST] = "",
    [MONITOR_WAIT] = "ool",
    [MONITOR_WAITED] = "ooz",
    [MONITOR_CONTENDED_ENTER] = "oo",
    [MONITOR_CONTENDED_ENTERED] = "oo",
    [RESOURCE_EXHAUSTED] = "is",
    [GARBAGE_COLLECTION_START] = "",
    [GARBAGE_COLLECTION_FINISH] = "",
    [OBJECT_FREE] = "l",
    [VM_OBJECT_ALLOC] = "oool",
    [SAMPLED_OBJECT_ALLOC] = "oool",
    [RESUME] = "oml",
    [YIELD] = "omlo",
    [CALL_C] = "omlo",
    [RETURN_C] = "omlo",
    [RAISE_C] = "omlo",
};

/* Those that come in the middle of what Python does; the agent may call few functions there. */
static int
without_python(int event)
{
    return event == GARBAGE_COLLECTION_START || event == GARBAGE_COLLECTION_FINISH || event == OBJECT_FREE;
}

static int
keeps_gil(int event)
{
    return without_python(event) || event == METHOD_ENTRY || event == METHOD_EXIT || event == SINGLE_STEP ||
           event == VM_OBJECT_ALLOC || event == SAMPLED_OBJECT_ALLOC || event >= RESUME;
}

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    Environment *environment;
    int event;
    void (*function)(void);
} Callback;

static PyTypeObject *callback_type;

/* Text in modified UTF-8, which `*holder` (one for each event) keeps where the object itself does not have it so. */
static const char *
modified(PyObject *text, PyObject **holder)
{
    Py_ssize_t size;
    if (PyUnicode_IS_ASCII(text)) {
        const char *ascii = PyUnicode_AsUTF8AndSize(text, &size);
        if (ascii == NULL || (Py_ssize_t)strlen(ascii) == size) {
            return ascii;
        }
    }
    *holder = vmscope_call_method(jni_bridge, "encoded", "(O)", text);
    return *holder == NULL ? NULL : PyBytes_AsString(*holder);
}

static int
convert(Native *native, char kind, PyObject *object, PyObject *before, Value *value, PyObject **holder)
{
    switch (kind) {
    case 'o':
        value->l = jni_local(native, object);
        return value->l == NULL && object != Py_None ? -1 : 0;
    case 'm':
        value->l = object == Py_None ? NULL : jni_method_id(object);
        return value->l == NULL && object != Py_None ? -1 : 0;
    case 'f': {
        PyObject *id = vmscope_call_method(jni_bridge, "field_id", "(OO)", before, object);
        value->l = id == NULL ? NULL : PyLong_AsVoidPtr(id);
        Py_XDECREF(id);
        return PyErr_Occurred() ? -1 : 0;
    }
    case 's':
        value->l = object == Py_None ? NULL : (void *)(uintptr_t)modified(object, holder);
        return PyErr_Occurred() ? -1 : 0;
    case 'n':
        *holder = vmscope_call_method(jni_bridge, "class_name", "(O)", object);
        value->l = *holder == NULL ? NULL : PyBytes_AsString(*holder);
        return value->l == NULL ? -1 : 0;
    case 'z':
        value->j = PyObject_IsTrue(object);
        return value->j < 0 ? -1 : 0;
    default:
        value->j = PyLong_AsLongLong(object);
        return value->j == -1 && PyErr_Occurred() ? -1 : 0;
    }
}

#define CALL(types, ...) ((void(*) types)self->function)(__VA_ARGS__)
#define P void *

/* The environment, the JNIEnv, and the arguments, in the types that jvmti.h has for them. */
static void
call(const Callback *self, Native *native, const Value *v)
{
    Environment *e = self->environment;
    switch (self->event) {
    case VM_DEATH:
    case VM_START:
        CALL((P, P), e, native);
        break;
    case DATA_DUMP_REQUEST:
    case GARBAGE_COLLECTION_START:
    case GARBAGE_COLLECTION_FINISH:
        CALL((P), e);
        break;
    case VM_INIT:
    case THREAD_START:
    case THREAD_END:
        CALL((P, P, P), e, native, v[0].l);
        break;
    case CLASS_LOAD:
    case CLASS_PREPARE:
    case METHOD_ENTRY:
    case MONITOR_CONTENDED_ENTER:
    case MONITOR_CONTENDED_ENTERED:
        CALL((P, P, P, P), e, native, v[0].l, v[1].l);
        break;
    case EXCEPTION:
        CALL((P, P, P, P, int64_t, P, P, int64_t), e, native, v[0].l, v[1].l, v[2].j, v[3].l, v[4].l, v[5].j);
        break;
    case EXCEPTION_CATCH:
        CALL((P, P, P, P, int64_t, P), e, native, v[0].l, v[1].l, v[2].j, v[3].l);
        break;
    case SINGLE_STEP:
    case BREAKPOINT:
    case MONITOR_WAIT:
        CALL((P, P, P, P, int64_t), e, native, v[0].l, v[1].l, v[2].j);
        break;
    case FRAME_POP:
    case MONITOR_WAITED:
        CALL((P, P, P, P, uint8_t), e, native, v[0].l, v[1].l, (uint8_t)v[2].j);
        break;
    case METHOD_EXIT:
        CALL((P, P, P, P, uint8_t, Value), e, native, v[0].l, v[1].l, (uint8_t)v[2].j, v[3]);
        break;
    case FIELD_ACCESS:
        CALL((P, P, P, P, int64_t, P, P, P), e, native, v[0].l, v[1].l, v[2].j, v[3].l, v[4].l, v[5].l);
        break;
    case FIELD_MODIFICATION:
        CALL((P, P, P, P, int64_t, P, P, P, char, Value), e, native, v[0].l, v[1].l, v[2].j, v[3].l, v[4].l, v[5].l,
             'L', v[6]);
        break;
    case VM_OBJECT_ALLOC:
    case SAMPLED_OBJECT_ALLOC:
        CALL((P, P, P, P, P, int64_t), e, native, v[0].l, v[1].l, v[2].l, v[3].j);
        break;
    case OBJECT_FREE:
        CALL((P, int64_t), e, v[0].j);
        break;
    case RESUME: /* their type in jvmti.h is that of a function with more arguments than it names */
        CALL((P, ...), e, native, v[0].l, v[1].l, v[2].j);
        break;
    case YIELD:
    case CALL_C:
    case RETURN_C:
    case RAISE_C:
        CALL((P, ...), e, native, v[0].l, v[1].l, v[2].j, v[3].l);
        break;
    case RESOURCE_EXHAUSTED:
        CALL((P, P, int32_t, const void *, P), e, native, (int32_t)v[0].j, NULL, v[1].l);
        break;
    default:
        break;
    }
}

/* Gives back the new class data, or None. */
static PyObject *
call_hook(const Callback *self, Native *native, PyObject *const *arguments, const Value *v)
{
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[4], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    int32_t length = 0;
    unsigned char *changed = NULL;
    PyThreadState *state = PyEval_SaveThread();
    CALL((P, P, P, P, P, P, int32_t, P, int32_t *, unsigned char **), self->environment, native, v[0].l, v[1].l, v[2].l,
         v[3].l, (int32_t)data.len, data.buf, &length, &changed);
    jni_take_gil(state);
    PyBuffer_Release(&data);
    if (changed == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *bytes = length < 0 ? PyErr_Format(PyExc_ValueError, "%d bytes are no class data", (int)length)
                                 : PyBytes_FromStringAndSize((const char *)changed, length);
    free(changed);
    return bytes;
}

/* -- those of the collector, while this thread has a lock of vmscope's ------------------------------------ */

typedef struct Postponed {
    Callback *callback;
    Value values[1];
} Postponed;

static int
postpone(Native *native, Callback *self, const Value *values)
{
    if (native->postponed_count == native->postponed_room) {
        uint32_t room = native->postponed_room ? 2 * native->postponed_room : 16;
        Postponed *postponed = realloc(native->postponed, room * sizeof *postponed);
        if (postponed == NULL) {
            return -1;
        }
        native->postponed = postponed;
        native->postponed_room = room;
    }
    Postponed *place = &native->postponed[native->postponed_count++];
    place->callback = (Callback *)Py_NewRef(self);
    place->values[0] = self->event == OBJECT_FREE ? values[0] : (Value){.j = 0};
    return 0;
}

static void
call_without_python(const Callback *self, Native *native, const Value *values)
{
    int before = native->without_python;
    native->without_python = 1;
    call(self, native, values);
    native->without_python = before;
}

static void
call_postponed(Native *native)
{
    while (native->held == 0 && native->postponed_count > 0) {
        Postponed first = native->postponed[0];
        native->postponed_count--;
        memmove(native->postponed, native->postponed + 1, native->postponed_count * sizeof first);
        const Environment *environment = first.callback->environment;
        if (!atomic_load(&environment->disposed) && atomic_load(&environment->phase) == LIVE) {
            call_without_python(first.callback, native, first.values);
        }
        Py_DECREF(first.callback);
    }
}

int
jni_hold(void)
{
    if (jni_bridge == NULL) {
        return 0;
    }
    Native *native = jni_native();
    if (native == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    native->held++;
    return 0;
}

void
jni_let_go(void)
{
    Native *native = jni_here;
    if (native != NULL && native->held > 0 && --native->held == 0) { /* 0: it was taken before there were agents */
        call_postponed(native);
    }
}

static PyObject *callback_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names);

/* The same for a method's entry, which comes most often: one reference, in a frame of its own. */
static PyObject *
entry_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names)
{
    const Callback *self = (Callback *)object;
    Native *native = jni_here;
    if (native == NULL || native->depth == native->room || native->count == native->capacity || names != NULL ||
        PyVectorcall_NARGS(flags) != 3) {
        return callback_call(object, arguments, flags, names);
    }
    void *method = jni_known_method_id(arguments[2]);
    if (method == NULL && (method = jni_method_id(arguments[2])) == NULL) {
        return NULL;
    }
    uint32_t place = native->frames[native->depth++] = native->count++;
    native->locals[place] = Py_NewRef(arguments[1]);
    void *thread = jni_handle(place, native->serials[place], native->number, LOCAL);
    ((void (*)(P, P, P, P))self->function)(self->environment, native, thread, method);
    if (native->pending != NULL) {
        jni_drop_pending(native, self->environment, self->event);
    }
    if (native->count == place + 1 && native->locals[place] == arguments[1]) {
        native->depth--;
        native->count--;
        native->serials[place]++;
        Py_DECREF(arguments[1]);
    } else {
        jni_pop_frame(native);
    }
    if (native->aside != NULL) {
        (void)jni_raise_aside(native);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
callback_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names)
{
    Callback *self = (Callback *)object;
    const char *kind = kinds[self->event];
    Py_ssize_t count = (Py_ssize_t)strlen(kind);
    if (names != NULL || PyVectorcall_NARGS(flags) != count + 1) {
        PyErr_Format(PyExc_TypeError, "a callback for event %d gets %zd arguments", self->event, count + 1);
        return NULL;
    }
    Native *native = jni_native();
    if (native == NULL || jni_push_frame(native) < 0) {
        return PyErr_NoMemory();
    }
    if (!keeps_gil(self->event)) {
        jni_tidy();
    }
    arguments++; /* the environment: this one's */
    Value values[MOST_ARGUMENTS];
    PyObject *result = NULL, *text = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *before = i ? arguments[i - 1] : NULL;
        if (kind[i] != 'b' && convert(native, kind[i], arguments[i], before, &values[i], &text) < 0) {
            goto done;
        }
    }
    if (self->event == CLASS_FILE_LOAD_HOOK) {
        result = call_hook(self, native, arguments, values);
    } else {
        if (without_python(self->event)) {
            if (native->held == 0) {
                call_without_python(self, native, values);
            } else if (postpone(native, self, values) < 0) {
                goto done;
            }
        } else if (keeps_gil(self->event)) {
            call(self, native, values);
        } else {
            PyThreadState *state = PyEval_SaveThread();
            call(self, native, values);
            jni_take_gil(state);
        }
        result = Py_NewRef(Py_None);
    }
    if (native->pending != NULL) {
        jni_drop_pending(native, self->environment, self->event);
    }
done:
    Py_XDECREF(text);
    jni_pop_frame(native);
    if (result == NULL && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    if (result != NULL && jni_raise_aside(native) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

static void
callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Callback, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot callback_slots[] = {
    {Py_tp_dealloc, callback_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, callback_members},
    {Py_tp_doc, "An agent's function for an event of its environment."},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "vmscope.native.jni.Callback",
    .basicsize = sizeof(Callback),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callback_slots,
};

static PyObject *
py_callback(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *environment, *function;
    int event;
    if (!PyArg_ParseTuple(arguments, "OiO", &environment, &event, &function)) {
        return NULL;
    }
    if (event < FIRST_EVENT || event > LAST_EVENT || kinds[event] == NULL) {
        PyErr_Format(PyExc_ValueError, "event %d is never sent", event);
        return NULL;
    }
    Callback *self = (Callback *)callback_type->tp_alloc(callback_type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = event == METHOD_ENTRY ? entry_call : callback_call;
    self->event = event;
    self->environment = PyLong_AsVoidPtr(environment);
    self->function = (void (*)(void))PyLong_AsVoidPtr(function);
    if (PyErr_Occurred()) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyMethodDef functions[] = {
    {"callback", py_callback, METH_VARARGS,
     "callback(environment, event, function): callable as the event's row says."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_callbacks(PyObject *module)
{
    callback_type = vmscope_add_type(module, &callback_spec, NULL);
    return callback_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
