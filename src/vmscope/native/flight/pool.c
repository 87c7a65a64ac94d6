#include "flight/pool.h"

#define FIRST_SLOTS 256

static uint64_t
hash_of(const unsigned char *row, size_t size)
{
    uint64_t hash = 0x9E3779B97F4A7C15ull ^ size, word;
    for (; size >= sizeof word; row += sizeof word, size -= sizeof word) {
        memcpy(&word, row, sizeof word);
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, row, size);
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    return hash ^ hash >> 29;
}

static const unsigned char *
row_at(const Pool *self, uint32_t number, size_t *size)
{
    size_t begin = number == 1 ? 0 : self->ends[number - 2];
    *size = self->ends[number - 1] - begin;
    return self->rows.data + begin;
}

#define UPPER(hash) ((hash) & 0xFFFFFFFF00000000ull)

/* The slot of the row, or the free one where it would stand. */
static uint64_t *
find_slot(const Pool *self, uint64_t hash, const void *row, size_t size)
{
    for (size_t at = (size_t)hash;; at++) {
        uint64_t *slot = &self->index[at & self->mask];
        if (*slot == 0) {
            return slot;
        }
        size_t found_size;
        if (UPPER(*slot) == UPPER(hash)) {
            const unsigned char *found = row_at(self, (uint32_t)*slot, &found_size);
            if (found_size == size && memcmp(found, row, size) == 0) {
                return slot;
            }
        }
    }
}

/* Room for one more row; 0 without memory. */
static int
make_room(Pool *self)
{
    if (self->count == self->room) {
        size_t room = self->room == 0 ? FIRST_SLOTS : 2 * self->room;
        size_t *ends = realloc(self->ends, room * sizeof *ends);
        if (ends == NULL) {
            return 0;
        }
        self->ends = ends;
        self->room = room;
    }
    if (self->index != NULL && 2 * (self->count + 1) <= self->mask + 1) {
        return 1;
    }
    size_t slots = self->index == NULL ? FIRST_SLOTS : 2 * (self->mask + 1);
    uint64_t *index = calloc(slots, sizeof *index);
    if (index == NULL) {
        return 0;
    }
    free(self->index);
    self->index = index;
    self->mask = slots - 1;
    for (uint32_t number = 1; number <= self->count; number++) {
        size_t size;
        const unsigned char *row = row_at(self, number, &size);
        uint64_t hash = hash_of(row, size);
        *find_slot(self, hash, row, size) = UPPER(hash) | number;
    }
    return 1;
}

uint32_t
vmscope_pool_row(Pool *self, const void *row, size_t size)
{
    if (self->count >= UINT32_MAX - 1 || !make_room(self)) {
        return 0;
    }
    uint64_t hash = hash_of(row, size);
    uint64_t *slot = find_slot(self, hash, row, size);
    if (*slot != 0) {
        return (uint32_t)*slot;
    }
    put_bytes(&self->rows, row, size);
    if (self->rows.failed) {
        self->rows.failed = 0;
        return 0;
    }
    self->ends[self->count++] = self->rows.size;
    *slot = UPPER(hash) | self->count;
    return (uint32_t)self->count;
}

void
vmscope_pool_put(const Pool *self, uint64_t type, Bytes *to)
{
    put_number(to, type);
    put_number(to, self->count);
    for (uint32_t number = 1; number <= self->count; number++) {
        size_t size;
        const unsigned char *row = row_at(self, number, &size);
        put_number(to, number);
        put_bytes(to, row, size);
    }
}

size_t
vmscope_pool_size(const Pool *self)
{
    return self->rows.size + 2 * self->count;
}

void
vmscope_pool_clear(Pool *self)
{
    self->rows.size = 0;
    self->count = 0;
    if (self->index != NULL) {
        memset(self->index, 0, (self->mask + 1) * sizeof *self->index);
    }
}

void
vmscope_pool_free(Pool *self)
{
    bytes_free(&self->rows);
    free(self->ends);
    free(self->index);
    memset(self, 0, sizeof *self);
}
