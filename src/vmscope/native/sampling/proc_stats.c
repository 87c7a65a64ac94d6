/* The kernel's and pymalloc's figures, without the GIL. */
#define _GNU_SOURCE
#include "sampling/proc_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096

/* The first `size` - 1 bytes of a file of the kernel's; 0, or -1. */
static int
read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? 0 : -1;
}

int
vmscope_read_memory(Memory *out)
{
    char text[128], *next;
    if (read_text("/proc/self/statm", text, sizeof text) < 0) {
        return -1;
    }
    out->size = strtoll(text, &next, 10) * sysconf(_SC_PAGESIZE);
    out->resident = strtoll(next, NULL, 10) * sysconf(_SC_PAGESIZE);
    return 0;
}

int64_t
vmscope_read_peak(void)
{
    char text[4096];
    const char *found = read_text("/proc/self/status", text, sizeof text) < 0 ? NULL : strstr(text, "\nVmHWM:");
    return found == NULL ? -1 : strtoll(found + strlen("\nVmHWM:"), NULL, 10) * 1024;
}

int64_t
vmscope_count_files(int shared)
{
    struct stat status;
    if (stat("/proc/self/fd", &status) < 0) {
        return -1;
    }
    if (status.st_size > 0) { /* Linux 6.2 and later: the number itself */
        return status.st_size;
    }
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int64_t count = shared ? -3 : -2; /* the two dots, and this descriptor */
    _Alignas(8) char entries[4096];
    long length;
    while ((length = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < length; count++) {
            uint16_t size; /* after the inode and the offset, of 8 bytes each */
            memcpy(&size, entries + at + 16, sizeof size);
            at += size;
        }
    }
    close(fd);
    return length < 0 ? -1 : count;
}

/* Private anonymous memory, unnamed or named by the program, and the heap that brk makes: there malloc and pymalloc
 * have what they give. */
static int
visit_line(char *line, VisitRange *visit, void *context)
{
    char *next, *inode;
    uintptr_t start = strtoull(line, &next, 16), end = strtoull(next + 1, &next, 16);
    if (strncmp(next, " rw-p ", 6) != 0) {
        return 0;
    }
    (void)strtoull(next + 6, &next, 16); /* the offset, then the device */
    inode = strchr(next + 1, ' ');
    if (inode == NULL || strtoull(inode, &next, 10) != 0) {
        return 0;
    }
    next += strspn(next, " ");
    if (*next == '\0' || strncmp(next, "[anon:", 6) == 0 || strcmp(next, "[heap]") == 0) {
        return visit(context, start, end, next);
    }
    return 0;
}

int
vmscope_each_anonymous(VisitRange *visit, void *context)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    char text[8192];
    size_t kept = 0;
    ssize_t length;
    int status = 0;
    while (status == 0 && (length = read(fd, text + kept, sizeof text - 1 - kept)) > 0) {
        text[kept += (size_t)length] = '\0';
        char *line = text, *end;
        while (status == 0 && (end = strchr(line, '\n')) != NULL) {
            *end = '\0';
            status = visit_line(line, visit, context);
            line = end + 1;
        }
        kept = strlen(line);
        memmove(text, line, kept + 1);
        if (kept == sizeof text - 1) { /* no line is that long */
            status = -1;
        }
    }
    close(fd);
    return status;
}

/* -- pymalloc ------------------------------------------------------------------------------------- */

/* pymalloc does not say how many bytes it has handed out, and to add it up as CPython itself does needs the
 * GIL for as long as the heap is large. But each of its pools stands at a multiple of its size in anonymous
 * memory, and begins with a header whose fields check one another. So they are found, and copied by the kernel,
 * which fails, and does not crash, where a thread has just given memory back. Pages that are not in memory are
 * left alone. */

#ifdef HAS_POOLS

#define POOL_SIZE 16384
#define ARENA_SIZE (1 << 20)
#define ALIGNMENT 16
#define SIZE_CLASSES 32
#define BATCH 256
#define CHUNK_PAGES 4096               /* pages that mincore is asked for at once */
#define MAX_RANGE ((uintptr_t)1 << 38) /* larger ones are shadow memory or the like */

