/* A heap dump's records of objects and classes. */
#include "heap/dump.h"

#ifdef HAS_OBJECTS

#include <stdlib.h>
#include <string.h>

#define LONGEST ((size_t)UINT32_MAX / 8 - 64) /* elements of an array: the length of a record has 32 bits */

static int
no_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

int
vmscope_dump_append(List *list, PyObject *object)
{
    if (list->length == list->room) {
        size_t room = list->room == 0 ? 64 : list->room * 2;
        PyObject **larger = realloc(list->items, room * sizeof *larger);
        if (larger == NULL) {
            return no_memory();
        }
        list->items = larger;
        list->room = room;
    }
    list->items[list->length++] = object;
    return 0;
}

/* -- how many references of an object have been found ----------------------------------------------- */

static Excess *
find_excess(Excess *table, unsigned bits, const PyObject *object)
{
    size_t mask = ((size_t)1 << bits) - 1, at = (size_t)(id_of(object) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits));
    while (table[at].object != NULL && table[at].object != object) {
        at = (at + 1) & mask;
    }
    return table + at;
}

static Excess *
excess_of(Dump *dump, PyObject *object)
{
    if (dump->excess == NULL || dump->excess_count * 2 >= (size_t)1 << dump->excess_bits) {
        unsigned bits = dump->excess == NULL ? 10 : dump->excess_bits + 1;
        Excess *larger = calloc((size_t)1 << bits, sizeof *larger);
        if (larger == NULL) {
            no_memory();
            return NULL;
        }
        for (size_t i = 0; dump->excess != NULL && i < (size_t)1 << dump->excess_bits; i++) {
            if (dump->excess[i].object != NULL) {
                *find_excess(larger, bits, dump->excess[i].object) = dump->excess[i];
            }
        }
        free(dump->excess);
        dump->excess = larger;
        dump->excess_bits = bits;
    }
    Excess *found = find_excess(dump->excess, dump->excess_bits, object);
    if (found->object == NULL) {
        *found = (Excess){object, MANY - 1};
        dump->excess_count++;
    }
    return found;
}

static int
count_reference(Dump *dump, PyObject *object, uint8_t *mark)
{
    if ((*mark & MANY) < MANY - 1) {
        ++*mark;
        return 0;
    }
    Excess *excess = excess_of(dump, object);
    if (excess == NULL) {
        return -1;
    }
    excess->count++;
    *mark |= MANY;
    return 0;
}

Py_ssize_t
vmscope_dump_count(Dump *dump, PyObject *object, uint8_t mark)
{
    return (mark & MANY) < MANY ? mark & MANY : find_excess(dump->excess, dump->excess_bits, object)->count;
}

/* -- names ------------------------------------------------------------------------------------------ */

int
vmscope_dump_name(Dump *dump, uint64_t id, const char *text, size_t length)
{
    vmscope_hprof_record(&dump->out, HPROF_UTF8, (uint32_t)(8 + length));
    vmscope_hprof_id(&dump->out, id);
    vmscope_hprof_bytes(&dump->out, text, length);
    return 0;
}

int
vmscope_dump_text(Dump *dump, uint64_t id, PyObject *text)
{
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        return vmscope_dump_name(dump, id, (const char *)PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text));
    }
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    if (bytes == NULL) {
        return -1;
    }
    vmscope_dump_name(dump, id, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

/* -- arrays ----------------------------------------------------------------------------------------- */

int
vmscope_dump_reach(Dump *dump, PyObject *object, int counted)
{
    uint8_t *mark = vmscope_mark(&dump->marks, object);
    if (mark == NULL) {
        return no_memory();
    }
    if (counted && PyType_IS_GC(Py_TYPE(object)) && count_reference(dump, object, mark) < 0) {
        return -1;
    }
    if (*mark & (KNOWN | SEEN)) {
        return 0;
    }
    *mark |= SEEN;
    const Class *class = vmscope_class(&dump->classes, Py_TYPE(object));
    if (class == NULL) {
        return -1;
    }
    return class->form == ATOM ? vmscope_dump_object(dump, object) : vmscope_dump_append(&dump->todo, object);
}

static int
reach_all(Dump *dump, PyObject *const *items, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (items[i] != NULL && vmscope_dump_reach(dump, items[i], 1) < 0) {
            return -1;
        }
    }
    return 0;
}

