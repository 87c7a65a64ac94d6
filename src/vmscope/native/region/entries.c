/* The bytes of a region's prologue and of a counter's entries, as wire/layout.py has them, in this machine's byte order. */
#include "attributes.h"
#include "native.h"

#include <string.h>

#define HEADER_SIZE 20

typedef struct {
    int32_t entry_length;
    int32_t name_offset;
    int32_t vector_length;
    int8_t data_type;
    int8_t flags;
    int8_t units;
    int8_t variability;
    int32_t data_offset;
} Header;

_Static_assert(sizeof(Header) == HEADER_SIZE, "an entry's header has no padding");

typedef struct {
    const char *name;
    Py_ssize_t name_length;
    const char *text; /* NULL: a number */
    Py_ssize_t text_length;
    int64_t number;
    PyObject *slot; /* borrowed; None where there is none */
    PyObject *cell; /* borrowed */
    Py_ssize_t length;
    Header header;
} Entry;

static int
refuse_name(PyObject *name)
{
    PyObject *errors = PyImport_ImportModule("vmscope.errors");
    PyObject *type = errors == NULL ? NULL : vmscope_attribute(errors, "CounterNameError");
    if (type != NULL) {
        PyErr_Format(type, "counter name %R is not printable ASCII without blanks; choose another", name);
    }
    Py_XDECREF(type);
    Py_XDECREF(errors);
    return -1;
}

static int
read_name(PyObject *name, Entry *out)
{
    out->name = PyUnicode_AsUTF8AndSize(name, &out->name_length);
    if (out->name == NULL) { /* not a text, or one with surrogates */
        return PyErr_ExceptionMatches(PyExc_UnicodeError) ? (PyErr_Clear(), refuse_name(name)) : -1;
    }
    for (Py_ssize_t i = 0; i < out->name_length; i++) {
        if (out->name[i] <= ' ' || out->name[i] > '~') {
            return refuse_name(name);
        }
    }
    return out->name_length == 0 ? refuse_name(name) : 0;
}

/* One of the header's bytes; -1 with an exception set where it does not fit. */
static int
read_code(PyObject *item, int8_t *out)
{
    long code = PyLong_AsLong(item);
    if (code == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (code < INT8_MIN || code > INT8_MAX) {
        PyErr_SetString(PyExc_OverflowError, "int too big to convert");
        return -1;
    }
    *out = (int8_t)code;
    return 0;
}

/* How long the entry is, and what its header says, once its name and value are known. */
static int
measure(NativeState *state, Entry *entry)
{
    Py_ssize_t start = HEADER_SIZE + entry->name_length + 1, room = sizeof entry->number;
    entry->header.data_type = 'J';
    if (entry->text == NULL) {
        start = (start + 7) & ~(Py_ssize_t)7;
    } else {
        room = entry->text_length + 1;
        if (PyObject_TypeCheck(entry->slot, state->text_slot) && ((TextSlot *)entry->slot)->capacity >= room) {
            room = (Py_ssize_t)((TextSlot *)entry->slot)->capacity + 1;
        }
        entry->header.data_type = 'B';
        entry->header.vector_length = (int32_t)room;
    }
    entry->length = (start + room + 7) & ~(Py_ssize_t)7;
    if (entry->length > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "int too big to convert");
        return -1;
    }
    entry->header.entry_length = (int32_t)entry->length;
    entry->header.name_offset = HEADER_SIZE;
    entry->header.flags = 1;
    entry->header.data_offset = (int32_t)start;
    return 0;
}

