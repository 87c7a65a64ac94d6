/* scan, read, find, decode_text: a region's entries and values as Python objects. The walk itself is walk.c. */
#include "attributes.h"
#include "native.h"

#include "region/walk.h"

#include <string.h>

/* -- text --------------------------------------------------------------------------------------- */

#define SHORT 512

/* Decodes a copy: the bytes themselves may be changing. */
static PyObject *
text_from(const unsigned char *raw, int64_t size)
{
    unsigned char local[SHORT], *copy = local;
    Py_ssize_t length = (Py_ssize_t)size;
    if (length > SHORT) {
        copy = PyMem_Malloc((size_t)length);
        if (copy == NULL) {
            return PyErr_NoMemory();
        }
    }
    memcpy(copy, raw, (size_t)length);
    length = (Py_ssize_t)walk_squeeze(copy, length);
    PyObject *text = PyUnicode_DecodeUTF8((const char *)copy, length, "replace");
    if (copy != local) {
        PyMem_Free(copy);
    }
    return text;
}

/* -- names -------------------------------------------------------------------------------------- */

/* Regions share their names, so the last ones seen are kept as str, hash and all: a fixed table, in which
 * a name has two places. VMs of one kind also have them in one order, so the last walk's order is tried first.
 * The functions below are bound to both. */
#define PLACES 2048
#define LONGEST 96 /* bytes; a longer name is not kept */
#define ORDERED 1024

typedef struct {
    PyObject_HEAD
#ifdef Py_GIL_DISABLED
        PyMutex lock;
#endif
    PyObject *places[PLACES]; /* ASCII str or NULL */
    PyObject *order[ORDERED]; /* the same, by an entry's number in its walk */
} Names;

#ifdef Py_GIL_DISABLED
#define LOCK(names) PyMutex_Lock(&(names)->lock)
#define UNLOCK(names) PyMutex_Unlock(&(names)->lock)
#else
#define LOCK(names) ((void)(names))
#define UNLOCK(names) ((void)(names))
#endif

/* `words` is the name, padded with zeros to whole words. */
static size_t
place_of(const uint64_t *words, Py_ssize_t length)
{
    uint64_t hash = (uint64_t)length;
    for (Py_ssize_t i = 0; i * 8 < length; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (size_t)(hash >> 32) & (PLACES - 1);
}

static bool
is_name(PyObject *str, const void *raw, Py_ssize_t length)
{
    return str != NULL && PyUnicode_GET_LENGTH(str) == length &&
           memcmp(PyUnicode_1BYTE_DATA(str), raw, (size_t)length) == 0;
}

static PyObject *
name_kept(Names *names, const unsigned char *raw, Py_ssize_t length)
{
    uint64_t words[LONGEST / 8];
    if (length > 0) {
        words[(length - 1) / 8] = 0;
    }
    memcpy(words, raw, (size_t)length);
    size_t place = place_of(words, length);

    PyObject *found = NULL;
    LOCK(names);
    for (size_t i = 0; i < 2 && found == NULL; i++) {
        PyObject *kept = names->places[place ^ i];
        if (is_name(kept, words, length)) {
            found = Py_NewRef(kept);
        }
    }
    UNLOCK(names);
    if (found != NULL) {
        return found;
    }

    PyObject *name = text_from((const unsigned char *)words, length);
    if (name == NULL || !PyUnicode_IS_ASCII(name)) {
        return name;
    }
    LOCK(names);
    place ^= names->places[place] != NULL && names->places[place ^ 1] == NULL;
    PyObject *old = names->places[place];
    names->places[place] = Py_NewRef(name);
    UNLOCK(names);
    Py_XDECREF(old);
    return name;
}

/* `number` is the entry's in its walk. */
static PyObject *
name_from(Names *names, size_t number, const unsigned char *raw, int64_t size)
{
    if (size > LONGEST) {
        return text_from(raw, size);
    }
    if (number >= ORDERED) {
        return name_kept(names, raw, (Py_ssize_t)size);
    }
    PyObject *found = NULL;
    LOCK(names);
    if (is_name(names->order[number], raw, (Py_ssize_t)size)) {
        found = Py_NewRef(names->order[number]);
    }
    UNLOCK(names);
    if (found != NULL) {
        return found;
    }
    found = name_kept(names, raw, (Py_ssize_t)size);
    if (found != NULL && PyUnicode_IS_ASCII(found)) {
        LOCK(names);
        PyObject *old = names->order[number];
        names->order[number] = Py_NewRef(found);
        UNLOCK(names);
        Py_XDECREF(old);
    }
    return found;
}

static int
names_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    (void)self; /* a str refers to nothing */
    return 0;
}