static void
begin_objects(Dump *dump, uint64_t id, size_t length)
{
    vmscope_hprof_part(&dump->out, HPROF_OBJECTS, 1 + 8 + 4 + 4 + 8 + 8 * length);
    vmscope_hprof_id(&dump->out, id);
    vmscope_hprof_put(&dump->out, NO_FRAMES, 4);
    vmscope_hprof_put(&dump->out, length, 4);
    vmscope_hprof_id(&dump->out, id_of_class(ARRAY_CLASS));
}

/* An array of these, which have been reached; its id, or 0 where there are none. */
static uint64_t
write_objects(Dump *dump, uint64_t id, PyObject *const *items, size_t length)
{
    length = length < LONGEST ? length : LONGEST;
    if (length == 0) {
        return 0;
    }
    begin_objects(dump, id, length);
    for (size_t i = 0; i < length; i++) {
        vmscope_hprof_id(&dump->out, id_of(items[i]));
    }
    return id;
}

static uint64_t
begin_bytes(Dump *dump, uint64_t id, size_t length)
{
    vmscope_hprof_part(&dump->out, HPROF_PRIMITIVES, 1 + 8 + 4 + 4 + 1 + length);
    vmscope_hprof_id(&dump->out, id);
    vmscope_hprof_put(&dump->out, NO_FRAMES, 4);
    vmscope_hprof_put(&dump->out, length, 4);
    vmscope_hprof_put(&dump->out, HPROF_BYTE, 1);
    return id;
}

static uint64_t
write_bytes(Dump *dump, uint64_t id, const void *bytes, Py_ssize_t size)
{
    size_t length = (size_t)size < LONGEST ? (size_t)size : LONGEST;
    begin_bytes(dump, id, length);
    vmscope_hprof_bytes(&dump->out, bytes, length);
    return id;
}

/* Of characters beyond Latin-1: UTF-16, the lower byte first. */
static uint64_t
write_wide(Dump *dump, uint64_t id, PyObject *text)
{
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    size_t length = (size_t)PyUnicode_GET_LENGTH(text), units = 0;
    length = length < LONGEST / 4 ? length : LONGEST / 4;
    for (size_t i = 0; i < length; i++) {
        units += PyUnicode_READ(kind, data, i) > 0xFFFF ? 2 : 1;
    }
    begin_bytes(dump, id, 2 * units);
    for (size_t i = 0; i < length; i++) {
        Py_UCS4 each = PyUnicode_READ(kind, data, i);
        if (each > 0xFFFF) {
            Py_UCS4 high = Py_UNICODE_HIGH_SURROGATE(each);
            vmscope_hprof_put(&dump->out, (high & 0xFF) << 8 | high >> 8, 2);
            each = Py_UNICODE_LOW_SURROGATE(each);
        }
        vmscope_hprof_put(&dump->out, (each & 0xFF) << 8 | each >> 8, 2);
    }
    return id;
}

static int
is_wide(PyObject *text)
{
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(text)) {
        return 0;
    }
#endif
    return PyUnicode_KIND(text) != PyUnicode_1BYTE_KIND;
}

static uint64_t
write_characters(Dump *dump, uint64_t id, PyObject *text)
{
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(text)) { /* C code is still filling it */
        return write_bytes(dump, id, "", 0);
    }
#endif
    return is_wide(text) ? write_wide(dump, id, text)
                         : write_bytes(dump, id, PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text));
}

