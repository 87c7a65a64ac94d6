/* Types of events that are committed from Python code, with the GIL. One that no recorder has is off. */
#define _GNU_SOURCE
#include "flight/recorder.h"

#ifdef HAS_STACKS

#include <stddef.h>
#include <structmember.h>

#define MOST_FIELDS 32
#define MOST_TEXT 65536 /* bytes of one text; the rest of it is left out */

typedef struct {
    PyObject_HEAD Recorder *recorder;
    uint32_t number;
    char fields[MOST_FIELDS + 1];
    Py_ssize_t values; /* how many of the fields are given */
    char enabled, stack;
    long long threshold; /* ns */
} EventType;

/* -- values --------------------------------------------------------------------------------------- */

static const char *
text_of(PyObject *value, Py_ssize_t *length)
{
    const char *text = PyUnicode_AsUTF8AndSize(value, length);
    if (text == NULL) { /* it has surrogates */
        PyErr_Clear();
        text = "?";
        *length = 1;
    }
    return text;
}

static int
put_text(Bytes *to, PyObject *value)
{
    Py_ssize_t length;
    if (value == Py_None) {
        put_string(to, NULL, 0);
        return 0;
    }
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "a str or None is wanted, not %.100s", Py_TYPE(value)->tp_name);
        return -1;
    }
    const char *text = text_of(value, &length);
    if (length > MOST_TEXT) { /* cut between two characters */
        for (length = MOST_TEXT; (text[length] & 0xC0) == 0x80; length--) {
        }
    }
    put_string(to, text, (size_t)length);
    return 0;
}

static int
put_class(Recorder *recorder, Bytes *to, PyObject *value)
{
    char name[1024];
    Py_ssize_t length = 0;
    if (value == Py_None) {
        put_number(to, 0);
        return 0;
    }
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "the name of a class is wanted, not %.100s", Py_TYPE(value)->tp_name);
        return -1;
    }
    const char *text = text_of(value, &length);
    length = length < (Py_ssize_t)sizeof name ? length : (Py_ssize_t)sizeof name;
    for (Py_ssize_t i = 0; i < length; i++) {
        name[i] = text[i] == '.' ? '/' : text[i];
    }
    put_number(to, vmscope_chunk_class(&recorder->chunk, name, (size_t)length));
    return 0;
}

/* A thread by its ident; an event of one that ended is of none. */
static int
put_thread(Recorder *recorder, Bytes *to, PyObject *value)
{
    unsigned long ident = PyLong_AsUnsignedLong(value);
    if (ident == (unsigned long)-1 && PyErr_Occurred()) {
        return -1;
    }
    uint32_t number = 0;
    for (PyThreadState *state = PyThreadState_Get()->interp->threads.head; state != NULL && number == 0;
         state = state->next) {
        if (state->thread_id == ident) {
            number = vmscope_chunk_thread(&recorder->chunk, state->id, ident, (int64_t)state->native_thread_id);
        }
    }
    put_number(to, number);
    return 0;
}

static int
put_float(Bytes *to, PyObject *value, char kind)
{
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (kind == 'f') {
        float single = (float)number;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        put_word(to, bits, 4);
    } else {
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        put_word(to, bits, 8);
    }
    return 0;
}

static int
put_integer(Bytes *to, PyObject *value)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    put_number(to, overflow > 0 ? INT64_MAX : overflow < 0 ? (uint64_t)INT64_MIN : (uint64_t)number);
    return 0;
}

static int
put_value(Recorder *recorder, Bytes *to, PyObject *value, char kind)
{
    int truth;
    switch (kind) {
    case 'l':
        return put_integer(to, value);
    case 'd':
    case 'f':
        return put_float(to, value, kind);
    case 'b':
        truth = PyObject_IsTrue(value);
        put_byte(to, truth > 0);
        return truth < 0 ? -1 : 0;
    case 's':
        return put_text(to, value);
    case 'c':
        return put_class(recorder, to, value);
    default:
        return put_thread(recorder, to, value);
    }
}

/* -- an event ------------------------------------------------------------------------------------- */

/* The stack of the running thread. */
static uint32_t
current_stack(Recorder *recorder)
{
    Snapshot *snapshot = recorder->current.snapshot;
    PyThreadState *state = PyThreadState_Get();
    if (!vmscope_copy_snapshot(snapshot, state->interp, recorder->depth, state->id) || snapshot->thread_count == 0 ||
        !vmscope_name_snapshot(snapshot)) {
        return 0;
    }
    return vmscope_flight_stack(recorder, &recorder->current, &snapshot->threads[0]);
}