static void
names_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (size_t i = 0; i < PLACES; i++) {
        Py_CLEAR(((Names *)self)->places[i]);
    }
    for (size_t i = 0; i < ORDERED; i++) {
        Py_CLEAR(((Names *)self)->order[i]);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* -- errors ------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *what;
} errors[] = {
    [WALK_MISALIGNED] = {"StructureError", "entry offset is not a multiple of 4"},
    [WALK_OUTSIDE] = {"StructureError", "entry offset lies outside the region"},
    [WALK_HEADER] = {"StructureError", "entry header runs past the region's end, which is"},
    [WALK_LENGTH] = {"StructureError", "entry length is negative or runs past the region's end"},
    [WALK_TYPE] = {"StructureError", "unknown type code"},
    [WALK_NAME_OFFSET] = {"StructureError", "name offset lies behind its entry"},
    [WALK_DATA_OFFSET] = {"StructureError", "data offset lies behind its entry"},
    [WALK_NAME] = {"StructureError", "name has no room or no end, with name offset"},
    [WALK_DATA_BEFORE] = {"StructureError", "data offset lies before the region"},
    [WALK_SCALAR_END] = {"StructureError", "value runs past the region's end, offset"},
    [WALK_VECTOR_LENGTH] = {"StructureError", "vector length is negative or runs past the region's end"},
    [WALK_BUDGET] = {"StructureError", "entries share too many bytes, entry length"},
    [WALK_NUMBER] = {"StructureError", "more entries than a region may have"},
    [WALK_VARIABILITY] = {"DataError", "unknown variability code"},
    [WALK_UNITS] = {"DataError", "unknown units code"},
    [WALK_VECTOR_VARIABILITY] = {"DataError", "vector with variability Monotonic"},
    [WALK_SCALAR_TYPE] = {"EntryTypeError", "scalar of a type other than J"},
    [WALK_VECTOR_TYPE] = {"EntryTypeError", "vector of a type other than B"},
    [WALK_VECTOR_UNITS] = {"EntryTypeError", "vector with other units than String"},
};

#define NAMED 256 /* bytes of a name that an error carries at most */

static void
set_error(WalkStatus status, const Walk *walk, const WalkEntry *entry)
{
    long long value = walk->error_value, offset = walk->error_offset;
    int64_t length = entry->name_length < NAMED ? entry->name_length : NAMED;
    PyObject *module = NULL, *type = NULL, *message = NULL, *args = NULL, *kwargs = NULL, *error = NULL;
    PyObject *name = text_from(walk->data + entry->name, length);
    if (name == NULL) {
        return;
    }
    const char *what = errors[status].what;
    if (PyUnicode_GET_LENGTH(name) > 0) {
        message = PyUnicode_FromFormat("%s: %lld (offset %lld, entry %R)", what, value, offset, name);
    } else {
        message = PyUnicode_FromFormat("%s: %lld (offset %lld)", what, value, offset);
    }
    if (message != NULL && (module = PyImport_ImportModule("vmscope.errors")) != NULL &&
        (type = vmscope_attribute(module, errors[status].type)) != NULL && (args = PyTuple_Pack(1, message)) != NULL &&
        (kwargs = Py_BuildValue("{sLsO}", "offset", offset, "entry", name)) != NULL &&
        (error = PyObject_Call(type, args, kwargs)) != NULL) {
        PyErr_SetObject(type, error);
    }
    Py_XDECREF(error);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(type);
    Py_XDECREF(module);
    Py_XDECREF(message);
    Py_DECREF(name);
}

/* -- the functions ------------------------------------------------------------------------------ */

#define LARGE (128 << 10) /* bytes */