/* An int of more than 64 bits: two's complement, the highest byte first; 0 for one that fits. */
static int
write_large(Dump *dump, uint64_t id, PyObject *number, int64_t *value, uint64_t *large)
{
    int overflow = 0;
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    *large = 0;
    if (overflow == 0) {
        return 0;
    }
    *value = 0;
#if PY_VERSION_HEX >= 0x030D0000
    Py_ssize_t size = PyLong_AsNativeBytes(number, NULL, 0, Py_ASNATIVEBYTES_BIG_ENDIAN);
#else
    Py_ssize_t size = (Py_ssize_t)(_PyLong_NumBits(number) / 8 + 1);
#endif
    uint8_t *bytes = size < 0 ? NULL : malloc((size_t)size);
    if (bytes == NULL) {
        return no_memory();
    }
#if PY_VERSION_HEX >= 0x030D0000
    int status = PyLong_AsNativeBytes(number, bytes, size, Py_ASNATIVEBYTES_BIG_ENDIAN) < 0 ? -1 : 0;
#else
    int status = _PyLong_AsByteArray((PyLongObject *)number, bytes, (size_t)size, 0, 1);
#endif
    if (status == 0) {
        *large = write_bytes(dump, id, bytes, size);
    }
    free(bytes);
    return status;
}

/* -- what a container holds ------------------------------------------------------------------------- */

typedef struct {
    Dump *dump;
    size_t left;
} Filling;

static int
reach_one(PyObject *object, void *context)
{
    return vmscope_dump_reach(context, object, 1);
}

static int
put_one(PyObject *object, void *context)
{
    Filling *filling = context;
    if (filling->left > 0) {
        filling->left--;
        vmscope_hprof_id(&filling->dump->out, id_of(object));
    }
    return 0;
}

static uint64_t
write_set(Dump *dump, PyObject *set)
{
    size_t length = (size_t)PySet_GET_SIZE(set);
    Filling filling = {dump, length < LONGEST ? length : LONGEST};
    if (filling.left == 0) {
        return 0;
    }
    begin_objects(dump, id_of(set) | ITEMS, filling.left);
    (void)PySet_Type.tp_traverse(set, put_one, &filling);
    for (; filling.left > 0; filling.left--) {
        vmscope_hprof_id(&dump->out, 0);
    }
    return id_of(set) | ITEMS;
}

static uint64_t
write_map(Dump *dump, PyObject *dict, int which)
{
    size_t length = (size_t)PyDict_GET_SIZE(dict), left = length < LONGEST ? length : LONGEST;
    PyObject *both[2];
    if (left == 0) {
        return 0;
    }
    begin_objects(dump, id_of(dict) | (uint64_t)which, left);
    for (Py_ssize_t at = 0; left > 0 && PyDict_Next(dict, &at, &both[0], &both[1]); left--) {
        vmscope_hprof_id(&dump->out, id_of(both[which == VALUES]));
    }
    for (; left > 0; left--) {
        vmscope_hprof_id(&dump->out, 0);
    }
    return id_of(dict) | (uint64_t)which;
}

static int
visit_items(int content, PyObject *object, visitproc visit, void *context)
{
    PyObject *key, *value;
    int status = 0;
    switch (content) {
    case LIST:
    case TUPLE: {
        PyObject **items = content == LIST ? ((PyListObject *)object)->ob_item : ((PyTupleObject *)object)->ob_item;
        for (Py_ssize_t i = 0; status == 0 && i < Py_SIZE(object); i++) {
            status = items[i] == NULL ? 0 : visit(items[i], context);
        }
        break;
    }
    case SET:
        status = PySet_Type.tp_traverse(object, visit, context);
        break;
    case MAP:
        for (Py_ssize_t at = 0; status == 0 && PyDict_Next(object, &at, &key, &value);) {
            status = visit(key, context);
            status = status != 0 ? status : visit(value, context);
        }
        break;
    default:
        break;
    }
    return status;
}