typedef struct { /* CPython's own, 3.10 and later */
    uint32_t count, padding;
    uint64_t free_block, next_pool, previous_pool;
    uint32_t arena, size_class, next_offset, max_next_offset;
} PoolHeader;

typedef struct {
    Pools *sums;
    Thread *thread;
    uint32_t arena;        /* of the pool before */
    uintptr_t arena_start; /* where its first pool was met */
    struct iovec remote[BATCH];
    /* Copies, on a stack that is searched too: none may stand at a multiple of POOL_SIZE, where it would count as a
     * pool, now or when a later search finds what this one left. */
    _Alignas(ALIGNMENT) uint64_t padding;
    PoolHeader headers[BATCH];
    unsigned char resident[CHUNK_PAGES];
} PoolScan;

_Static_assert(offsetof(PoolScan, headers) % ALIGNMENT == sizeof(uint64_t) && sizeof(PoolHeader) % ALIGNMENT == 0,
               "headers are never aligned as pools are");

static void
add_pool(PoolScan *self, uintptr_t address, const PoolHeader *header)
{
    uint32_t size = (header->size_class + 1) * ALIGNMENT;
    if (header->size_class >= SIZE_CLASSES || header->max_next_offset != POOL_SIZE - size ||
        header->next_offset < sizeof *header || header->next_offset > POOL_SIZE ||
        (header->next_offset - sizeof *header) % size != 0 ||
        header->count > (header->next_offset - sizeof *header) / size) {
        return;
    }
    if (self->arena_start == 0 || header->arena != self->arena || address - self->arena_start >= ARENA_SIZE) {
        self->arena = header->arena;
        self->arena_start = address;
        self->sums->arenas++;
    }
    self->sums->blocks += header->count;
    self->sums->bytes += (int64_t)header->count * size;
}

/* 0; -1 where the kernel does not allow it. */
static int
copy_headers(PoolScan *self, size_t count)
{
    for (size_t done = 0; done < count; done++) { /* it stops at the first address that is gone */
        struct iovec local = {self->headers, (count - done) * sizeof *self->headers};
        ssize_t length = process_vm_readv(getpid(), &local, 1, self->remote + done, count - done, 0);
        if (length < 0 && errno != EFAULT) {
            return -1;
        }
        for (size_t i = 0; length > 0 && i < (size_t)length / sizeof *self->headers; i++, done++) {
            add_pool(self, (uintptr_t)self->remote[done].iov_base, &self->headers[i]);
        }
    }
    return 0;
}

static int
scan_range(PoolScan *self, uintptr_t start, uintptr_t end)
{
    size_t count = 0;
    start = (start + POOL_SIZE - 1) & ~(uintptr_t)(POOL_SIZE - 1);
    end &= ~(uintptr_t)(POOL_SIZE - 1);
    while (start < end) {
        size_t length = end - start < CHUNK_PAGES * (uintptr_t)PAGE ? end - start : CHUNK_PAGES * (uintptr_t)PAGE;
        if (self->thread != NULL && vmscope_thread_is_stopping(self->thread)) {
            return -1;
        }
        if (mincore((void *)start, length, self->resident) == 0) {
            for (size_t at = 0; at < length; at += POOL_SIZE) {
                if (self->resident[at / PAGE] & 1) {
                    self->remote[count++] = (struct iovec){(void *)(start + at), sizeof *self->headers};
                }
                if (count == BATCH) {
                    if (copy_headers(self, count) < 0) {
                        return -1;
                    }
                    count = 0;
                }
            }
        }
        start += length;
    }
    return copy_headers(self, count);
}

static int
scan_anonymous(void *context, uintptr_t start, uintptr_t end, const char *name)
{
    return strcmp(name, "[heap]") == 0 || end - start > MAX_RANGE ? 0 : scan_range(context, start, end);
}

int
vmscope_count_pools(Pools *out, Thread *thread)
{
    if (sysconf(_SC_PAGESIZE) != PAGE) {
        return -1;
    }
    memset(out, 0, sizeof *out);
    PoolScan scan = {.sums = out, .thread = thread};
    int status = vmscope_each_anonymous(scan_anonymous, &scan);
    out->capacity = out->arenas * ARENA_SIZE;
    return status;
}

#endif
