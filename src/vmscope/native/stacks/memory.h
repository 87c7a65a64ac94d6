/* Memory that others change, and give back, while it is read: the one place where the reader of stacks loads anything.
 *
 * This process's is read by plain loads under a guard (guard.h): where there is no memory, the load does not return.
 * Another process's is copied first (remote_memory.h), so every load may also fail, which its caller looks at. Nothing
 * else follows an address that was read. */
#ifndef VMSCOPE_MEMORY_H
#define VMSCOPE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define VMSCOPE_WORD sizeof(uintptr_t)

static inline int
vmscope_can_load(uintptr_t from)
{
    return from >= 4096 && from % VMSCOPE_WORD == 0;
}

#ifdef VMSCOPE_REMOTE
#include "stacks/remote_memory.h"
#else

/* Freed memory is as good as any here. */
#ifdef __SANITIZE_ADDRESS__
#define VMSCOPE_ANY_MEMORY static __attribute__((no_sanitize("address"), noinline, unused))
#else
#define VMSCOPE_ANY_MEMORY static inline
#endif

/* Acquire: what was written before the word, as a frame before the pointer to it, is seen after it. */
VMSCOPE_ANY_MEMORY uintptr_t
vmscope_word(uintptr_t from)
{
    return __atomic_load_n((const uintptr_t *)from, __ATOMIC_ACQUIRE);
}

VMSCOPE_ANY_MEMORY unsigned char
vmscope_byte(uintptr_t from)
{
    return __atomic_load_n((const unsigned char *)from, __ATOMIC_ACQUIRE);
}

/* Another process's memory is copied twice, and then read: what is read a second time is of the second copy. */
static inline void
vmscope_read_again(int again)
{
    (void)again;
}

/* Whether a load has met what is not there; here it does not return. */
static inline int
vmscope_has_failed(void)
{
    return 0;
}

/* One word; 0 where that cannot be. */
static inline int
vmscope_load(uintptr_t from, uintptr_t *to)
{
    if (!vmscope_can_load(from)) {
        return 0;
    }
    *to = vmscope_word(from);
    return 1;
}

/* This many bytes, each word with one load; 0 where that cannot be. */
static inline int
vmscope_load_bytes(void *to, uintptr_t from, size_t size)
{
    unsigned char *next = to;
    if (!vmscope_can_load(from)) {
        return 0;
    }
    for (; size > 0; from += VMSCOPE_WORD) {
        uintptr_t word = vmscope_word(from);
        size_t count = size < VMSCOPE_WORD ? size : VMSCOPE_WORD;
        __builtin_memcpy(next, &word, count);
        next += count;
        size -= count;
    }
    return 1;
}

#endif
#endif
