/* What can be known of this process without the GIL: from the kernel, from malloc, from pymalloc's pools. */
#ifndef VMSCOPE_PROC_STATS_H
#define VMSCOPE_PROC_STATS_H

#include "threads/thread.h"

#ifndef Py_GIL_DISABLED
#if SIZEOF_VOID_P == 8 && defined(WITH_PYMALLOC)
#define HAS_POOLS 1
#endif
#endif
#if VMSCOPE_GLIBC(2, 33)
#define HAS_MALLINFO 1
#endif

typedef struct {
    int64_t size, resident; /* bytes */
} Memory;

/* 0, or -1 where there is no /proc. */
int vmscope_read_memory(Memory *out);

/* The most that was ever resident, or -1. getrusage would count the program before exec too. */
int64_t vmscope_read_peak(void);

/* Open descriptors of the process, or -1. `shared`: the calling thread has the process's table. */
int64_t vmscope_count_files(int shared);

/* Called for each range of private anonymous memory; not 0 ends it. */
typedef int VisitRange(void *context, uintptr_t start, uintptr_t end, const char *name);

/* 0, -1 where there is no /proc, or what a visit returned. */
int vmscope_each_anonymous(VisitRange *visit, void *context);

#ifdef HAS_MALLINFO
typedef struct {
    int64_t used, capacity, mapped; /* bytes, as last read */
    int64_t due, pause, too_large;  /* when to ask again; a heap of this many bytes took too long */
    int owed;                       /* it was too early */
    uint64_t random;
} Malloc;

/* Asks malloc anew; 0, or -1 where that is not due, or would make the program wait too long. */
int vmscope_read_malloc(Malloc *self);
#endif

typedef struct {
    int64_t arenas, capacity, blocks, bytes;
} Pools;

/* Counts what pymalloc has handed out; 0, or -1 when that cannot be known or `thread` (if any) has to end. */
int vmscope_count_pools(Pools *out, Thread *thread);

#endif
