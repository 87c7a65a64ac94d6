/* Classes as a heap dump shows them.
 *
 * How many attributes the objects of a class share, and where they stand, is CPython's own affair: its layouts of 3.11 to
 * 3.15 stand here. Later ones have attributes by their dictionaries alone, and what stands in objects among the rest. */
#include "heap/class_layout.h"

#ifdef HAS_OBJECTS

#include "attributes.h"
#include "heap/hprof.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#define INLINE_VALUES (1UL << 2) /* Py_TPFLAGS_INLINE_VALUES, of 3.13 and later */

/* -- attributes that stand in objects ------------------------------------------------------------- */

#if PY_VERSION_HEX < 0x03100000
#define HAS_ATTRIBUTES

typedef struct { /* CPython's own: the names that a class's objects share */
    Py_ssize_t references;
    uint8_t log2_size, log2_index_bytes, kind;
    uint32_t version;
    Py_ssize_t usable, count;
    char indices[];
} Keys;

typedef struct {
    PyObject *name, *value;
} KeysEntry;

static const Keys *
keys_of(PyTypeObject *type)
{
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || !PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030D0000
    if (!(type->tp_flags & INLINE_VALUES)) {
        return NULL;
    }
#endif
    const Keys *keys = (const Keys *)((PyHeapTypeObject *)type)->ht_cached_keys;
    return keys != NULL && keys->kind != 0 ? keys : NULL; /* 0: not only texts */
}

static const KeysEntry *
entries_of(const Keys *keys)
{
    return (const KeysEntry *)(keys->indices + ((size_t)1 << keys->log2_index_bytes));
}

#endif