static int
write_items(Dump *dump, int content, PyObject *object, uint64_t *items, uint64_t *values)
{
    uint64_t id = id_of(object) | ITEMS;
    *items = *values = 0;
    if (visit_items(content, object, reach_one, dump) < 0) {
        return -1;
    }
    switch (content) {
    case TEXT:
        *items = write_characters(dump, id, object);
        break;
    case BYTES:
        *items = write_bytes(dump, id, PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
        break;
    case BYTE_ARRAY:
        *items = write_bytes(dump, id, PyByteArray_AS_STRING(object), PyByteArray_GET_SIZE(object));
        break;
    case LIST:
        *items = write_objects(dump, id, ((PyListObject *)object)->ob_item, (size_t)PyList_GET_SIZE(object));
        break;
    case TUPLE:
        *items = write_objects(dump, id, ((PyTupleObject *)object)->ob_item, (size_t)PyTuple_GET_SIZE(object));
        break;
    case SET:
        *items = write_set(dump, object);
        break;
    case MAP:
        *items = write_map(dump, object, ITEMS);
        *values = write_map(dump, object, VALUES);
        break;
    default:
        break;
    }
    return 0;
}

/* -- instances -------------------------------------------------------------------------------------- */

static int
collect(PyObject *object, void *context)
{
    return vmscope_dump_append(context, object);
}

static int
compare(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)*(PyObject *const *)left, b = (uintptr_t)*(PyObject *const *)right;
    return (a > b) - (a < b);
}

#define FEW 64

/* Takes what is in `named` out of `found`, each as often as it is there. */
static void
subtract(List *found, List *named)
{
    size_t kept = 0;
    if (named->length > FEW) {
        qsort(found->items, found->length, sizeof *found->items, compare);
        qsort(named->items, named->length, sizeof *named->items, compare);
        for (size_t i = 0, at = 0; i < found->length; i++) {
            while (at < named->length && compare(named->items + at, found->items + i) < 0) {
                at++;
            }
            if (at < named->length && named->items[at] == found->items[i]) {
                at++;
            } else {
                found->items[kept++] = found->items[i];
            }
        }
    } else {
        for (size_t i = 0; i < found->length; i++) {
            size_t at = 0;
            while (at < named->length && named->items[at] != found->items[i]) {
                at++;
            }
            if (at < named->length) {
                named->items[at] = named->items[--named->length];
            } else {
                found->items[kept++] = found->items[i];
            }
        }
    }
    found->length = kept;
}

/* The attribute of this very name in a dictionary, which is not asked: that could run code of the program. */
static PyObject *
look_up(PyObject *dict, PyObject *name)
{
    PyObject *key, *value;
    if (dict != NULL && PyDict_CheckExact(dict) && PyDict_GET_SIZE(dict) <= FEW) {
        for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
            if (key == name) {
                return value;
            }
        }
    }
    return NULL;
}

/* The objects that its fields refer to, in the order of the fields; reached. */
static int
read_fields(Dump *dump, const Shape *shape, PyObject *object)
{
    PyObject *dict, *const *attributes = vmscope_attributes(shape, object, &dict);
    dump->named.length = 0;
    for (size_t i = 0; i < shape->all_count; i++) {
        const Field *field = shape->all + i;
        PyObject *value = NULL;
        int counted = 1;
        if (field->at == AT_MEMBER) {
            value = *(PyObject **)((char *)object + field->place);
        } else if (field->at == AT_DICT) {
            value = dict;
        } else if (field->at == AT_ATTRIBUTE && attributes != NULL) {
            value = field->place < 0 ? NULL : attributes[field->place];
        } else if (field->at == AT_ATTRIBUTE) {
            value = look_up(dict, field->name);
            counted = 0; /* that is the dictionary's */
        }
        dump->values[i] = value;
        if (value != NULL && (vmscope_dump_reach(dump, value, counted) < 0 ||
                              (counted && !shape->whole && vmscope_dump_append(&dump->named, value) < 0))) {
            return -1;
        }
    }
    return 0;
}

/* An array of what no field has. */
static int
write_rest(Dump *dump, const Class *class, const Shape *shape, PyObject *object, uint64_t *id)
{
    dump->found.length = 0;
    if (vmscope_dump_append(&dump->named, (PyObject *)shape->type) < 0 ||
        visit_items(shape->content, object, collect, &dump->named) < 0 ||
        vmscope_each_reference(class, object, collect, &dump->found) < 0) {
        return -1;
    }
    subtract(&dump->found, &dump->named);
    if (reach_all(dump, dump->found.items, dump->found.length) < 0) {
        return -1;
    }
    *id = write_objects(dump, id_of(object) | REST, dump->found.items, dump->found.length);
    return 0;
}

