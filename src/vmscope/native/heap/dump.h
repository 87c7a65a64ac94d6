/* A heap dump under way: what dump.c and dump_objects.c share. */
#ifndef VMSCOPE_DUMP_H
#define VMSCOPE_DUMP_H

#include "heap/class_layout.h"

#ifdef HAS_OBJECTS

#include "heap/hprof.h"

enum {               /* an object's mark; its last bits count the references found so far */
       KNOWN = 0x80, /* to the collector: it will be visited */
       SEEN = 0x40,  /* written, or put off */
       NAMED = 0x20, /* a text that has been written as a name */
       MANY = 0x1F,  /* a table says how many */
};

enum { /* ids beside an object's own, which is its address: of arrays that it has in the dump alone */
       ITEMS = 1,
       VALUES = 2,
       REST = 4,
};

#define OF_OURS ((uint64_t)1 << 60) /* no address is as large: ids of what is in the dump alone */
#define NO_FRAMES 1                 /* the number of the stack trace that all objects have */

enum { /* classes that readers look for, and of which the program has no objects */
       ARRAY_CLASS,
       BYTES_CLASS,
       LOADER_CLASS,
       THREAD_CLASS,
       UTF16_CLASS,
       REFERENCE_CLASS,
       SOFT_CLASS,
       WEAK_CLASS,
       FINAL_CLASS,
       PHANTOM_CLASS,
       OWN_CLASSES,
};

enum { /* names of vmscope's */
       NAME_SIZE,
       NAME_COUNT,
       NAME_REST,
       NAME_CLASS,
       NAME_DICT,
       NAME_BASES,
       NAME_LINE,
       NAME_NAME,
       NAME_IDENT,
       NAME_NATIVE,
       NAME_THREAD,
       NAME_HIGH,
       NAME_LOW,
       NAME_REFERENT,
       NAME_EMPTY,
       NAME_LATIN1,
       NAME_UTF16,
       OWN_NAMES,
};

typedef struct {
    PyObject **items;
    size_t length, room;
} List;

typedef struct {
    PyObject *object;
    Py_ssize_t count;
} Excess;

typedef struct { /* what a class is in the dump */
    Shape *shape;
    uint32_t serial;
    uint64_t *names; /* the ids of its own fields' names */
    int written;
} Entry;

typedef struct {
    Hprof out;
    Marks marks;
    Classes classes; /* `more`: an Entry, once there is a record of the class */
    PyObject *taken; /* a set of the names that no class may have: packages', and those of vmscope's classes */
    traverseproc python;
    List types;        /* borrowed, as in the other lists: nothing ends meanwhile */
    List todo;         /* marked, and still to be written */
    List found, named; /* of the object that is being written */
    PyObject **values; /* of its fields */
    size_t room;
    Excess *excess; /* an open hash table of 2^bits */
    size_t excess_count;
    unsigned excess_bits;
    uint64_t last_id;
    uint32_t last_serial;
    uint64_t objects;        /* written so far */
    uint64_t known, visited; /* of those that the collector knows: all, and so far */
    PyObject *client;        /* who gets the progress: a call, or NULL */
    int64_t shown;           /* when */
} Dump;

static inline uint64_t
id_of(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

static inline uint64_t
id_of_class(int which)
{
    return OF_OURS + 1 + (uint64_t)which;
}

#define NAME(which) (OF_OURS + 64 + (uint64_t)(which))

static inline uint64_t
id_of_name(int which)
{
    return NAME(which);
}

static inline uint64_t
new_id(Dump *dump)
{
    return OF_OURS + 128 + dump->last_id++;
}

/* All of these: 0, or -1 with an exception. */

int vmscope_dump_append(List *list, PyObject *object);
int vmscope_dump_name(Dump *dump, uint64_t id, const char *text, size_t length);
int vmscope_dump_text(Dump *dump, uint64_t id, PyObject *text); /* as a name */

/* Sees to it that an object is in the dump to which something in it refers; `counted` where that keeps it alive. */
int vmscope_dump_reach(Dump *dump, PyObject *object, int counted);

/* How many references of an object, which has this mark, have been found. */
Py_ssize_t vmscope_dump_count(Dump *dump, PyObject *object, uint8_t mark);

/* An object's record, or a class's, once. */
int vmscope_dump_object(Dump *dump, PyObject *object);
int vmscope_dump_todo(Dump *dump);

/* First all names are noted that no class may have: the packages of each class and each module (NULL: it has no name),
 * and names that are reserved. Then a class's name, and that of the class which stands for a module, are to be had: a
 * new reference, or NULL with an exception. */
int vmscope_dump_reserve(Dump *dump, const char *name);
int vmscope_dump_note_type(Dump *dump, PyTypeObject *type);
int vmscope_dump_note_module(Dump *dump, PyObject *module);
PyObject *vmscope_dump_name_of_type(Dump *dump, PyTypeObject *type);
PyObject *vmscope_dump_name_of_module(Dump *dump, PyObject *module);

/* Names the class and its fields; then, when all have been, writes what it is. */
int vmscope_dump_load(Dump *dump, PyTypeObject *type);
int vmscope_dump_class(Dump *dump, PyTypeObject *type);

/* A class of vmscope's, or one that stands for a module whose code has frames: without objects of the program's. */
typedef struct {
    uint64_t name;
    int type;
    uint64_t value;
} Static;
typedef struct {
    const char *name;
    int base; /* OWN_CLASSES for java.lang.Object */
    const Static *statics, *fields;
    int static_count, field_count;
} OwnClass;
void vmscope_dump_own_class(Dump *dump, uint64_t id, const OwnClass *class);
uint32_t vmscope_dump_load_own(Dump *dump, uint64_t id, uint64_t name); /* its serial number */
void vmscope_free_entry(void *entry);

#endif
#endif