static int
read_entry(NativeState *state, PyObject *item, Entry *out)
{
    *out = (Entry){0};
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 6) {
        PyErr_SetString(PyExc_TypeError, "an entry is a tuple (name, value, units, variability, slot, cell)");
        return -1;
    }
    PyObject *value = PyTuple_GET_ITEM(item, 1);
    out->slot = PyTuple_GET_ITEM(item, 4);
    out->cell = PyTuple_GET_ITEM(item, 5);
    if (read_name(PyTuple_GET_ITEM(item, 0), out) < 0 || read_code(PyTuple_GET_ITEM(item, 2), &out->header.units) < 0 ||
        read_code(PyTuple_GET_ITEM(item, 3), &out->header.variability) < 0) {
        return -1;
    }
    if (PyLong_Check(value)) {
        out->number = PyLong_AsLongLong(value);
        if (out->number == -1 && PyErr_Occurred()) {
            return -1;
        }
    } else if (PyBytes_AsStringAndSize(value, (char **)&out->text, &out->text_length) < 0) {
        return -1;
    }
    return measure(state, out);
}

static void
write_entry(const Entry *entry, char *at)
{
    memset(at, 0, (size_t)entry->length);
    memcpy(at, &entry->header, sizeof entry->header);
    memcpy(at + HEADER_SIZE, entry->name, (size_t)entry->name_length);
    if (entry->text == NULL) {
        memcpy(at + entry->header.data_offset, &entry->number, sizeof entry->number);
    } else {
        memcpy(at + entry->header.data_offset, entry->text, (size_t)entry->text_length);
    }
}

/* Adds one entry's bytes to `data`, a binding to the list where a slot has its value; 0, or -1 with an exception set. */
static int
add_entry(NativeState *state, PyObject *item, PyObject **data, PyObject *bindings)
{
    Entry entry;
    if (read_entry(state, item, &entry) < 0) {
        return -1;
    }
    Py_ssize_t start = PyBytes_GET_SIZE(*data);
    if (_PyBytes_Resize(data, start + entry.length) < 0) {
        return -1;
    }
    write_entry(&entry, PyBytes_AS_STRING(*data) + start);
    if (entry.slot == Py_None) {
        return 0;
    }
    PyObject *binding = Py_BuildValue("OOn", entry.slot, entry.cell, start + entry.header.data_offset);
    int failed = binding == NULL || PyList_Append(bindings, binding) < 0;
    Py_XDECREF(binding);
    return failed ? -1 : 0;
}

static PyObject *
encode_entries(PyObject *module, PyObject *items)
{
    PyObject *data = PyBytes_FromStringAndSize(NULL, 0);
    PyObject *bindings = PyList_New(0);
    PyObject *entries = PySequence_Tuple(items);
    int failed = data == NULL || bindings == NULL || entries == NULL;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(entries); i++) {
        failed = add_entry(vmscope_state(module), PyTuple_GET_ITEM(entries, i), &data, bindings) < 0;
    }
    PyObject *bound = failed ? NULL : PyList_AsTuple(bindings);
    PyObject *result = bound == NULL ? NULL : PyTuple_Pack(2, data, bound);
    Py_XDECREF(bound);
    Py_XDECREF(entries);
    Py_XDECREF(bindings);
    Py_XDECREF(data);
    return result;
}

static PyMethodDef functions[] = {
    {"encode_entries", encode_entries, METH_O,
     "encode_entries(entries): the bytes of entries (name, value, units, variability, slot, cell), and the bindings "
     "(slot, cell, offset) of those that have a slot."},
    {NULL, NULL, 0, NULL},
};

/* Of a region that has no entries yet. */
static PyObject *
empty_prologue(void)
{
    const struct {
        unsigned char magic[4], order, major, minor, accessible;
        int32_t used, overflow;
        int64_t mod_time_stamp;
        int32_t entry_offset, num_entries;
    } prologue = {
        .magic = {0xca, 0xfe, 0xc0, 0xc0},
        .order = PY_LITTLE_ENDIAN,
        .major = 2,
        .entry_offset = sizeof prologue,
    };
    _Static_assert(sizeof prologue == 32, "the prologue has no padding");
    return PyBytes_FromStringAndSize((const char *)&prologue, sizeof prologue);
}

int
vmscope_add_entries(PyObject *module)
{
    PyObject *prologue = empty_prologue();
    int added = PyModule_AddObjectRef(module, "EMPTY_PROLOGUE", prologue);
    Py_XDECREF(prologue);
    return added < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
