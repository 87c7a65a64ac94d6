/* A thread dump as of a client's request, taken by the thread that hears of it, without the GIL (thread_dump.c). */
#ifndef VMSCOPE_THREAD_DUMP_H
#define VMSCOPE_THREAD_DUMP_H

#include "native.h"
#include "sampling/os_threads.h"

#include <time.h>

struct Snapshot;

typedef struct {
    struct Snapshot *snapshot;
    OsThreads os_threads;
    time_t taken;   /* seconds since 1970 */
    double running; /* the system, in seconds */

    int64_t asked, kept; /* since when it waits for the GIL, and since when the same thread has had that; 0: unknown */
    uintptr_t holder;
    unsigned long switches;
} ThreadDump;

/* NULL where there is no memory, or no way to read stacks. */
ThreadDump *vmscope_take_dump(void);
void vmscope_free_dump(ThreadDump *self);

/* Whether the GIL does not come in time for it; `wait` is in how many ns to ask again. */
int vmscope_dump_is_late(ThreadDump *self, int64_t now, int64_t *wait);

/* As text in jstack's layout, with what is known without the GIL; NULL without memory. For free(). */
char *vmscope_write_dump(const ThreadDump *self, size_t *length);

/* With the GIL: a StackSnapshot of it, which takes what is in it (stack_snapshot.c). NULL with an exception; the dump is freed. */
PyObject *vmscope_stack_snapshot_of(PyTypeObject *type, ThreadDump *dump);

#endif