static int
put_fields(EventType *self, Bytes *to, int64_t start, int64_t end, PyObject *const *values)
{
    PyThreadState *state = PyThreadState_Get();
    for (const char *field = self->fields; *field != '\0'; field++) {
        switch (*field) {
        case 'D':
            put_number(to, end > start ? (uint64_t)(end - start) : 0);
            break;
        case 'T':
            put_number(to, vmscope_chunk_thread(&self->recorder->chunk, state->id, state->thread_id,
                                                (int64_t)state->native_thread_id));
            break;
        case 'K':
            put_number(to, self->stack ? current_stack(self->recorder) : 0);
            break;
        default:
            if (put_value(self->recorder, to, *values++, *field) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* True, False or NULL. */
static PyObject *
put_event(EventType *self, int64_t start, int64_t end, PyObject *const *values)
{
    if (end - start < self->threshold || self->recorder == NULL || !self->recorder->recording) {
        Py_RETURN_FALSE;
    }
    Bytes event = {0};
    size_t at = begin_event(&event, self->number);
    put_number(&event, (uint64_t)start);
    pthread_mutex_lock(&self->recorder->mutex);
    int status = put_fields(self, &event, start, end, values);
    if (status == 0 && end_event(&event, at)) {
        put_bytes(&self->recorder->chunk.events, event.data, event.size);
        self->recorder->chunk.events.failed = 0;
    }
    pthread_mutex_unlock(&self->recorder->mutex);
    bytes_free(&event);
    if (status < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static int
check_count(const EventType *self, Py_ssize_t count)
{
    if (count != self->values) {
        PyErr_Format(PyExc_TypeError, "%zd values are wanted, not %zd", self->values, count);
        return 0;
    }
    return 1;
}

static PyObject *
commit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    EventType *self = (EventType *)object;
    if (!self->enabled) {
        Py_RETURN_FALSE;
    }
    if (!check_count(self, count - 2)) {
        return NULL;
    }
    int64_t start = PyLong_AsLongLong(args[0]);
    int64_t end = args[1] == Py_None ? start : PyLong_AsLongLong(args[1]);
    return PyErr_Occurred() ? NULL : put_event(self, start, end, args + 2);
}

/* The keyword argument start, or now; -1 with an exception. */
static int64_t
given_start(PyObject *names, PyObject *const *values, int64_t now)
{
    if (names == NULL || PyTuple_GET_SIZE(names) == 0) {
        return now;
    }
    if (PyTuple_GET_SIZE(names) > 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "start") != 0) {
        PyErr_SetString(PyExc_TypeError, "the one keyword argument is start");
        return -1;
    }
    return PyLong_AsLongLong(values[0]);
}

static PyObject *
commit_now(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    EventType *self = (EventType *)object;
    if (!self->enabled) {
        Py_RETURN_FALSE;
    }
    if (!check_count(self, count)) {
        return NULL;
    }
    int64_t now = vmscope_now(), start = given_start(names, args + count, now);
    return start == -1 && PyErr_Occurred() ? NULL : put_event(self, start, now, args);
}

/* -- the type ------------------------------------------------------------------------------------- */

static void
event_type_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)((EventType *)object)->recorder);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"commit", (PyCFunction)(void (*)(void))commit, METH_FASTCALL,
     "commit($self, start, end, /, *values)\n--\n\nWrites an event, with its thread and stack where the type has them. "
     "start and end are ns of time.monotonic_ns();\nend is None where nothing lasts. False where the type is not "
     "enabled, or it did not last as long as the threshold."},
    {"commit_now", (PyCFunction)(void (*)(void))commit_now, METH_FASTCALL | METH_KEYWORDS,
     "commit_now($self, /, *values, start=None)\n--\n\nThe same of an event that ends now, and began at start or now."},
    {NULL},
};

static PyMemberDef members[] = {
    {"enabled", T_BOOL, offsetof(EventType, enabled), 0, "Whether events of this type are recorded."},
    {"stack", T_BOOL, offsetof(EventType, stack), 0, "Whether they have a stack trace."},
    {"threshold", T_LONGLONG, offsetof(EventType, threshold), 0, "ns that an event has to last."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, event_type_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_doc,
     "A type of events, made by event_type(fields): a letter for each field after the start: "
     "D duration,\nT the running thread, K its stack; by value: l integer, d and f floating, b truth, s text, "
     "c name of a class, t ident of a thread."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "vmscope.native.EventType",
    .basicsize = sizeof(EventType),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyTypeObject *event_types; /* made for the first one, in the main interpreter; kept */

PyObject *
vmscope_flight_event_type(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *fields;
    if (!PyArg_ParseTuple(args, "s", &fields)) {
        return NULL;
    }
    if (!vmscope_in_main_interpreter()) {
        PyErr_SetString(PyExc_RuntimeError, "only the main interpreter records events");
        return NULL;
    }
    if (strlen(fields) > MOST_FIELDS || strspn(fields, "DTKldfbsct") != strlen(fields)) {
        return PyErr_Format(PyExc_ValueError, "%s: up to %d of DTKldfbsct", fields, MOST_FIELDS);
    }
    if (event_types == NULL) {
        event_types = (PyTypeObject *)PyType_FromSpec(&spec);
    }
    EventType *self = event_types == NULL ? NULL : (EventType *)event_types->tp_alloc(event_types, 0);
    if (self != NULL) {
        strcpy(self->fields, fields);
        for (const char *field = fields; *field != '\0'; field++) {
            self->values += strchr("DTK", *field) == NULL;
        }
    }
    return (PyObject *)self;
}

PyObject *
vmscope_flight_adopt(PyObject *recorder, PyObject *args)
{
    EventType *self;
    unsigned int number;
    if (event_types == NULL || !PyArg_ParseTuple(args, "O!I", event_types, &self, &number)) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "no event type was made");
    }
    self->number = number;
    Py_XSETREF(self->recorder, (Recorder *)Py_NewRef(recorder));
    Py_RETURN_NONE;
}

#endif
