/* What the kernel knows of native threads of this process (os_threads.c, on Linux). */
#ifndef VMSCOPE_TASKS_H
#define VMSCOPE_TASKS_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    long id;
    int64_t cpu; /* ns; -1: it has ended */
    char stat[512], call[256];
} Task;

typedef struct {
    Task *rows; /* NULL: they were not read */
    size_t count;
} Tasks;

/* All of /proc/self/task, in its order. 0 without memory. */
int vmscope_read_tasks(Tasks *out);

static inline void
vmscope_free_tasks(Tasks *self)
{
    free(self->rows);
    *self = (Tasks){NULL, 0};
}

#endif
