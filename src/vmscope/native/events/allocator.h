/* The allocator of objects, as it gives and takes back. */
#ifndef VMSCOPE_ALLOCATOR_H
#define VMSCOPE_ALLOCATOR_H

#include "native.h"

typedef struct {
    void *memory; /* what it gave this thread last; NULL once that was looked at */
    size_t size;
} Given;

extern VMSCOPE_THREAD_LOCAL Given vmscope_given;

/* `gone` is called with each piece of memory before it is taken back or moved. 1: it was to be so before, but another
 * took us out meanwhile. */
int vmscope_listen_to_allocator(void (*gone)(void *memory));
void vmscope_leave_allocator(void);

#endif