/* Takes (buffer, offset, big), of `wanted` arguments; `view` is the caller's to release when 0 comes back. */
static int
begin(const char *function, PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted, Py_buffer *view, Walk *walk)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd positional arguments (%zd given)", function, wanted, count);
        return -1;
    }
    long long offset = PyLong_AsLongLong(args[1]);
    if (offset == -1 && PyErr_Occurred()) {
        return -1;
    }
    int big = PyObject_IsTrue(args[2]);
    if (big < 0 || PyObject_GetBuffer(args[0], view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    walk_init(walk, view->buf, (size_t)view->len, offset, big);
    return 0;
}

/* Whether the walk has an end. Asked first where there is much to walk: what cannot be read makes no objects. */
static bool
ends(const Py_buffer *view, const Walk *walk)
{
    if (view->len < LARGE) {
        return true;
    }
    Walk ahead = *walk;
    WalkEntry entry;
    WalkStatus status;
    do {
        status = walk_next(&ahead, &entry);
    } while (status == WALK_ENTRY);
    if (status != WALK_END) {
        set_error(status, &ahead, &entry);
        return false;
    }
    return true;
}

static PyObject *
tuple_from(Names *names, size_t number, const Walk *walk, const WalkEntry *entry)
{
    PyObject *tuple = PyTuple_New(8);
    if (tuple == NULL) {
        return NULL;
    }
    PyObject *items[] = {
        PyLong_FromLongLong(entry->offset),    name_from(names, number, walk->data + entry->name, entry->name_length),
        PyLong_FromLong(entry->data_type),     PyLong_FromLong(entry->units),
        PyLong_FromLong(entry->variability),   PyLong_FromLong(entry->flags),
        PyLong_FromLong(entry->vector_length), PyLong_FromLongLong(entry->value),
    };
    bool whole = true;
    for (Py_ssize_t i = 0; i < 8; i++) {
        whole = whole && items[i] != NULL;
        PyTuple_SET_ITEM(tuple, i, items[i]);
    }
    if (!whole) {
        Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *
scan(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    Walk walk;
    if (begin("scan", args, count, 3, &view, &walk) < 0) {
        return NULL;
    }
    if (!ends(&view, &walk)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    PyObject *result = NULL, *entries = PyList_New(0);
    WalkStatus status = WALK_ENTRY;
    for (size_t number = 0; entries != NULL && status == WALK_ENTRY; number++) {
        WalkEntry entry;
        status = walk_next(&walk, &entry);
        if (status == WALK_ENTRY) {
            PyObject *tuple = tuple_from((Names *)self, number, &walk, &entry);
            if (tuple == NULL || PyList_Append(entries, tuple) < 0) {
                Py_CLEAR(entries);
            }
            Py_XDECREF(tuple);
        } else if (status == WALK_END) {
            result = Py_BuildValue("OL", entries, (long long)walk.next);
        } else {
            set_error(status, &walk, &entry);
        }
    }
    Py_XDECREF(entries);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *
value_from(const Walk *walk, const WalkEntry *entry)
{
    return entry->vector_length == 0 ? PyLong_FromLongLong(walk_long(walk, entry))
                                     : text_from(walk->data + entry->value, walk_text_length(walk, entry));
}

static int
set_value(Names *names, size_t number, PyObject *values, const Walk *walk, const WalkEntry *entry)
{
    PyObject *value = value_from(walk, entry);
    if (value == NULL) {
        return -1;
    }
    PyObject *name = name_from(names, number, walk->data + entry->name, entry->name_length);
    int result = name == NULL ? -1 : PyDict_SetItem(values, name, value);
    Py_XDECREF(name);
    Py_DECREF(value);
    return result;
}

static PyObject *
read_values(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    Walk walk;
    if (begin("read", args, count, 3, &view, &walk) < 0) {
        return NULL;
    }
    if (!ends(&view, &walk)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    PyObject *values = PyDict_New();
    WalkStatus status = WALK_ENTRY;
    for (size_t number = 0; values != NULL && status == WALK_ENTRY; number++) {
        WalkEntry entry;
        status = walk_next(&walk, &entry);
        if (status == WALK_ENTRY) {
            if (set_value((Names *)self, number, values, &walk, &entry) < 0) {
                Py_CLEAR(values);
            }
        } else if (status != WALK_END) {
            set_error(status, &walk, &entry);
            Py_CLEAR(values);
        }
    }
    PyBuffer_Release(&view);
    return values;
}

typedef struct {
    const char *name;
    Py_ssize_t length;
    WalkEntry entry; /* the last of this name; its offset is -1 where there is none */
} Wanted;

static uint64_t
length_bit(int64_t length)
{
    return UINT64_C(1) << (length < 63 ? length : 63);
}

/* What is wanted of each name in a tuple, and the lengths of these as bits, the last for all that are longer. */
static Wanted *
wanted_from(PyObject *names, uint64_t *lengths)
{
    if (!PyTuple_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "find() takes a tuple of names");
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    Wanted *wanted = PyMem_Calloc((size_t)count + 1, sizeof *wanted);
    if (wanted == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *lengths = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        wanted[i].name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &wanted[i].length);
        if (wanted[i].name == NULL) {
            PyMem_Free(wanted);
            return NULL;
        }
        wanted[i].entry.offset = -1;
        *lengths |= length_bit(wanted[i].length);
    }
    return wanted;
}

/* Walks to the end or to an error, and leaves the last entry of each name that is wanted. */
static WalkStatus
take_wanted(Walk *walk, WalkEntry *entry, Wanted *wanted, Py_ssize_t count, uint64_t lengths)
{
    WalkStatus status;
    while ((status = walk_next(walk, entry)) == WALK_ENTRY) {
        if ((lengths & length_bit(entry->name_length)) == 0) {
            continue;
        }
        for (Py_ssize_t i = 0; i < count; i++) {
            if (wanted[i].length == entry->name_length &&
                memcmp(wanted[i].name, walk->data + entry->name, (size_t)entry->name_length) == 0) {
                wanted[i].entry = *entry;
            }
        }
    }
    return status;
}

static PyObject *
find_in(Walk *walk, PyObject *names, Wanted *wanted, uint64_t lengths)
{
    WalkEntry entry;
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    WalkStatus status = take_wanted(walk, &entry, wanted, count, lengths);
    PyObject *values = PyDict_New();
    for (Py_ssize_t i = 0; values != NULL && i < count; i++) {
        if (wanted[i].entry.offset >= 0) {
            PyObject *value = value_from(walk, &wanted[i].entry);
            if (value == NULL || PyDict_SetItem(values, PyTuple_GET_ITEM(names, i), value) < 0) {
                Py_CLEAR(values);
            }
            Py_XDECREF(value);
        }
    }
    if (values != NULL && status != WALK_END && PyDict_GET_SIZE(values) == 0) {
        set_error(status, walk, &entry);
        Py_CLEAR(values);
    }
    return values;
}

static PyObject *
find(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    Walk walk;
    uint64_t lengths;
    if (begin("find", args, count, 4, &view, &walk) < 0) {
        return NULL;
    }
    Wanted *wanted = wanted_from(args[3], &lengths);
    PyObject *values = wanted == NULL ? NULL : find_in(&walk, args[3], wanted, lengths);
    PyMem_Free(wanted);
    PyBuffer_Release(&view);
    return values;
}

static PyObject *
decode_text(PyObject *self, PyObject *raw)
{
    (void)self;
    Py_buffer view;
    if (PyObject_GetBuffer(raw, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    PyObject *text = text_from(view.buf, view.len);
    PyBuffer_Release(&view);
    return text;
}

static PyMethodDef functions[] = {
    {"scan", (PyCFunction)(void (*)(void))scan, METH_FASTCALL,
     "scan(buffer, offset, big, /)\n--\n\nThe entries from offset to a zero length or the end, and where that is."},
    {"read", (PyCFunction)(void (*)(void))read_values, METH_FASTCALL,
     "read(buffer, offset, big, /)\n--\n\nThe values of the entries that scan finds, by name."},
    {"find", (PyCFunction)(void (*)(void))find, METH_FASTCALL,
     "find(buffer, offset, big, names, /)\n--\n\nThe values of the entries of these names, of those before any "
     "damage."},
    {"decode_text", decode_text, METH_O,
     "decode_text(raw, /)\n--\n\nText as the JDK's reader decodes it: UTF-8, U+FFFD for what is malformed."},
};

static PyType_Slot names_slots[] = {
    {Py_tp_traverse, names_traverse},
    {Py_tp_dealloc, names_dealloc},
    {0, NULL},
};

static PyType_Spec names_spec = {
    .name = "vmscope.native._Names",
    .basicsize = sizeof(Names),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = names_slots,
};

int
vmscope_add_scan(PyObject *module)
{
    int result = -1;
    PyObject *module_name = PyModule_GetNameObject(module), *names = NULL;
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &names_spec, NULL);
    if (module_name == NULL || type == NULL || (names = type->tp_alloc(type, 0)) == NULL) {
        goto done;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        PyObject *function = PyCFunction_NewEx(&functions[i], names, module_name);
        int added = PyModule_AddObjectRef(module, functions[i].ml_name, function);
        Py_XDECREF(function);
        if (added < 0) {
            goto done;
        }
    }
    result = 0;
done:
    Py_XDECREF(names);
    Py_XDECREF(type);
    Py_XDECREF(module_name);
    return result;
}
