/* What the locks that know who has them share: the locks themselves (locks.c), and what is one VM's (monitors.c). */
#ifndef VMSCOPE_LOCKS_H
#define VMSCOPE_LOCKS_H

#include "native.h"

typedef struct Link {
    struct Link *before, *after;
} Link;

/* What the locks of one VM share. */
typedef struct {
    PyObject_HEAD PyObject *current; /* gives the calling thread's Thread */
    PyObject *tell;                  /* called with whether it has got the lock, the Thread, the lock */
    PyObject *made;                  /* gives what a new lock keeps */
    PyObject *library;               /* the file name of threading's code */
    PyObject *judge;                 /* acquire() of a lock that is free: says what is wrong with arguments */
    PyObject *contended, *patient;   /* the names of a Thread's attributes */
    Link held;                       /* the locks that threads have, the first taken first */
    char places;
} Monitors;

typedef struct {
    PyObject_HEAD PyThread_type_lock lock;
    size_t entered;       /* how often its owner has it; 0: it is free */
    unsigned long ident;  /* its owner's */
    uint64_t state;       /* the number of its owner's thread state */
    PyFrameObject *frame; /* that took it: never looked into, it may be gone */
    PyObject *code;       /* of that frame */
    Link link;
    Monitors *monitors;
    PyObject *made;
    PyObject *waiters; /* NULL, or a list of Threads */
    PyObject *weak;
} MonitorLock;

/* Adds the type Monitors; 0, or -1 with an exception set. */
int vmscope_add_monitors(PyObject *module);

int vmscope_is_monitors(PyObject *object);

#endif
