/* malloc's figures, without making the program wait for them.
 *
 * mallinfo2 goes through all free chunks with the lock of their arena held, and who waits for that lock may hold the
 * GIL. So it is asked only while there are few of them. How many there are is estimated without a lock: some pages of
 * the heap are copied by the kernel, and free chunks, whose ends check one another, are counted in these. */
#define _GNU_SOURCE
#include "sampling/proc_stats.h"

#ifdef HAS_MALLINFO

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000      /* ns */
#define MANY 12000      /* free chunks, which are seldom in a cache: to go through more may take 3 ms */
#define SMALL (4 << 20) /* bytes of a heap that is gone through in less, whatever there is in it */
#define PAGE 4096       /* that is looked at; the kernel's may be larger */
#define LOOKS 128       /* pages */
#define FIRST_PAUSE (250 * MS)
#define LAST_PAUSE (64000LL * MS)
#define ALIGNMENT 16 /* of chunks */
#define IN_USE 1     /* the bit of a chunk's size that says so of the one before */
#define MAPPED 2
#define FLAGS 7
#define ARENA_ALIGNMENT (64 << 20) /* of the heaps of arenas other than the main one, on 64 bits */
#define MAX_RANGES 64

typedef struct {
    size_t size_before, size, next, previous; /* size_before: of the chunk before, if that is free */
} Chunk;

typedef struct {
    uintptr_t start, pages;
} Range;

typedef struct {
    Range ranges[MAX_RANGES];
    size_t count, pages;
} Arenas;

static int
add_range(void *context, uintptr_t start, uintptr_t end, const char *name)
{
    Arenas *self = context;
    int main = strcmp(name, "[heap]") == 0;
    if ((main || start % ARENA_ALIGNMENT == 0) && self->count < MAX_RANGES) {
        self->ranges[self->count++] = (Range){start, (end - start) / PAGE};
        self->pages += (end - start) / PAGE;
    }
    return 0;
}

/* The address of a page of these. */
static uintptr_t
locate(const Arenas *self, size_t page)
{
    const Range *range = self->ranges;
    while (page >= range->pages) {
        page -= range++->pages;
    }
    return range->start + page * PAGE;
}

static int
copy(uintptr_t address, void *out, size_t size)
{
    struct iovec local = {out, size}, remote = {(void *)address, size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -1;
}

/* Free chunks, other than the small ones that malloc still keeps as they were, that begin in a page. */
static int64_t
count_free(uintptr_t address, const char *page)
{
    int64_t count = 0;
    for (size_t at = 0; at + sizeof(Chunk) <= PAGE; at += ALIGNMENT) {
        Chunk chunk;
        size_t after[2]; /* the chunk after it: size_before, size */
        memcpy(&chunk, page + at, sizeof chunk);
        size_t size = chunk.size & ~(size_t)FLAGS;
        if (!(chunk.size & IN_USE) || (chunk.size & MAPPED) || size < sizeof chunk || size % ALIGNMENT != 0 ||
            size > (size_t)1 << 32 || chunk.next == 0 || chunk.next % ALIGNMENT != 0 || chunk.previous == 0 ||
            chunk.previous % ALIGNMENT != 0) {
            continue;
        }
        if (at + size + sizeof after <= PAGE) {
            memcpy(after, page + at + size, sizeof after);
        } else if (copy(address + at + size, after, sizeof after) < 0) {
            continue;
        }
        count += after[0] == size && !(after[1] & IN_USE);
    }
    return count;
}

static int64_t
estimate_free(Malloc *self, const Arenas *arenas)
{
    int64_t found = 0, looked = 0;
    size_t each = arenas->pages / LOOKS;
    for (size_t i = 0; i < LOOKS; i++) {
        char page[PAGE];
        unsigned char resident = 0;
        self->random = self->random * 6364136223846793005U + 1442695040888963407U;
        uintptr_t address = locate(arenas, i * each + (self->random >> 33) % each);
        uintptr_t whole = address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
        if (mincore((void *)whole, 1, &resident) < 0) {
            continue; /* just given back */
        }
        if (!(resident & 1)) {
            looked++;
        } else if (copy(address, page, sizeof page) == 0) {
            looked++;
            found += count_free(address, page);
        }
    }
    return looked == 0 ? 0 : found * (int64_t)arenas->pages / looked;
}

int
vmscope_read_malloc(Malloc *self)
{
    self->owed = vmscope_now() < self->due;
    if (self->owed) {
        return -1;
    }
    Arenas arenas = {.count = 0};
    if (vmscope_each_anonymous(add_range, &arenas) < 0) {
        return -1;
    }
    int64_t size = (int64_t)arenas.pages * PAGE;
    if ((self->too_large > 0 && size > self->too_large / 2) || (size > SMALL && estimate_free(self, &arenas) > MANY)) {
        return -1;
    }
    int64_t cpu = vmscope_clock(CLOCK_THREAD_CPUTIME_ID), start = vmscope_now();
    struct mallinfo2 info = mallinfo2();
    int64_t wall = vmscope_now() - start;
    /* Chunks that the estimate does not see, or a busy machine, or a thread that had the lock. */
    self->pause = wall <= MS || self->pause == 0 ? FIRST_PAUSE : self->pause * 2;
    self->pause = self->pause < LAST_PAUSE ? self->pause : LAST_PAUSE;
    self->too_large = vmscope_clock(CLOCK_THREAD_CPUTIME_ID) - cpu > 5 * MS ? size : 0;
    self->due = vmscope_now() + self->pause;
    self->used = (int64_t)(info.uordblks + info.hblkhd);
    self->capacity = (int64_t)(info.arena + info.hblkhd);
    self->mapped = (int64_t)info.hblkhd;
    return 0;
}

#endif
