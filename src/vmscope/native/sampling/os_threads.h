/* What the kernel knows of native threads of this process (os_threads.c, on Linux). */
#ifndef VMSCOPE_OS_THREADS_H
#define VMSCOPE_OS_THREADS_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    long id;
    int64_t cpu; /* ns; -1: it has ended */
    char stat[512], call[256];
} OsThread;

typedef struct {
    OsThread *rows; /* NULL: they were not read */
    size_t count;
} OsThreads;

/* All of /proc/self/task, in its order. 0 without memory. */
int vmscope_read_os_threads(OsThreads *out);

static inline void
vmscope_free_os_threads(OsThreads *self)
{
    free(self->rows);
    *self = (OsThreads){NULL, 0};
}

#endif
