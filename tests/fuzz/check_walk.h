/* What holds of the native walk along any bytes; for every program that makes up such bytes. */
#ifndef VMSCOPE_CHECK_WALK_H
#define VMSCOPE_CHECK_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "region/walk.h"

#define STATUSES (WALK_VECTOR_UNITS + 1)

/* What was walked so far: ends by their status, entries, texts. */
typedef struct {
    unsigned long long ends[STATUSES], entries, texts;
} Walked;

/* Walks a copy of just this size from `begin` on, so that the address sanitizer sees any byte read beyond it, and
 * touches every byte that an entry points at. What does not hold, in words; NULL where all does. */
const char *check_walk(const unsigned char *data, int64_t size, int64_t begin, bool big, Walked *walked);

/* Where a region says that its first entry is; `otherwise` where it is too short for that. */
int64_t region_begin(const unsigned char *data, int64_t size, int64_t otherwise);

bool region_is_big(const unsigned char *data, int64_t size);

#endif
