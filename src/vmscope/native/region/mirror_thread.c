/* The mirror's thread: from the slots to the image, from the image to the file.
 *
 * It works without the GIL, so that no update ever waits for a disk. It writes with pwrite: a store
 * through a mapping that stalls would hold the page-fault lock and with it every fork. (In direct mode
 * the image is such a mapping: then the first step is all, and has that price.) It has a
 * descriptor table of its own, so that the program neither sees nor closes its file and no child
 * inherits it. */
#define _GNU_SOURCE
#include "region/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_INTERVAL 1000000000 /* ns between two looks at the names of file and socket */

/* -- from the slots to the image ------------------------------------------------------------------ */

static void
mark_dirty(Mirror *self, size_t offset, size_t length)
{
    for (size_t page = offset / PAGE; page <= (offset + length - 1) / PAGE; page++) {
        atomic_store(&self->dirty[page], 1);
    }
}

static int
refresh_long(Mirror *self, Binding *binding)
{
    _Atomic int64_t *word = (_Atomic int64_t *)(self->image + binding->offset);
    int64_t value = atomic_load_explicit(binding->value, memory_order_relaxed);
    if (value == atomic_load_explicit(word, memory_order_relaxed)) {
        return 0;
    }
    atomic_store_explicit(word, value, memory_order_relaxed);
    mark_dirty(self, binding->offset, sizeof value);
    return 1;
}

static int
refresh_text(Mirror *self, Binding *binding, uint64_t *scratch)
{
    TextSlot *slot = (TextSlot *)binding->slot;
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    if (sequence == binding->sequence || vmscope_text_copy(slot, scratch) < 0) {
        return 0; /* unchanged, or just being written: the next visit sees it whole */
    }
    memcpy(self->image + binding->offset, scratch, slot->capacity); /* the NUL after it stays */
    binding->sequence = sequence;
    mark_dirty(self, binding->offset, (size_t)slot->capacity + 1);
    atomic_store(&self->texts, 1);
    return 1;
}

/* The clock in the image. Its lowest bit is set while texts are being replaced: so a reader knows that it has them
 * whole when it finds the same even number before and after. */
static void
show_clock(Mirror *self, int replacing)
{
    if (self->clock != NULL) {
        int64_t now = atomic_load_explicit(&self->clock->value, memory_order_relaxed) | replacing;
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit((_Atomic int64_t *)(self->image + self->clock_offset), now, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
    }
}

/* Copies what changed into the image; true when more than the clock did. */
int
vmscope_refresh_image(Mirror *self, uint64_t *scratch)
{
    int changed = 0;
    if (self->clock != NULL) {
        int64_t now = (vmscope_now() - self->epoch) & ~INT64_C(1);
        atomic_store_explicit(&self->clock->value, now, memory_order_relaxed);
        mark_dirty(self, self->clock_offset, sizeof now);
    }
    show_clock(self, 1);
    size_t count = atomic_load_explicit(&self->count, memory_order_acquire);
    Chunk *chunk = self->first;
    for (size_t i = 0; i < count; i++) {
        if (i != 0 && i % CHUNK == 0) {
            chunk = chunk->next;
        }
        Binding *binding = &chunk->bindings[i % CHUNK];
        if (binding->slot != (PyObject *)self->clock) {
            changed |= binding->value == NULL ? refresh_text(self, binding, scratch) : refresh_long(self, binding);
        }
    }
    show_clock(self, 0);
    return changed;
}

/* -- from the image to the file ------------------------------------------------------------------- */

int
vmscope_write_range(int fd, const unsigned char *from, size_t offset, size_t length)
{
    while (length > 0) {
        ssize_t written = pwrite(fd, from, length, (off_t)offset);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -1;
        }
        from += written;
        offset += (size_t)written;
        length -= (size_t)written;
    }
    return 0;
}

static int
write_dirty_pages(Mirror *self)
{
    size_t pages = (self->published + PAGE - 1) / PAGE;
    for (size_t page = 0; page < pages; page++) {
        size_t end = page;
        while (end < pages && atomic_exchange(&self->dirty[end], 0)) {
            end++;
        }
        if (end == page) {
            continue;
        }
        size_t from = page == 0 ? PROLOGUE_SIZE : page * PAGE;
        size_t to = end * PAGE < self->published ? end * PAGE : self->published;
        if (to > from && vmscope_write_range(self->fd, self->image + from, from, to - from) < 0) {
            mark_dirty(self, from, to - from);
            return -1;
        }
        page = end;
    }
    return 0;
}

