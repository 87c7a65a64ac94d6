/* A constant pool of a chunk: rows of bytes, each once, numbered from one. */
#ifndef VMSCOPE_FLIGHT_POOL_H
#define VMSCOPE_FLIGHT_POOL_H

#include "flight/bytes.h"

typedef struct {
    Bytes rows;
    size_t *ends;    /* of each row in `rows` */
    uint64_t *index; /* by hash: its upper half, and the row's number; 0: free */
    size_t count, room, mask;
} Pool;

/* The number of the row with these bytes; 0 without memory. */
uint32_t vmscope_pool_row(Pool *self, const void *row, size_t size);

/* Puts the type, the count, and each row behind its number. */
void vmscope_pool_put(const Pool *self, uint64_t type, Bytes *to);

/* Bytes that it will take in a file, about. */
size_t vmscope_pool_size(const Pool *self);

void vmscope_pool_clear(Pool *self); /* keeps its memory */
void vmscope_pool_free(Pool *self);

#endif
