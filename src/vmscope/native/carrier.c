/* The mirror's thread: from the slots to the image, from the image to the file.
 *
 * It works without the GIL, so that no update ever waits for a disk. It writes with pwrite: a store
 * through a mapping that stalls would hold the page-fault lock and with it every fork. It has a
 * descriptor table of its own, so that the program neither sees nor closes its file and no child
 * inherits it. */
#define _GNU_SOURCE
#include "mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t
vmscope_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct timespec
deadline_after(clockid_t clock, int64_t nanoseconds)
{
    struct timespec time;
    clock_gettime(clock, &time);
    int64_t sum = (int64_t)time.tv_nsec + nanoseconds;
    time.tv_sec += (time_t)(sum / 1000000000);
    time.tv_nsec = (long)(sum % 1000000000);
    return time;
}

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
    int64_t value = atomic_load_explicit(&((LongSlot *)binding->slot)->value, memory_order_relaxed);
    if (value == atomic_load_explicit(word, memory_order_relaxed)) {
        return 0;
    }
    atomic_store_explicit(word, value, memory_order_relaxed);
    mark_dirty(self, binding->offset, sizeof value);
    return binding->slot != (PyObject *)self->clock;
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
    return 1;
}

/* Copies what changed into the image; true when more than the clock did. */
int
vmscope_refresh_image(Mirror *self, uint64_t *scratch)
{
    int changed = 0;
    if (self->clock != NULL) {
        atomic_store_explicit(&self->clock->value, vmscope_now() - self->epoch, memory_order_relaxed);
    }
    size_t count = atomic_load_explicit(&self->count, memory_order_acquire);
    Chunk *chunk = self->first;
    for (size_t i = 0; i < count; i++) {
        if (i != 0 && i % CHUNK == 0) {
            chunk = chunk->next;
        }
        Binding *binding = &chunk->bindings[i % CHUNK];
        changed |= binding->is_text ? refresh_text(self, binding, scratch) : refresh_long(self, binding);
    }
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

static int
write_file(Mirror *self)
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
    if ((size_t)status.st_size < self->capacity) { /* somebody cut it short: it must not grow again */
        errno = EIO;
        return -1;
    }
    unsigned char prologue[PROLOGUE_SIZE];
    pthread_mutex_lock(&self->mutex);
    uint32_t used = self->used;
    memcpy(prologue, self->image, PROLOGUE_SIZE);
    pthread_mutex_unlock(&self->mutex);
    if (write_dirty_pages(self) < 0 || (used > self->published && publish_entries(self, used) < 0)) {
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
    int changed = vmscope_refresh_image(self, self->scratch);
    if (self->fd >= 0) {
        if (write_file(self) < 0) {
            atomic_store(&self->error, errno);
        }
        atomic_fetch_add_explicit(&self->writes, 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&self->visits, 1, memory_order_relaxed);
    return changed;
}

/* -- the thread ----------------------------------------------------------------------------------- */

/* Opens the file in a descriptor table that only this thread has. */
static void
open_file(Mirror *self)
{
#ifdef SYS_close_range
    /* 2: CLOSE_RANGE_UNSHARE. A kernel without it leaves an ordinary close-on-exec descriptor. */
    (void)syscall(SYS_close_range, 0U, ~0U, 2U);
#endif
    if (self->path == NULL) {
        return;
    }
    struct stat status;
    int fd = open(self->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && is_own_file(self, &status)) {
        self->fd = fd;
        /* Refused where a mapping holds the lock; on overlayfs, which maps the file below, none can. */
        (void)flock(fd, LOCK_EX | LOCK_NB);
        return;
    }
    atomic_store(&self->error, fd < 0 ? errno : ESTALE); /* ESTALE: somebody put another file there */
    if (fd >= 0) {
        close(fd);
    }
}

static int
is_stopping(Mirror *self)
{
    pthread_mutex_lock(&self->mutex);
    int stopping = self->stopping;
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

static void
call_on_start(Mirror *self)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *callback = self->on_start;
    if (callback != NULL && !is_stopping(self)) { /* a stop may have come while this waited for the GIL */
        self->on_start = NULL;
        PyObject *result = PyObject_CallNoArgs(callback);
        if (result == NULL) {
            PyErr_Clear(); /* it reports its own failures; a host is never troubled */
        }
        Py_XDECREF(result);
        Py_DECREF(callback);
    }
    PyGILState_Release(gil);
}

/* Waits; true when the thread shall end. */
static int
wait_for(Mirror *self, int64_t nanoseconds)
{
    struct timespec deadline = deadline_after(CLOCK_MONOTONIC, nanoseconds);
    pthread_mutex_lock(&self->mutex);
    while (!self->stopping && !self->kicked && pthread_cond_timedwait(&self->wake, &self->mutex, &deadline) != ETIMEDOUT) {
    }
    int stopping = self->stopping;
    self->kicked = 0;
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

/* True once `running` is cleared; false when the stop was taken back while a last copy was stuck. */
static int
leave(Mirror *self)
{
    pthread_mutex_lock(&self->mutex);
    int stopping = self->stopping;
    if (stopping) {
        self->running = 0;
    }
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

static void *
mirror_thread(void *argument)
{
    Mirror *self = argument;
    if (self->delay > 0 && wait_for(self, self->delay) && leave(self)) {
        return NULL;
    }
    self->delay = 0;
    if (self->on_start != NULL) {
        call_on_start(self);
    }
    open_file(self);
    int64_t pause = self->interval;
    do {
        do {
            int64_t idle = self->interval > IDLE_INTERVAL ? self->interval : IDLE_INTERVAL;
            pause = carry(self) ? self->interval : pause * 2 < idle ? pause * 2 : idle;
        } while (!wait_for(self, pause));
        carry(self);
    } while (!leave(self));
    if (self->fd >= 0) {
        close(self->fd); /* with a descriptor open the thread would stay visible for a millisecond */
        self->fd = -1;
    }
    return NULL;
}

void
vmscope_init_thread(Mirror *self)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&self->mutex, NULL);
    self->joinable = self->running = self->stopping = self->paused = self->kicked = 0;
    self->fd = -1;
}

void
vmscope_kick_thread(Mirror *self)
{
    self->kicked = 1;
    pthread_cond_signal(&self->wake);
}

/* 0, or the errno of pthread_create. */
int
vmscope_start_thread(Mirror *self)
{
    pthread_mutex_lock(&self->mutex);
    self->stopping = 0;
    int running = self->running, joinable = self->joinable;
    pthread_mutex_unlock(&self->mutex);
    if (running) { /* it was still stuck in its last copy, and goes on */
        return 0;
    }
    if (joinable) {
        pthread_join(self->thread, NULL);
    }
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK);
    self->running = 1;
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are not for this thread */
    int status = pthread_create(&self->thread, &attributes, mirror_thread, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    self->running = self->joinable = status == 0;
    return status;
}

/* Asks the thread for a last copy and waits for its end; true when it has ended. */
int
vmscope_stop_thread(Mirror *self, int64_t timeout)
{
    pthread_mutex_lock(&self->mutex);
    int joinable = self->joinable;
    self->stopping = 1;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->mutex);
    if (joinable) {
        struct timespec deadline = deadline_after(CLOCK_REALTIME, timeout);
        if (pthread_timedjoin_np(self->thread, NULL, &deadline) != 0) {
            return 0;
        }
        self->joinable = 0;
    }
    return 1;
}