/* New entries: the first one's length last, so that a reader meets either the end or whole entries. */
static int
publish_entries(Mirror *self, uint32_t used)
{
    uint32_t start = self->published;
    if (vmscope_write_range(self->fd, self->image + start + 4, start + 4, used - start - 4) < 0 ||
        vmscope_write_range(self->fd, self->image + start, start, 4) < 0) {
        return -1;
    }
    self->published = used;
    return 0;
}

static int
is_own_file(const Mirror *self, const struct stat *status)
{
    return status->st_dev == self->device && status->st_ino == self->inode;
}

/* The folder two names above the path: 0, or -1. */
static int
stat_tmp(const char *path, struct stat *status)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s", path);
    for (int i = 0; i < 2; i++) {
        char *end = strrchr(folder, '/');
        if (end == NULL || end == folder) {
            return -1;
        }
        *end = '\0';
    }
    return stat(folder, status);
}

/* Whether the file, or its folder, was moved away: its name is not there, or is another file's. After a chroot, or in
 * another mount namespace, the path leads elsewhere and says nothing. */
static int
has_lost_name(const Mirror *self)
{
    struct stat tmp, named;
    if (self->tmp_inode == 0 || stat_tmp(self->path, &tmp) < 0 || tmp.st_dev != self->tmp_device ||
        tmp.st_ino != self->tmp_inode) {
        return 0;
    }
    return lstat(self->path, &named) < 0 ? errno == ENOENT || errno == ENOTDIR : !is_own_file(self, &named);
}

/* Each second: whether the file and the attach socket still have their names. -1 with errno where the file has not. */
static int
check_names(Mirror *self)
{
    int64_t now = vmscope_now();
    if (now < self->names_at) {
        return 0;
    }
    self->names_at = now + NAMES_INTERVAL;
    vmscope_notice_lost_socket();
    if (has_lost_name(self)) {
        errno = ENOENT;
        return -1;
    }
    return 0;
}

/* Whether the file still is as it was made; -1 with errno if not. */
static int
check_file(Mirror *self)
{
    struct stat status;
    if (fstat(self->fd, &status) < 0) {
        return -1;
    }
    if (!is_own_file(self, &status)) { /* the program closed the descriptor, and its number is another file's */
        self->fd = -1;
        errno = ESTALE;
        return -1;
    }
    if (status.st_nlink == 0 && self->links != 0) { /* it was removed */
        errno = ENOENT;
        return -1;
    }
    if ((size_t)status.st_size < self->extent) { /* it was cut short: it must not grow again */
        errno = EIO;
        return -1;
    }
    return check_names(self);
}

/* The clock in image and file, as show_clock has it. */
static int
write_clock(Mirror *self, int replacing)
{
    show_clock(self, replacing);
    return self->clock == NULL || self->clock_offset >= self->published
               ? 0
               : vmscope_write_range(self->fd, self->image + self->clock_offset, self->clock_offset, sizeof(int64_t));
}

/* What changed of the entries that the file has, texts between two writes of the clock. */
static int
write_values(Mirror *self)
{
    int texts = atomic_exchange(&self->texts, 0);
    if ((!texts || write_clock(self, 1) == 0) && write_dirty_pages(self) == 0 &&
        (!texts || write_clock(self, 0) == 0)) {
        return 0;
    }
    atomic_fetch_or(&self->texts, texts);
    return -1;
}

