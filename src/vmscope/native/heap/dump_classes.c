/* A heap dump's records of classes. */
#include "heap/dump.h"

#ifdef HAS_OBJECTS

#include <stdlib.h>
#include <string.h>

#define MOST_FIELDS 65000 /* fields of a class, of either kind: their number has 16 bits */

static int
no_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

/* -- names ---------------------------------------------------------------------------------------- */

/* Readers look for these; their objects are ours of another name. */
static const char *
mapped_name(const PyTypeObject *type)
{
    return type == &PyBaseObject_Type ? "java/lang/Object"
           : type == &PyType_Type     ? "java/lang/Class"
           : type == &PyUnicode_Type  ? "java/lang/String"
                                      : NULL;
}

/* A text of the program's as a name, under its address. */
static int
name_text(Dump *dump, PyObject *text)
{
    uint8_t *mark = vmscope_mark(&dump->marks, text);
    if (mark == NULL) {
        return no_memory();
    }
    if (*mark & NAMED) {
        return 0;
    }
    *mark |= NAMED;
    return vmscope_dump_text(dump, id_of(text), text);
}

static int
name_fields(Dump *dump, Entry *entry)
{
    const Shape *shape = entry->shape;
    entry->names = calloc(shape->own_count + 1, sizeof *entry->names);
    if (entry->names == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < shape->own_count; i++) {
        const Field *field = shape->own + i;
        if (field->name != NULL) {
            entry->names[i] = id_of(field->name);
            if (name_text(dump, field->name) < 0) {
                return -1;
            }
        } else {
            entry->names[i] = new_id(dump);
            vmscope_dump_name(dump, entry->names[i], field->label, strlen(field->label));
        }
    }
    return 0;
}

static int
name_statics(Dump *dump, PyTypeObject *type)
{
    PyObject *own = vmscope_namespace(type), *key;
    int status = 0;
    for (Py_ssize_t at = 0; status == 0 && own != NULL && PyDict_Next(own, &at, &key, NULL);) {
        status = PyUnicode_CheckExact(key) ? name_text(dump, key) : 0;
    }
    Py_XDECREF(own);
    return status;
}

uint32_t
vmscope_dump_load_own(Dump *dump, uint64_t id, uint64_t name)
{
    vmscope_hprof_record(&dump->out, HPROF_LOAD_CLASS, 4 + 8 + 4 + 8);
    vmscope_hprof_put(&dump->out, ++dump->last_serial, 4);
    vmscope_hprof_id(&dump->out, id);
    vmscope_hprof_put(&dump->out, NO_FRAMES, 4);
    vmscope_hprof_id(&dump->out, name);
    return dump->last_serial;
}

static int
name_class(Dump *dump, PyTypeObject *type)
{
    const char *mapped = mapped_name(type);
    uint64_t id = new_id(dump);
    if (mapped != NULL) {
        vmscope_dump_name(dump, id, mapped, strlen(mapped));
    } else {
        PyObject *name = vmscope_dump_name_of_type(dump, type);
        if (name == NULL || vmscope_dump_text(dump, id, name) < 0) {
            Py_XDECREF(name);
            return -1;
        }
        Py_DECREF(name);
    }
    vmscope_dump_load_own(dump, id_of(type), id);
    return 0;
}

void
vmscope_free_entry(void *more)
{
    Entry *entry = more;
    if (entry != NULL) {
        vmscope_free_shape(entry->shape);
        free(entry->names);
        free(entry);
    }
}

int
vmscope_dump_load(Dump *dump, PyTypeObject *type)
{
    Class *class = vmscope_class(&dump->classes, type);
    if (class == NULL) {
        return -1;
    }
    if (class->more != NULL) {
        return 0;
    }
    Shape *base = NULL;
    if (type->tp_base != NULL) { /* no deeper than classes are derived */
        if (vmscope_dump_load(dump, type->tp_base) < 0) {
            return -1;
        }
        base = ((Entry *)vmscope_class(&dump->classes, type->tp_base)->more)->shape;
    }
    Entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL || (entry->shape = vmscope_new_shape(type, base, dump->python)) == NULL) {
        free(entry);
        return no_memory();
    }
    class->more = entry;
    if (entry->shape->all_count > dump->room) {
        PyObject **larger = realloc(dump->values, entry->shape->all_count * sizeof *larger);
        if (larger == NULL) {
            return no_memory();
        }
        dump->values = larger;
        dump->room = entry->shape->all_count;
    }
    return name_fields(dump, entry) < 0 || name_statics(dump, type) < 0 || name_class(dump, type) < 0 ? -1 : 0;
}

