/* Copies of another process's memory, by process_vm_readv. */
#define _GNU_SOURCE
#define VMSCOPE_REMOTE
#include "stacks/remote_layout.h" /* Python.h first */
#include "stacks/memory.h"

#ifdef HAS_REMOTE_STACKS

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#define MOST_RANGES 1024 /* of one call: IOV_MAX */
#define LONG 1000000     /* ns: a copy that takes longer has been interrupted */

VMSCOPE_THREAD_LOCAL __attribute__((visibility("hidden"))) RemoteMemory *vmscope_remote;

static int64_t
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* How many bytes of these ranges have come, from the first on. */
static size_t
read_ranges(RemoteMemory *self, void *to, size_t size, const struct iovec *ranges, size_t count)
{
    struct iovec here = {to, size};
    ssize_t got = process_vm_readv(self->pid, &here, 1, ranges, count, 0);
    self->calls++;
    if (got < 0 || (size_t)got < size) {
        self->faults++;
    }
    return got < 0 ? 0 : (size_t)got;
}

static unsigned char *code_place(RemoteMemory *self, uintptr_t address, size_t *slot);

int
vmscope_remote_read(void *to, uintptr_t from, size_t size)
{
    RemoteMemory *self = vmscope_remote;
    struct iovec there = {(void *)from, size};
    if (size == vmscope_layout->code_size && self->codes != NULL) {
        size_t slot;
        const unsigned char *head = code_place(self, from, &slot);
        if (self->codes[slot] == from) {
            memcpy(to, head, size);
            return 1;
        }
    }
    if (read_ranges(self, to, size, &there, 1) != size) {
        self->failed = 1;
        return 0;
    }
    return 1;
}

const unsigned char *
vmscope_remote_find(uintptr_t from, size_t size)
{
    RemoteMemory *self = vmscope_remote;
    for (size_t i = 0; i < self->count; i++) {
        size_t at = self->hint + i < self->count ? self->hint + i : self->hint + i - self->count;
        const RemotePiece *piece = &self->pieces[at];
        if (from - piece->from < piece->size && size <= piece->size - (from - piece->from)) {
            self->hint = at;
            return self->bytes + piece->at[self->view == SECOND_COPY] + (from - piece->from);
        }
    }
    self->failed = 1;
    return NULL;
}

void
vmscope_remote_clear(RemoteMemory *self)
{
    self->count = self->hint = 0;
}

static int
grow(void *array, size_t *size, size_t wanted, size_t each)
{
    if (wanted > *size) {
        size_t larger = 2 * *size < wanted ? wanted : 2 * *size;
        void *moved = realloc(*(void **)array, larger * each);
        if (moved == NULL) {
            return 0;
        }
        *(void **)array = moved;
        *size = larger;
    }
    return 1;
}

int
vmscope_remote_add(RemoteMemory *self, uintptr_t from, size_t size)
{
    if (!grow(&self->pieces, &self->size, self->count + 1, sizeof *self->pieces)) {
        return 0;
    }
    self->pieces[self->count++] = (RemotePiece){from, size, {0, 0}};
    return 1;
}

/* Of the pieces in this order and, where they are copied twice, in the other one: this one, and where it is put. */
static RemotePiece *
piece_at(const RemoteMemory *self, size_t i, int *copy)
{
    *copy = i >= self->count;
    return &self->pieces[*copy ? 2 * self->count - 1 - i : i];
}

int
vmscope_remote_copy(RemoteMemory *self, int twice)
{
    struct iovec ranges[MOST_RANGES];
    size_t total = 0, all = twice ? 2 * self->count : self->count, done = 0;
    int copy;
    for (size_t i = 0; i < all; i++) {
        RemotePiece *piece = piece_at(self, i, &copy);
        piece->at[copy] = total;
        total += piece->size;
    }
    if (!grow(&self->bytes, &self->room, total, 1)) {
        return -1;
    }
    self->failed = 0;
    self->hint = 0;
    self->view = FIRST_COPY;
    int64_t since = now();
    for (size_t i = 0; i < all;) {
        size_t count = 0, size = 0;
        for (; i < all && count < MOST_RANGES; i++, count++) {
            const RemotePiece *piece = piece_at(self, i, &copy);
            ranges[count] = (struct iovec){(void *)piece->from, piece->size};
            size += piece->size;
        }
        if (read_ranges(self, self->bytes + done, size, ranges, count) != size) {
            return 0;
        }
        done += size;
    }
    return now() - since <= LONG;
}

/* -- code objects --------------------------------------------------------------------------------- */

/* Where it stands in the table, or would; and its copy. */
static unsigned char *
code_place(RemoteMemory *self, uintptr_t address, size_t *slot)
{
    uint64_t at = (address >> 4) * 0x9E3779B97F4A7C15ull >> 20;
    while (self->codes[at & self->code_mask] != 0 && self->codes[at & self->code_mask] != address) {
        at++;
    }
    *slot = at & self->code_mask;
    return self->code_heads + *slot * MOST_CODE_HEAD;
}

static int
reserve_codes(RemoteMemory *self, size_t count)
{
    size_t size = 64;
    while (size < 2 * count) {
        size *= 2;
    }
    if (self->codes == NULL || size > self->code_mask + 1) {
        free(self->codes);
        free(self->code_heads);
        self->code_heads = malloc(size * MOST_CODE_HEAD);
        self->codes = self->code_heads == NULL ? NULL : malloc(size * sizeof *self->codes);
        if (self->codes == NULL) {
            return 0;
        }
        self->code_mask = size - 1;
    }
    memset(self->codes, 0, (self->code_mask + 1) * sizeof *self->codes);
    return 1;
}

/* Those in these places of the table. */
static void
read_codes(RemoteMemory *self, const size_t *slots, size_t count)
{
    struct iovec here[MOST_RANGES], there[MOST_RANGES];
    size_t size = vmscope_layout->code_size;
    for (size_t i = 0; i < count; i++) {
        here[i] = (struct iovec){self->code_heads + slots[i] * MOST_CODE_HEAD, size};
        there[i] = (struct iovec){(void *)self->codes[slots[i]], size};
    }
    ssize_t got = count == 0 ? 0 : process_vm_readv(self->pid, here, count, there, count, 0);
    self->calls += count != 0;
    for (size_t i = got < 0 ? 0 : (size_t)got / size; i < count; i++) {
        self->codes[slots[i]] = 1; /* no code's address */
    }
}

int
vmscope_remote_copy_codes(RemoteMemory *self, const uintptr_t *codes, size_t count)
{
    size_t slots[MOST_RANGES], pending = 0, slot;
    if (!reserve_codes(self, count)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        (void)code_place(self, codes[i], &slot);
        if (self->codes[slot] == 0 && vmscope_can_load(codes[i])) {
            self->codes[slot] = codes[i];
            slots[pending++] = slot;
            if (pending == MOST_RANGES) {
                read_codes(self, slots, pending);
                pending = 0;
            }
        }
    }
    read_codes(self, slots, pending);
    return 1;
}

void
vmscope_remote_free(RemoteMemory *self)
{
    free(self->pieces);
    free(self->bytes);
    free(self->codes);
    free(self->code_heads);
    memset(self, 0, sizeof *self);
}

#endif