static int
write_file(Mirror *self)
{
    unsigned char prologue[PROLOGUE_SIZE];
    pthread_mutex_lock(&self->thread.mutex);
    uint32_t used = self->used;
    size_t capacity = self->capacity;
    memcpy(prologue, self->image, PROLOGUE_SIZE);
    pthread_mutex_unlock(&self->thread.mutex);
    if (capacity > self->extent) {
        if (ftruncate(self->fd, (off_t)capacity) < 0) {
            return -1;
        }
        self->extent = capacity;
    }
    if (write_values(self) < 0 || (used > self->published && publish_entries(self, used) < 0)) {
        return -1;
    }
    if (memcmp(prologue, self->prologue, PROLOGUE_SIZE) != 0) {
        if (vmscope_write_range(self->fd, prologue, 0, PROLOGUE_SIZE) < 0) {
            return -1;
        }
        memcpy(self->prologue, prologue, PROLOGUE_SIZE);
    }
    return 0;
}

/* One visit; true when more than the clock changed. */
static int
carry(Mirror *self)
{
    int changed = 0, whole = self->fd < 0 || check_file(self) == 0;
    vmscope_sampler_show_wait();
    self->lost |= !whole;
    if (whole || !self->direct) { /* a store beyond the end of a mapped file would end the process */
        changed = vmscope_refresh_image(self, self->scratch);
    }
    if (self->fd >= 0 && !self->direct) {
        whole = whole && write_file(self) == 0;
        atomic_fetch_add_explicit(&self->writes, 1, memory_order_relaxed);
    }
    if (!whole) {
        atomic_store(&self->thread.error, errno);
    }
    atomic_fetch_add_explicit(&self->visits, 1, memory_order_relaxed);
    return changed;
}

/* -- the thread ----------------------------------------------------------------------------------- */

static void
open_file(Mirror *self)
{
    vmscope_thread_unshare_files();
    atomic_store(&self->thread.error, 0); /* that of the last start, or of the last run */
    if (self->path == NULL) {
        return;
    }
    struct stat status;
    int fd = open(self->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && is_own_file(self, &status)) {
        struct stat tmp;
        self->fd = fd;
        self->links = status.st_nlink;
        self->tmp_inode = stat_tmp(self->path, &tmp) < 0 ? 0 : tmp.st_ino;
        self->tmp_device = self->tmp_inode == 0 ? 0 : tmp.st_dev;
        self->names_at = vmscope_now() + NAMES_INTERVAL;
        /* Some file systems count no links. On others it went since it was opened. */
        self->lost = status.st_nlink == 0 && access(self->path, F_OK) < 0;
        /* Refused where a mapping holds the lock; on overlayfs, which maps the file below, none can. */
        (void)flock(fd, LOCK_EX | LOCK_NB);
        return;
    }
    atomic_store(&self->thread.error, fd < 0 ? errno : ESTALE); /* ESTALE: another file has been put there */
    self->lost = self->thread.error == ENOENT || self->thread.error == ESTALE;
    if (fd >= 0) {
        close(fd);
    }
}

/* With a descriptor open the thread would stay visible for a millisecond. Where its table is the program's, that may have
 * closed it, and have another file under its number: that stays. */
static void
close_file(Mirror *self)
{
    struct stat status;
    if (self->fd >= 0 && fstat(self->fd, &status) == 0 && is_own_file(self, &status)) {
        close(self->fd);
    }
    self->fd = -1;
}

/* Takes the GIL, for once: not where a stop came meanwhile, as of a fork, which the next start makes up for. */
static void
tell_loss(Mirror *self)
{
    OwnCode own = vmscope_begin_own_code();
    if (!vmscope_thread_is_stopping(&self->thread)) {
        self->reported = 1;
        PyObject *result = PyObject_CallNoArgs(self->on_loss);
        PyErr_Clear(); /* a host is never troubled */
        Py_XDECREF(result);
    }
    vmscope_end_own_code(own);
}

void
vmscope_mirror_body(PyObject *mirror)
{
    Mirror *self = (Mirror *)mirror;
    open_file(self);
    int64_t pause = self->interval;
    int order;
    do {
        do {
            int64_t idle = self->interval > IDLE_INTERVAL ? self->interval : IDLE_INTERVAL;
            pause = carry(self) ? self->interval : pause * 2 < idle ? pause * 2 : idle;
            if (self->lost && !self->reported && self->on_loss != NULL) {
                tell_loss(self);
            }
            order = vmscope_thread_wait(&self->thread, pause);
        } while (!order);
        if (order == STOP) {
            carry(self);
        }
    } while (!vmscope_thread_leave(&self->thread));
    close_file(self);
}
