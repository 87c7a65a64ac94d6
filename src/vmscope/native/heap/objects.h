/* The program's objects: which there are, what each refers to, how large each is.
 *
 * None of this runs code of the program or makes an object that the collector knows. It is called with the GIL held and
 * does not give it up, so that what is seen of all objects is of one moment. */
#ifndef VMSCOPE_OBJECTS_H
#define VMSCOPE_OBJECTS_H

#include "native.h"

#ifndef Py_GIL_DISABLED /* there threads run at once, and the twins have to do */
#define HAS_OBJECTS

/* -- marks: a byte for each object ------------------------------------------------------------------ */

/* An object is 16 bytes at least, so no two begin within the same 16: a byte for each 16 of those pieces of memory in
 * which there are objects is enough, at a sixteenth of their size. */
typedef struct {
    uintptr_t place; /* the address, without its last MARKS_BITS bits */
    uint8_t *bytes;
} MarksPiece;

typedef struct {
    MarksPiece *pieces; /* an open hash table of 2^bits */
    size_t count;
    unsigned bits;
    MarksPiece last;
} Marks;

#define MARKS_BITS 16

uint8_t *vmscope_new_mark(Marks *marks, uintptr_t place);
const uint8_t *vmscope_find_marks(Marks *marks, uintptr_t place); /* NULL where nothing near was marked */

/* The byte of an object, 0 at first; NULL when there is no memory. */
static inline uint8_t *
vmscope_mark(Marks *marks, const void *object)
{
    uintptr_t place = (uintptr_t)object >> MARKS_BITS;
    uint8_t *bytes = marks->last.place == place ? marks->last.bytes : vmscope_new_mark(marks, place);
    return bytes == NULL ? NULL : bytes + (((uintptr_t)object & ((1 << MARKS_BITS) - 1)) >> 4);
}

/* As vmscope_mark, but none is made: NULL instead. */
static inline const uint8_t *
vmscope_known_mark(Marks *marks, const void *object)
{
    uintptr_t place = (uintptr_t)object >> MARKS_BITS;
    const uint8_t *bytes = marks->last.place == place ? marks->last.bytes : vmscope_find_marks(marks, place);
    return bytes == NULL ? NULL : bytes + (((uintptr_t)object & ((1 << MARKS_BITS) - 1)) >> 4);
}

void vmscope_free_marks(Marks *marks);

/* -- classes ---------------------------------------------------------------------------------------- */

/* How the references of an object are found. */
enum {
    PLAIN, /* by what the class tells the collector */
    ATOM,  /* it has none */
    LEAF,  /* by its members: the collector does not know it */
    DICT,  /* by its items */
    CODE,
    CLASS,
    DERIVED, /* as PLAIN, and by the items of the dictionary that it is */
};

typedef struct {
    PyTypeObject *type; /* borrowed: its objects are there */
    int form;
    Py_ssize_t header;   /* what stands before the object */
    Py_ssize_t fixed;    /* of each object, or less than 0: asked by `size` */
    Py_ssize_t item;     /* and of each item */
    PyCFunction size;    /* `__sizeof__` of C */
    PyTypeObject *sizer; /* the class that it is of, where it has to be given; else NULL */
    Py_ssize_t count;
    uint64_t bytes;
    void *more; /* the caller's */
} Class;

typedef struct {
    Class **table; /* an open hash table of 2^bits */
    size_t count;
    unsigned bits;
    Class *last;
} Classes;

/* What is kept of an object's class; NULL, with an exception, when there is no memory. */
Class *vmscope_new_class(Classes *classes, PyTypeObject *type);

static inline Class *
vmscope_class(Classes *classes, PyTypeObject *type)
{
    return classes->last != NULL && classes->last->type == type ? classes->last : vmscope_new_class(classes, type);
}

void vmscope_free_classes(Classes *classes);

/* As sys.getsizeof has it, except a `__sizeof__` that is written in Python, which is passed over. */
Py_ssize_t vmscope_size_of(Class *class, PyObject *object);

/* -- objects ---------------------------------------------------------------------------------------- */

/* Calls back for each object that the collector knows; each has one reference more meanwhile. 0, or -1 with what
 * `visit` answered -1 for, or with an exception. */
int vmscope_each_tracked(int (*visit)(PyObject *, void *), void *context);

/* Whether gc.freeze has put objects away, which each_tracked does not visit; -1 with an exception. */
int vmscope_has_frozen(void);

/* Whether the collector knows it. */
static inline int
vmscope_is_tracked(PyObject *object)
{
    return PyType_IS_GC(Py_TYPE(object)) && PyObject_GC_IsTracked(object);
}

/* All that an object refers to, also what the collector need not know. */
int vmscope_each_reference(const Class *class, PyObject *object, visitproc visit, void *context);

/* Calls back for each frame of each thread, the innermost first, with what is above it. 0, or what `visit` answered. */
typedef int VisitFrame(PyFrameObject *frame, PyThreadState *state, int depth, void *context);
int vmscope_each_frame(VisitFrame *visit, void *context);

/* The value of each variable of a frame. */
int vmscope_each_variable(PyFrameObject *frame, visitproc visit, void *context);

/* A class's own `__dict__`; a new reference, or NULL. */
PyObject *vmscope_namespace(PyTypeObject *type);

#endif
#endif
