/* Memory that others change, and give back, while it is read: the one place where the reader of stacks loads anything.
 *
 * It is this process's, read by plain loads under a guard (guard.h): where there is no memory, the load does not return.
 * Another process's would be read here too, by process_vm_readv: so every load may also fail, which its caller looks at,
 * and nothing else follows an address that was read. */
#ifndef VMSCOPE_MEMORY_H
#define VMSCOPE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define VMSCOPE_WORD sizeof(uintptr_t)

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

static inline int
vmscope_can_load(uintptr_t from)
{
    return from >= 4096 && from % VMSCOPE_WORD == 0;
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
