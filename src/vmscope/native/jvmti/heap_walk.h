/* Walks over the program's objects and along their references, for the tool interface: what a walk meets, in which order,
 * and how an agent's callbacks are called for it, in Python or in C. */
#ifndef VMSCOPE_HEAP_WALK_H
#define VMSCOPE_HEAP_WALK_H

#include "heap/objects.h"

#ifdef HAS_OBJECTS

#include "jni/interface.h"

/* An agent's callbacks; in this order Python hands them over. */
enum { ITERATION, REFERENCE, PRIMITIVE_FIELD, ARRAY, STRING, OBJECT, ROOT, STACK, OBJECT_REFERENCE, CALLBACKS };

enum { /* jvmtiHeapReferenceKind */
       KIND_CLASS = 1,
       KIND_FIELD = 2,
       KIND_ELEMENT = 3,
       KIND_LOADER = 4,
       KIND_STATIC = 8,
       KIND_CONSTANT = 9,
       KIND_SUPERCLASS = 10,
       KIND_GLOBAL = 21,
       KIND_LOCAL = 24,
       KINDS,
};
enum { VISIT_OBJECTS = 0x100, VISIT_ABORT = 0x8000 };                              /* jvmtiHeapVisitControl */
enum { TAGGED = 0x4, UNTAGGED = 0x8, CLASS_TAGGED = 0x10, CLASS_UNTAGGED = 0x20 }; /* for whom no callback is called */
enum { ONLY_TAGGED = 1, ONLY_UNTAGGED = 2 };                                       /* for whom an older one is called */

typedef struct {
    PyObject **items;
    size_t count, room;
} Things;

typedef struct {
    int kind;
    int32_t index;
    PyObject *name;     /* NULL where it is to be looked up when it is asked for */
    PyObject *local;    /* a StackLocal, or NULL */
    PyObject *referrer; /* NULL: a root */
    PyObject *referee;
} Reference;

typedef struct {
    Reference *items; /* with a reference to each name and referee */
    size_t count, room;
} References;

/* What is kept of a class, behind its Class. */
typedef struct {
    PyTypeObject *array; /* whose length its objects have; or NULL */
    int ours;            /* it is vmscope's, and so are its objects */
    int asked;           /* some of its objects are vmscope's by what they are: functions, classes, modules */
    int program;         /* it is the program's: what only vmscope holds may be the program's nevertheless */
} OfClass;

typedef struct {
    PyObject *callbacks[CALLBACKS];     /* or NULL */
    void (*functions[CALLBACKS])(void); /* an agent's, in C; or NULL */
    PyObject *data;                     /* the agent's */
    int filter;                         /* for whom a callback is called, or is not */
    int older;                          /* the functions of JVM TI 1.0 */
    PyTypeObject *klass;                /* or NULL; with `older`, derived ones are meant too */
    PyObject *tags, *by_id;             /* the environment's Tags, and what it has them in */
    PyObject *arrays;                   /* a tuple of the classes that have a length, each of C */
    PyObject *tag_class, *holder_class, *info_class;
    PyObject *kinds, *root_kinds, *primitives; /* the enumerations' members, by number */
    PyObject *control, *old_control;           /* what an answer that is not an integer means */
    PyObject *class_parts;                     /* bases, with their kinds, and loader of a class */
    PyObject *folder;                          /* of vmscope's own code */
    Py_ssize_t unbounded;                      /* objects that are visited before it is asked what there is at all */
    Classes classes;
    PyObject *file; /* of the code that was looked at last, and whether it is vmscope's */
    int our_file;
    Marks ours;
    Things tracked; /* what the collector knows, if that is wanted, without what is vmscope's; borrowed */
    int wants_tracked;
    Things held; /* those that are, lest another object takes the place of one that goes */
} HeapWalk;

int vmscope_add_thing(Things *things, PyObject *thing);
OfClass *vmscope_of_class(HeapWalk *walk, PyTypeObject *type, Class **class);

/* -- vmscope's own objects (own_objects.c) ---------------------------------------------------------- */

/* Finds those that the collector knows. They live as long as the walk. */
int vmscope_find_ours(HeapWalk *walk);
/* Whether it is one of them. */
static inline int
vmscope_was_found_ours(HeapWalk *walk, const PyObject *thing)
{
    const uint8_t *mark = vmscope_known_mark(&walk->ours, thing);
    return mark != NULL && *mark;
}
/* Whether it is vmscope's; -1 with an exception. */
int vmscope_is_ours(HeapWalk *walk, PyObject *thing);

/* -- references (heap_references.c) ----------------------------------------------------------------- */

/* Whatever an object refers to, its class first, added to these. */
int vmscope_find_references(const HeapWalk *walk, PyObject *thing, References *into);
void vmscope_drop_references(References *references);
/* As gc.get_referents, but of a module its names only. */
int vmscope_each_referent(PyObject *thing, visitproc visit, void *arg);

/* -- callbacks (heap_callers.c): each answers a jvmtiHeapVisitControl, or -1 with an exception ---------- */

int vmscope_report_object(HeapWalk *walk, PyObject *thing);
int vmscope_report_reference(HeapWalk *walk, const Reference *reference);
/* Of the values in an object, whose references these are. */
int vmscope_report_values(HeapWalk *walk, PyObject *thing, const References *references);
static inline int
vmscope_reports_fields(const HeapWalk *walk)
{
    return walk->callbacks[PRIMITIVE_FIELD] != NULL;
}

static inline int
vmscope_reports_values(const HeapWalk *walk)
{
    return vmscope_reports_fields(walk) || walk->callbacks[ARRAY] != NULL || walk->callbacks[STRING] != NULL;
}

#endif
#endif
