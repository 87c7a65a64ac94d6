/* A walk over all objects that calls an agent's function for each, without a call of Python's for most of them. */
#ifndef VMSCOPE_JNI_HEAP_WALK_H
#define VMSCOPE_JNI_HEAP_WALK_H

#include "interface.h"

typedef struct {
    int older;             /* the function is one of IterateOverHeap's, not of IterateThroughHeap's */
    void (*function)(void);
    PyObject *tags;        /* the environment's Tags */
    int filter;            /* which objects no callback is called for; with `older`, which it is called for */
    PyTypeObject *klass;   /* or NULL; with `older`, derived ones are meant too */
    PyObject *arrays;      /* a tuple of the classes that have a length, each of C */
    void *data;            /* the agent's */
} HeapWalk;

/* 0, or -1 with an exception set. */
int jni_walk_heap(const HeapWalk *walk);

#endif
