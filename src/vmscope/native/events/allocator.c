/* Listening to the allocator of objects: what it gives, with its size, and what goes. Once ours is there, another's may
 * be put above; then it stays. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "events/allocator.h"

#if PY_VERSION_HEX >= 0x030D0000 && !defined(Py_GIL_DISABLED)

VMSCOPE_THREAD_LOCAL Given vmscope_given;

static PyMemAllocatorEx below;
static void (*tell)(void *);
static int listening;

static inline void *
given(void *memory, size_t size)
{
    vmscope_given = (Given){memory, size};
    return memory;
}

static void *
hook_malloc(void *context, size_t size)
{
    (void)context;
    return given(below.malloc(below.ctx, size), size);
}

static void *
hook_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    return given(below.calloc(below.ctx, count, size), count * size);
}

static void *
hook_realloc(void *context, void *memory, size_t size)
{
    (void)context;
    if (memory != NULL) {
        tell(memory);
    }
    return given(below.realloc(below.ctx, memory, size), size);
}

static void
hook_free(void *context, void *memory)
{
    (void)context;
    if (memory != NULL) {
        tell(memory);
    }
    below.free(below.ctx, memory);
}

/* Whether ours is still called: who had put one below, and takes it out again, takes ours out too. */
static int
is_heard(void)
{
    vmscope_given.memory = NULL;
    PyObject_Free(PyObject_Malloc(1));
    int heard = vmscope_given.memory != NULL;
    vmscope_given.memory = NULL;
    return heard;
}

int
vmscope_listen_to_allocator(void (*gone)(void *memory))
{
    int missed = listening && !is_heard();
    if (!listening || missed) {
        PyMemAllocatorEx ours = {NULL, hook_malloc, hook_calloc, hook_realloc, hook_free};
        tell = gone;
        PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &below);
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
        listening = 1;
    }
    return missed;
}

void
vmscope_leave_allocator(void)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
    if (listening && now.malloc == hook_malloc) { /* else another hook stands above, and calls this one */
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &below);
        listening = 0;
    }
}

#endif