static uint64_t
bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void
put_field(Dump *dump, const Shape *shape, size_t number, PyObject *object, Py_ssize_t size, uint64_t rest,
          uint64_t items, uint64_t values, int64_t integer)
{
    Hprof *out = &dump->out;
    switch (shape->all[number].at) {
    case AT_SIZE:
        vmscope_hprof_id(out, (uint64_t)size);
        break;
    case AT_COUNT:
        vmscope_hprof_put(out, (uint64_t)(Py_REFCNT(object) < INT32_MAX ? Py_REFCNT(object) : INT32_MAX), 4);
        break;
    case AT_REST:
        vmscope_hprof_id(out, rest);
        break;
    case AT_ITEMS:
        vmscope_hprof_id(out, items);
        break;
    case AT_VALUES:
    case AT_LARGE:
        vmscope_hprof_id(out, values);
        break;
    case AT_CODER:
        vmscope_hprof_put(out, (uint64_t)is_wide(object), 1);
        break;
    case AT_NUMBER:
        vmscope_hprof_id(out, (uint64_t)integer);
        break;
    case AT_REAL:
        vmscope_hprof_id(
            out, bits_of(shape->content == REAL ? PyFloat_AS_DOUBLE(object) : ((PyComplexObject *)object)->cval.real));
        break;
    case AT_IMAGINARY:
        vmscope_hprof_id(out, bits_of(((PyComplexObject *)object)->cval.imag));
        break;
    default:
        vmscope_hprof_id(out, id_of(dump->values[number]));
        break;
    }
}

int
vmscope_dump_object(Dump *dump, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (PyType_Check(object)) { /* has a record of its own */
        return vmscope_dump_load(dump, (PyTypeObject *)object) < 0 ? -1
                                                                   : vmscope_dump_class(dump, (PyTypeObject *)object);
    }
    Class *class = vmscope_class(&dump->classes, type);
    if (class == NULL || (class->more == NULL &&
                          (vmscope_dump_load(dump, type) < 0 || vmscope_dump_reach(dump, (PyObject *)type, 0) < 0))) {
        return -1;
    }
    const Shape *shape = ((Entry *)class->more)->shape;
    uint64_t items, values, rest = 0;
    int64_t integer = 0;
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE && vmscope_dump_reach(dump, (PyObject *)type, 1) < 0) ||
        write_items(dump, shape->content, object, &items, &values) < 0 ||
        (shape->content == NUMBER && write_large(dump, id_of(object) | ITEMS, object, &integer, &values) < 0) ||
        (class->form != ATOM && read_fields(dump, shape, object) < 0) || /* an atom comes between others' fields */
        (!shape->whole && write_rest(dump, class, shape, object, &rest) < 0)) {
        return -1;
    }
    Py_ssize_t size = vmscope_size_of(class, object);
    vmscope_hprof_part(&dump->out, HPROF_INSTANCE, 1 + 8 + 4 + 8 + 4 + (size_t)shape->bytes);
    vmscope_hprof_id(&dump->out, id_of(object));
    vmscope_hprof_put(&dump->out, NO_FRAMES, 4);
    vmscope_hprof_id(&dump->out, id_of(type));
    vmscope_hprof_put(&dump->out, shape->bytes, 4);
    for (size_t i = 0; i < shape->all_count; i++) {
        put_field(dump, shape, i, object, size, rest, items, values, integer);
    }
    dump->objects++;
    return 0;
}

int
vmscope_dump_todo(Dump *dump)
{
    while (dump->todo.length > 0 && dump->out.error == 0) {
        if (vmscope_dump_object(dump, dump->todo.items[--dump->todo.length]) < 0) {
            return -1;
        }
    }
    return dump->out.error == 0 ? 0 : -1;
}

#endif