/* -- records -------------------------------------------------------------------------------------- */

static void
begin_class(Dump *dump, uint64_t id, uint64_t base, uint32_t bytes, size_t statics_size, size_t field_count)
{
    vmscope_hprof_part(&dump->out, HPROF_CLASS, 1 + 8 + 4 + 6 * 8 + 4 + 2 + 2 + statics_size + 2 + field_count * 9);
    vmscope_hprof_id(&dump->out, id);
    vmscope_hprof_put(&dump->out, NO_FRAMES, 4);
    vmscope_hprof_id(&dump->out, base);
    for (int i = 0; i < 5; i++) { /* loader, signers, domain, and two that are reserved */
        vmscope_hprof_id(&dump->out, 0);
    }
    vmscope_hprof_put(&dump->out, bytes, 4);
    vmscope_hprof_put(&dump->out, 0, 2); /* constants */
}

static unsigned
width(int type)
{
    return type == HPROF_BYTE ? 1 : type == HPROF_INT ? 4 : 8;
}

static void
put_static(Dump *dump, uint64_t name, int type, uint64_t value)
{
    vmscope_hprof_id(&dump->out, name);
    vmscope_hprof_put(&dump->out, (uint64_t)type, 1);
    vmscope_hprof_put(&dump->out, value, width(type));
}

void
vmscope_dump_own_class(Dump *dump, uint64_t id, const OwnClass *class)
{
    size_t size = 0;
    uint32_t bytes = ((Entry *)vmscope_class(&dump->classes, &PyBaseObject_Type)->more)->shape->bytes;
    uint64_t base = class->base == OWN_CLASSES ? id_of(&PyBaseObject_Type) : id_of_class(class->base);
    for (int i = 0; i < class->static_count; i++) {
        size += 8 + 1 + width(class->statics[i].type);
    }
    for (int i = 0; i < class->field_count; i++) {
        bytes += width(class->fields[i].type);
    }
    if (class->base == REFERENCE_CLASS) {
        bytes += 8;
    }
    begin_class(dump, id, base, bytes, size, (size_t)class->field_count);
    vmscope_hprof_put(&dump->out, (uint64_t)class->static_count, 2);
    for (int i = 0; i < class->static_count; i++) {
        put_static(dump, class->statics[i].name, class->statics[i].type, class->statics[i].value);
    }
    vmscope_hprof_put(&dump->out, (uint64_t)class->field_count, 2);
    for (int i = 0; i < class->field_count; i++) {
        vmscope_hprof_id(&dump->out, class->fields[i].name);
        vmscope_hprof_put(&dump->out, (uint64_t)class->fields[i].type, 1);
    }
}

static int
collect(PyObject *object, void *context)
{
    return vmscope_dump_append(context, object);
}

/* All that the class itself refers to, whatever the names; each once. */
static int
write_references(Dump *dump, const Class *metaclass, PyTypeObject *type, uint64_t *id)
{
    List found = {.items = NULL};
    int status = vmscope_each_reference(metaclass, (PyObject *)type, collect, &found);
    for (size_t i = 0; status == 0 && i < found.length; i++) {
        status = vmscope_dump_reach(dump, found.items[i], 1);
    }
    *id = 0;
    if (status == 0 && found.length > 0) {
        *id = id_of(type) | REST;
        vmscope_hprof_part(&dump->out, HPROF_OBJECTS, 1 + 8 + 4 + 4 + 8 + 8 * found.length);
        vmscope_hprof_id(&dump->out, *id);
        vmscope_hprof_put(&dump->out, NO_FRAMES, 4);
        vmscope_hprof_put(&dump->out, found.length, 4);
        vmscope_hprof_id(&dump->out, id_of_class(ARRAY_CLASS));
        for (size_t i = 0; i < found.length; i++) {
            vmscope_hprof_id(&dump->out, id_of(found.items[i]));
        }
    }
    free(found.items);
    return status;
}

/* Whether an item of a class's dictionary is shown as a static field: not under the name of one of vmscope's. */
static int
is_static(PyObject *key)
{
    static const char *const ours[] = {"__dict__", "__class__",    "__bases__",    "__mro__",
                                       "__size__", "__refcount__", "__referents__"};
    if (!PyUnicode_CheckExact(key)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (PyUnicode_CompareWithASCIIString(key, ours[i]) == 0) {
            return 0;
        }
    }
    return 1;
}

