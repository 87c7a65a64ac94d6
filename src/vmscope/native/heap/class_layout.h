/* What the objects of a class look like in a heap dump: its fields, and where each one's value is. */
#ifndef VMSCOPE_CLASS_LAYOUT_H
#define VMSCOPE_CLASS_LAYOUT_H

#include "heap/objects.h"

#ifdef HAS_OBJECTS

/* What an object holds besides its members, and how that is read. */
enum {
    NOTHING,
    TEXT,
    NUMBER,
    REAL,
    COMPLEX,
    BYTES,
    BYTE_ARRAY,
    LIST,
    TUPLE,
    SET,
    MAP,
};

/* Where a field's value is. */
enum {
    AT_SIZE,   /* sys.getsizeof */
    AT_COUNT,  /* its references */
    AT_REST,   /* an array of what is in no other field */
    AT_ITEMS,  /* an array of elements, characters or bytes */
    AT_VALUES, /* the array of a dictionary's values */
    AT_CODER,  /* how a text's characters are encoded */
    AT_NUMBER, /* an int */
    AT_LARGE,  /* an array of bytes, of an int that needs more than 64 bits */
    AT_REAL,
    AT_IMAGINARY,
    AT_MEMBER, /* a member of the C struct, at `place` */
    AT_DICT,
    AT_ATTRIBUTE, /* the attribute `name`, number `place` of those that the class's objects share */
};

typedef struct {
    uint8_t at, type; /* HPROF's */
    Py_ssize_t place; /* -1 for an attribute that only dictionaries have */
    PyObject *name;   /* borrowed; NULL where `label` is the name */
    const char *label;
} Field;

typedef struct Shape {
    PyTypeObject *type;
    struct Shape *base;
    Field *own; /* those that the class adds to its base's */
    size_t own_count;
    Field *all; /* an object's, in the order of its record: its class's own, then its base's */
    size_t all_count;
    uint32_t bytes;  /* of all of them in a record */
    uint8_t content; /* TEXT and so on */
    uint8_t whole;   /* whether the fields have every reference of an object */
    uint8_t values;  /* whether attributes may stand in the object itself */
} Shape;

/* By which a class of Python code tells the collector of what its objects refer to; NULL with an exception. */
traverseproc vmscope_python_traverse(void);

/* The shape of a class, whose base's is `base`, NULL for object; NULL when there is no memory. */
Shape *vmscope_new_shape(PyTypeObject *type, Shape *base, traverseproc python);
void vmscope_free_shape(Shape *shape);

/* The values of attributes that stand in the object itself, or NULL; its dictionary, or NULL. Borrowed. */
PyObject *const *vmscope_attributes(const Shape *shape, PyObject *object, PyObject **dict);

#endif
#endif
