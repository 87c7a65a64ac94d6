/* What can be known of this process without the GIL: from the kernel, from malloc, from pymalloc's pools. */
#ifndef VMSCOPE_PROBE_H
#define VMSCOPE_PROBE_H

#include "thread.h"

#ifndef Py_GIL_DISABLED
#if SIZEOF_VOID_P == 8 && defined(WITH_PYMALLOC)
#define HAS_POOLS 1
#endif
#endif
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#define HAS_MALLINFO 1
#endif

typedef struct {
    int64_t size, resident; /* bytes */
} Memory;

/* 0, or -1 where there is no /proc. */
int vmscope_read_memory(Memory *out);

/* The most that was ever resident, or -1. getrusage would tell of the program before exec too. */
int64_t vmscope_read_peak(void);

/* Open descriptors of the process, or -1. `shared`: the calling thread has the process's table. */
int64_t vmscope_count_files(int shared);

typedef struct {
    int64_t arenas, capacity, blocks, bytes;
} Pools;

/* Counts what pymalloc has handed out; 0, or -1 when that cannot be known or `thread` (if any) shall end. */
int vmscope_count_pools(Pools *out, Thread *thread);

#endif