PyObject *const *
vmscope_attributes(const Shape *shape, PyObject *object, PyObject **dict)
{
    PyTypeObject *type = shape->type;
    *dict = NULL;
    if (!PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
        PyObject **where = type->tp_dictoffset == 0 ? NULL : _PyObject_GetDictPtr(object);
        *dict = where == NULL ? NULL : *where;
        return NULL;
    }
#ifndef HAS_ATTRIBUTES
    return NULL;
#elif PY_VERSION_HEX >= 0x030D0000
    typedef struct {
        uint8_t capacity, size, embedded, valid;
        PyObject *values[];
    } Values;
    *dict = ((PyObject **)object)[-3];
    if (!shape->values || *dict != NULL) {
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030E0000
    const Values *values = (const Values *)((char *)object + type->tp_basicsize);
#else
    const Values *values = (const Values *)((char *)object + sizeof(PyObject));
#endif
    return values->valid ? values->values : NULL;
#elif PY_VERSION_HEX >= 0x030C0000
    uintptr_t found = ((uintptr_t *)object)[-3]; /* either, by its last bit */
    if (found & 1) {
        return (PyObject *const *)(found + 1);
    }
    *dict = (PyObject *)found;
    return NULL;
#else
    *dict = ((PyObject **)object)[-3];
    return *dict != NULL ? NULL : ((PyObject *const *const *)object)[-4];
#endif
}

/* -- fields --------------------------------------------------------------------------------------- */

static int
add_field(Shape *shape, Field field)
{
    if ((shape->own_count & (shape->own_count + 1)) == 0) { /* 0, 1, 3, 7: full */
        Field *larger = realloc(shape->own, (shape->own_count * 2 + 1) * sizeof *larger);
        if (larger == NULL) {
            return -1;
        }
        shape->own = larger;
    }
    shape->own[shape->own_count++] = field;
    return 0;
}

static int
add_fields(Shape *shape, const Field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (add_field(shape, fields[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
has_attribute(const Shape *shape, PyObject *name)
{
    for (; shape != NULL; shape = shape->base) {
        for (size_t i = 0; i < shape->own_count; i++) {
            if (shape->own[i].at == AT_ATTRIBUTE && shape->own[i].name == name) {
                return 1;
            }
        }
    }
    return 0;
}

static int
add_members(Shape *shape)
{
    for (PyMemberDef *member = shape->type->tp_members; member != NULL && member->name != NULL; member++) {
        if ((member->type == T_OBJECT || member->type == T_OBJECT_EX) && strcmp(member->name, "__dict__") != 0 &&
            add_field(shape, (Field){AT_MEMBER, HPROF_OBJECT, member->offset, NULL, member->name}) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
add_attributes(Shape *shape)
{
#ifdef HAS_ATTRIBUTES
    const Keys *keys = keys_of(shape->type);
    for (Py_ssize_t i = 0; keys != NULL && i < keys->count; i++) {
        PyObject *name = entries_of(keys)[i].name;
        if (name != NULL && !has_attribute(shape, name) &&
            add_field(shape, (Field){AT_ATTRIBUTE, HPROF_OBJECT, -1, name, NULL}) < 0) {
            return -1;
        }
    }
    shape->values = keys != NULL;
#else
    (void)shape;
#endif
    return 0;
}

/* Where in the objects of this very class an attribute stands that it or a base has declared. */
static Py_ssize_t
place_of(PyTypeObject *type, PyObject *name)
{
#ifdef HAS_ATTRIBUTES
    const Keys *keys = keys_of(type);
    for (Py_ssize_t i = 0; keys != NULL && i < keys->count; i++) {
        if (entries_of(keys)[i].name == name) {
            return i;
        }
    }
#else
    (void)type;
    (void)name;
#endif
    return -1;
}

static int
add_content(Shape *shape)
{
    static const Field common[] = {{AT_SIZE, HPROF_LONG, 0, NULL, "__size__"},
                                   {AT_COUNT, HPROF_INT, 0, NULL, "__refcount__"},
                                   {AT_REST, HPROF_OBJECT, 0, NULL, "__referents__"}},
                       text[] = {{AT_ITEMS, HPROF_OBJECT, 0, NULL, "value"}, {AT_CODER, HPROF_BYTE, 0, NULL, "coder"}},
                       number[] = {{AT_NUMBER, HPROF_LONG, 0, NULL, "value"},
                                   {AT_LARGE, HPROF_OBJECT, 0, NULL, "large"}},
                       real[] = {{AT_REAL, HPROF_DOUBLE, 0, NULL, "value"}},
                       parts[] = {{AT_REAL, HPROF_DOUBLE, 0, NULL, "real"},
                                  {AT_IMAGINARY, HPROF_DOUBLE, 0, NULL, "imag"}},
                       bytes[] = {{AT_ITEMS, HPROF_OBJECT, 0, NULL, "value"}},
                       items[] = {{AT_ITEMS, HPROF_OBJECT, 0, NULL, "items"}},
                       map[] = {{AT_ITEMS, HPROF_OBJECT, 0, NULL, "keys"},
                                {AT_VALUES, HPROF_OBJECT, 0, NULL, "values"}};
    static const struct {
        PyTypeObject *type;
        int content;
        const Field *fields;
        size_t count;
    } kinds[] = {
        {&PyBaseObject_Type, NOTHING, common, 3},  {&PyUnicode_Type, TEXT, text, 2},
        {&PyLong_Type, NUMBER, number, 2},         {&PyFloat_Type, REAL, real, 1},
        {&PyComplex_Type, COMPLEX, parts, 2},      {&PyBytes_Type, BYTES, bytes, 1},
        {&PyByteArray_Type, BYTE_ARRAY, bytes, 1}, {&PyList_Type, LIST, items, 1},
        {&PyTuple_Type, TUPLE, items, 1},          {&PySet_Type, SET, items, 1},
        {&PyFrozenSet_Type, SET, items, 1},        {&PyDict_Type, MAP, map, 2},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (shape->type == kinds[i].type) {
            shape->content = (uint8_t)kinds[i].content;
            shape->whole = 1;
            return add_fields(shape, kinds[i].fields, kinds[i].count);
        }
    }
    return 0;
}

static uint32_t
width(uint8_t type)
{
    return type == HPROF_BYTE ? 1 : type == HPROF_INT ? 4 : 8;
}

static int
join_fields(Shape *shape)
{
    size_t inherited = shape->base == NULL ? 0 : shape->base->all_count;
    shape->all_count = shape->own_count + inherited;
    shape->all = calloc(shape->all_count + 1, sizeof *shape->all);
    if (shape->all == NULL) {
        return -1;
    }
    for (size_t i = 0; i < shape->all_count; i++) {
        Field *field = shape->all + i;
        *field = i < shape->own_count ? shape->own[i] : shape->base->all[i - shape->own_count];
        if (field->at == AT_ATTRIBUTE) {
            field->place = place_of(shape->type, field->name);
        }
        shape->bytes += width(field->type);
    }
    return 0;
}

static int
has_dict(PyTypeObject *type)
{
    return type != NULL && (type->tp_dictoffset != 0 || PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT));
}

Shape *
vmscope_new_shape(PyTypeObject *type, Shape *base, traverseproc python)
{
    Shape *shape = calloc(1, sizeof *shape);
    if (shape == NULL) {
        return NULL;
    }
    shape->type = type;
    shape->base = base;
    shape->content = base == NULL ? NOTHING : base->content;
    shape->whole = base != NULL && base->whole && (type->tp_traverse == python || type->tp_traverse == NULL);
    int failed = add_content(shape) < 0 || add_members(shape) < 0;
    if (!failed && has_dict(type) && !has_dict(type->tp_base)) {
        failed = add_field(shape, (Field){AT_DICT, HPROF_OBJECT, 0, NULL, "__dict__"}) < 0;
    }
    if (failed || add_attributes(shape) < 0 || join_fields(shape) < 0) {
        vmscope_free_shape(shape);
        return NULL;
    }
#ifndef HAS_ATTRIBUTES
    shape->whole = shape->whole && !has_dict(type);
#endif
    return shape;
}

void
vmscope_free_shape(Shape *shape)
{
    if (shape != NULL) {
        free(shape->own);
        free(shape->all);
        free(shape);
    }
}

traverseproc
vmscope_python_traverse(void)
{
    PyObject *module = PyImport_ImportModule("_frozen_importlib"); /* of Python code, and always there */
    PyObject *type = module == NULL ? NULL : vmscope_attribute(module, "ModuleSpec");
    traverseproc found = type == NULL || !PyType_Check(type) ? NULL : ((PyTypeObject *)type)->tp_traverse;
    Py_XDECREF(type);
    Py_XDECREF(module);
    return found;
}

#endif
