/* Another process's memory, for the reader of stacks (memory.h).
 *
 * A thread goes on while it is read, and each look at it takes a call of the kernel's. So what is known to be looked at
 * is copied by one call, and twice: pieces in one order, then in the other. What is looked at first is of the first copy,
 * what is looked at again of the second. A load of what is not among the pieces fails: then more of them are looked for
 * (remote_process.c). Names are read at once, each by a call. */
#ifndef VMSCOPE_REMOTE_MEMORY_H
#define VMSCOPE_REMOTE_MEMORY_H

#include "stacks/remote_layout.h"

#ifdef HAS_REMOTE_STACKS

#include <sys/types.h>

typedef enum {
    FIRST_COPY,
    SECOND_COPY,
    LIVE, /* by a call each */
} RemoteView;

typedef struct {
    uintptr_t from;
    size_t size;
    size_t at[2]; /* in each copy */
} RemotePiece;

typedef struct {
    pid_t pid;
    RemoteView view;
    int failed; /* a load has */
    RemotePiece *pieces;
    size_t count, size;
    size_t hint; /* where the last load was */
    unsigned char *bytes;
    size_t room;
    uintptr_t *codes; /* those of which there is a copy too: a table of addresses, 0: free */
    unsigned char *code_heads;
    size_t code_mask;
    uint64_t calls, faults;
} RemoteMemory;

extern VMSCOPE_THREAD_LOCAL __attribute__((visibility("hidden"))) RemoteMemory *vmscope_remote;

/* The bytes of a copy; NULL where there are none. */
const unsigned char *vmscope_remote_find(uintptr_t from, size_t size);

/* At once; 0 where there is no such memory. */
int vmscope_remote_read(void *to, uintptr_t from, size_t size);

/* No pieces; room for more; 0 without memory. */
void vmscope_remote_clear(RemoteMemory *self);
int vmscope_remote_add(RemoteMemory *self, uintptr_t from, size_t size);

/* Copies the pieces, once or twice: 1; 0 where one is not there, or it has taken too long; -1 without memory. */
int vmscope_remote_copy(RemoteMemory *self, int twice);

/* Copies the heads of these code objects; what is not there is left out. 0 without memory. */
int vmscope_remote_copy_codes(RemoteMemory *self, const uintptr_t *codes, size_t count);

void vmscope_remote_free(RemoteMemory *self);

static inline void
vmscope_read_again(int again)
{
    if (vmscope_remote->view != LIVE) {
        vmscope_remote->view = again ? SECOND_COPY : FIRST_COPY;
    }
}

static inline int
vmscope_has_failed(void)
{
    return vmscope_remote->failed;
}

static inline uintptr_t
vmscope_word(uintptr_t from)
{
    uintptr_t word = 0;
    if (vmscope_remote->view == LIVE) {
        (void)vmscope_remote_read(&word, from, sizeof word);
        return word;
    }
    const unsigned char *found = vmscope_remote_find(from, sizeof word);
    if (found != NULL) {
        __builtin_memcpy(&word, found, sizeof word);
    }
    return word;
}

static inline unsigned char
vmscope_byte(uintptr_t from)
{
    unsigned char byte = 0;
    if (vmscope_remote->view == LIVE) {
        (void)vmscope_remote_read(&byte, from, 1);
        return byte;
    }
    const unsigned char *found = vmscope_remote_find(from, 1);
    return found == NULL ? 0 : *found;
}

static inline int
vmscope_load(uintptr_t from, uintptr_t *to)
{
    if (!vmscope_can_load(from)) {
        return 0;
    }
    *to = vmscope_word(from);
    return !vmscope_remote->failed;
}

static inline int
vmscope_load_bytes(void *to, uintptr_t from, size_t size)
{
    if (!vmscope_can_load(from)) {
        return 0;
    }
    if (vmscope_remote->view == LIVE) {
        return vmscope_remote_read(to, from, size);
    }
    const unsigned char *found = vmscope_remote_find(from, size);
    if (found == NULL) {
        return 0;
    }
    __builtin_memcpy(to, found, size);
    return 1;
}

#endif
#endif