/* How many items of the class's dictionary can be shown as static fields; -1 with an exception. */
static int
reach_statics(Dump *dump, PyObject *own)
{
    PyObject *key, *value;
    int count = 0;
    for (Py_ssize_t at = 0; own != NULL && count < MOST_FIELDS && PyDict_Next(own, &at, &key, &value);) {
        if (is_static(key)) {
            count++;
            if (vmscope_dump_reach(dump, value, 0) < 0) { /* its owner is the dictionary */
                return -1;
            }
        }
    }
    return count;
}

static int
write_class(Dump *dump, PyTypeObject *type, const Entry *entry, PyObject *own)
{
    PyObject *metatype = (PyObject *)Py_TYPE(type), *key, *value;
    Class *metaclass = vmscope_class(&dump->classes, Py_TYPE(type));
    uint64_t references;
    if (metaclass == NULL || write_references(dump, metaclass, type, &references) < 0 ||
        vmscope_dump_reach(dump, metatype, (int)(Py_TYPE(type)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) < 0) {
        return -1;
    }
    int count = reach_statics(dump, own);
    if (count < 0) {
        return -1;
    }
    const Static fixed[] = {
        {id_of_name(NAME_SIZE), HPROF_LONG, (uint64_t)vmscope_size_of(metaclass, (PyObject *)type)},
        {id_of_name(NAME_COUNT), HPROF_INT, (uint64_t)(Py_REFCNT(type) < INT32_MAX ? Py_REFCNT(type) : INT32_MAX)},
        {id_of_name(NAME_CLASS), HPROF_OBJECT, id_of(metatype)},
        {id_of_name(NAME_DICT), HPROF_OBJECT, id_of(own)},
        {id_of_name(NAME_BASES), HPROF_OBJECT, id_of(type->tp_bases)},
        {id_of_name(NAME_LINE), HPROF_OBJECT, id_of(type->tp_mro)},
        {id_of_name(NAME_REST), HPROF_OBJECT, references},
    };
    static const Static text[] = {{NAME(NAME_LATIN1), HPROF_BYTE, 0}, {NAME(NAME_UTF16), HPROF_BYTE, 1}};
    size_t fixed_count = sizeof fixed / sizeof *fixed, fields = entry->shape->own_count;
    size_t coders = type == &PyUnicode_Type ? sizeof text / sizeof *text : 0;
    fields = fields < MOST_FIELDS ? fields : MOST_FIELDS;
    begin_class(dump, id_of(type), id_of(type->tp_base), entry->shape->bytes,
                fixed_count * (8 + 1 + 8) - 4 + coders * (8 + 1 + 1) + (size_t)count * (8 + 1 + 8), fields);
    vmscope_hprof_put(&dump->out, fixed_count + coders + (size_t)count, 2);
    for (size_t i = 0; i < fixed_count; i++) {
        put_static(dump, fixed[i].name, fixed[i].type, fixed[i].value);
    }
    for (size_t i = 0; i < coders; i++) {
        put_static(dump, text[i].name, text[i].type, text[i].value);
    }
    for (Py_ssize_t at = 0; count > 0 && PyDict_Next(own, &at, &key, &value);) {
        if (is_static(key)) {
            put_static(dump, id_of(key), HPROF_OBJECT, id_of(value));
            count--;
        }
    }
    vmscope_hprof_put(&dump->out, fields, 2);
    for (size_t i = 0; i < fields; i++) {
        vmscope_hprof_id(&dump->out, entry->names[i]);
        vmscope_hprof_put(&dump->out, entry->shape->own[i].type, 1);
    }
    dump->objects++;
    return 0;
}

int
vmscope_dump_class(Dump *dump, PyTypeObject *type)
{
    Class *class = vmscope_class(&dump->classes, type);
    if (class == NULL || class->more == NULL) {
        return -1;
    }
    Entry *entry = class->more;
    if (entry->written) {
        return 0;
    }
    entry->written = 1;
    uint8_t *mark = vmscope_mark(&dump->marks, type);
    if (mark == NULL) {
        return no_memory();
    }
    *mark |= SEEN;
    PyObject *own = vmscope_namespace(type);
    int status = write_class(dump, type, entry, own);
    Py_XDECREF(own);
    return status;
}

#endif
