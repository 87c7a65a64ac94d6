#define _GNU_SOURCE
#include "flight/repository.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define PART ".part" /* ends the name of a chunk that is not finished */

/* -- the list of finished chunks ------------------------------------------------------------------ */

int
vmscope_repository_add(Repository *self, FinishedChunk chunk)
{
    pthread_mutex_lock(&self->mutex);
    int added = 1;
    if (self->count == self->room) {
        size_t room = self->room == 0 ? 16 : 2 * self->room;
        FinishedChunk *finished = realloc(self->finished, room * sizeof *finished);
        added = finished != NULL;
        if (finished != NULL) {
            self->finished = finished;
            self->room = room;
        }
    }
    if (added) {
        self->finished[self->count++] = chunk;
        self->total += chunk.size;
    }
    pthread_mutex_unlock(&self->mutex);
    return added;
}

/* Takes the oldest out of the list; 0: there is none. */
static int
take_oldest(Repository *self, FinishedChunk *out)
{
    pthread_mutex_lock(&self->mutex);
    int taken = self->count > 0;
    if (taken) {
        *out = self->finished[0];
        self->total -= out->size;
        self->count--;
        memmove(self->finished, self->finished + 1, self->count * sizeof *self->finished);
    }
    pthread_mutex_unlock(&self->mutex);
    return taken;
}

void
vmscope_repository_remove(Repository *self, size_t count)
{
    FinishedChunk chunk;
    for (size_t i = 0; i < count && take_oldest(self, &chunk); i++) {
        char path[PATH_MAX];
        int length = chunk.data != NULL ? 0 : snprintf(path, sizeof path, "%s/%s", self->path, chunk.name);
        if (length > 0 && (size_t)length < sizeof path) {
            (void)unlink(path);
        }
        free(chunk.data);
    }
}

void
vmscope_repository_expire(Repository *self, int64_t time)
{
    pthread_mutex_lock(&self->mutex);
    size_t expired = 0;
    uint64_t left = self->total;
    while (expired < self->count && ((self->max_size != 0 && left > self->max_size) ||
                                     (self->max_age != 0 && self->finished[expired].end < time - self->max_age))) {
        left -= self->finished[expired++].size;
    }
    pthread_mutex_unlock(&self->mutex);
    vmscope_repository_remove(self, expired);
}

void
vmscope_repository_free(Repository *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->finished[i].data);
    }
    free(self->finished);
    free(self->path);
    pthread_mutex_destroy(&self->mutex);
}

/* -- files, on the thread ------------------------------------------------------------------------- */

static void
name_chunk(const Repository *self, char name[24], const char *ending)
{
    snprintf(name, 24, "%06llu.jfr%s", (unsigned long long)self->number, ending);
}

void
vmscope_repository_open(Repository *self)
{
    if (self->path != NULL && self->folder < 0) {
        self->folder = open(self->path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_RDONLY);
        self->error = self->folder < 0 ? errno : self->error;
    }
}

void
vmscope_repository_close(Repository *self)
{
    if (self->file >= 0) {
        close(self->file);
    }
    if (self->folder >= 0) {
        close(self->folder);
    }
    self->file = self->folder = -1;
}

/* The current chunk's file, made where there is none. After a fork it is there, and opened again. */
static int
open_file(Repository *self)
{
    char name[24];
    if (self->file < 0 && self->folder >= 0) {
        name_chunk(self, name, PART);
        self->file = openat(self->folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        self->error = self->file < 0 ? errno : self->error;
    }
    return self->file >= 0;
}

static int
write_at(Repository *self, const unsigned char *from, size_t count, uint64_t offset)
{
    while (count > 0) {
        ssize_t written = pwrite(self->file, from, count, (off_t)offset);
        if (written <= 0) {
            if (written < 0 && errno == EINTR) {
                continue;
            }
            self->error = written < 0 ? errno : ENOSPC;
            return 0;
        }
        from += written;
        count -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 1;
}

/* The same; where the disk is full, the oldest chunks make room. */
static int
write_whole(Repository *self, const Bytes *bytes, uint64_t offset)
{
    if (!open_file(self)) {
        return 0;
    }
    while (!write_at(self, bytes->data, bytes->size, offset)) {
        pthread_mutex_lock(&self->mutex);
        int is_last = self->count == 0;
        pthread_mutex_unlock(&self->mutex);
        if ((self->error != ENOSPC && self->error != EDQUOT) || is_last) {
            return 0;
        }
        vmscope_repository_remove(self, 1);
    }
    return 1;
}

static void
discard(Repository *self, const Chunk *chunk, size_t more)
{
    char name[24];
    self->lost += (self->discarding ? 0 : chunk->written) + more;
    self->lost_total += (self->discarding ? 0 : chunk->written) + more;
    self->discarding = 1;
    if (self->file >= 0) {
        (void)ftruncate(self->file, 0);
        close(self->file);
        self->file = -1;
    }
    name_chunk(self, name, PART);
    if (self->folder >= 0) {
        (void)unlinkat(self->folder, name, 0);
    }
}

void
vmscope_repository_append(Repository *self, Chunk *chunk, Bytes *events)
{
    if (self->discarding || !write_whole(self, events, CHUNK_HEADER + chunk->written)) {
        discard(self, chunk, events->size);
    }
    chunk->written += events->size;
    events->size = 0;
}

/* A finished chunk in memory: header, events, tail. */
static int
finish_in_memory(Chunk *chunk, const Bytes *tail, Bytes *header, FinishedChunk *out)
{
    Bytes whole = {0};
    if (!bytes_reserve(&whole, header->size + chunk->events.size + tail->size)) {
        return 0;
    }
    put_bytes(&whole, header->data, header->size);
    put_bytes(&whole, chunk->events.data, chunk->events.size);
    put_bytes(&whole, tail->data, tail->size);
    out->data = whole.data;
    return 1;
}

static int
finish_file(Repository *self, const Bytes *tail, const Bytes *header, uint64_t end, FinishedChunk *out)
{
    char part[24];
    name_chunk(self, part, PART);
    name_chunk(self, out->name, "");
    if (!write_whole(self, tail, end) || !write_whole(self, header, 0)) {
        return 0;
    }
    if (renameat(self->folder, part, self->folder, out->name) < 0) {
        self->error = errno;
        return 0;
    }
    close(self->file);
    self->file = -1;
    return 1;
}

int
vmscope_repository_finish(Repository *self, Chunk *chunk, const Bytes *tail, size_t metadata, int64_t now, int64_t time,
                          FinishedChunk *out)
{
    Bytes header = {0};
    uint64_t end = CHUNK_HEADER + chunk->written + (self->path == NULL ? chunk->events.size : 0);
    *out = (FinishedChunk){.size = end + tail->size, .begin = chunk->start_time, .end = time};
    vmscope_put_header(chunk, now, out->size, end, end + metadata, &header);
    int finished =
        !header.failed && !tail->failed && !self->discarding &&
        (self->path == NULL ? finish_in_memory(chunk, tail, &header, out) : finish_file(self, tail, &header, end, out));
    if (!finished) {
        discard(self, chunk, 0);
    }
    bytes_free(&header);
    self->discarding = 0;
    self->number++;
    return finished;
}
