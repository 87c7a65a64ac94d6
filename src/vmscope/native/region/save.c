/* A region saved to a file, a pipe or a terminal. Async-signal-safe: a crash saves too. */
#define _GNU_SOURCE
#include "region/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STREAM_WAIT 1000 /* ms for the reader of a pipe to take some more */

/* The folder of a path, which others could make another one between two looks at its name; where its own name begins. */
static int
open_folder(const char *path, const char **name)
{
    char folder[PATH_MAX];
    const char *end = strrchr(path, '/');
    size_t length = end == NULL ? 0 : (size_t)(end - path) + 1; /* with the slash */
    *name = path + length;
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    return open(length == 0 ? "." : folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Whether others can put something under a name in this folder, as in /tmp. */
static int
is_shared(int folder)
{
    struct stat status;
    return fstat(folder, &status) < 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
           (status.st_uid != 0 && status.st_uid != geteuid());
}

/* Whether it is this user's, under one name: in a shared folder nothing else is written to. */
static int
is_own(const struct stat *status)
{
    return status->st_uid == geteuid() && status->st_nlink == 1 &&
           (S_ISREG(status->st_mode) || S_ISFIFO(status->st_mode));
}

/* For what has no offsets, as pipes and terminals; each wait for its reader has an end. */
static int
write_stream(int fd, const unsigned char *from, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, from, length);
        if (written < 0 && errno == EAGAIN &&
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, STREAM_WAIT) == 1) {
            continue;
        }
        if (written < 0 && errno != EINTR) {
            return -1;
        }
        from += written < 0 ? 0 : written;
        length -= written < 0 ? 0 : (size_t)written;
    }
    return 0;
}

/* The image's whole entries, then zeros: what lies beyond `used` may be half an entry. */
static int
write_image(Mirror *self, int fd, const struct stat *status)
{
    static const unsigned char zeros[PAGE];
    if (S_ISREG(status->st_mode)) {
        return ftruncate(fd, 0) < 0 || vmscope_write_range(fd, self->image, 0, self->used) < 0 ||
                       ftruncate(fd, (off_t)self->capacity) < 0
                   ? -1
                   : 0;
    }
    int failed = write_stream(fd, self->image, self->used);
    for (size_t done = self->used; !failed && done < self->capacity;) {
        size_t count = self->capacity - done < PAGE ? self->capacity - done : PAGE;
        failed = write_stream(fd, zeros, count);
        done += count;
    }
    return failed;
}

int
vmscope_save_image(Mirror *self, const char *path)
{
    const char *name;
    int folder = open_folder(path, &name), flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;
    if (folder < 0) {
        return errno;
    }
    struct stat status;
    int shared = is_shared(folder), error;
    int fd = openat(folder, name, (shared ? flags | O_NOFOLLOW : flags) | O_NONBLOCK,
                    0600); /* a pipe without a reader: ENXIO */
    error = errno;
    close(folder);
    if (fd < 0) {
        return error;
    }
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    error = fstat(fd, &status) < 0 ? errno : shared && !is_own(&status) ? EEXIST : 0;
    if (error == 0 && write_image(self, fd, &status) < 0) {
        error = errno;
    }
    if (error == EPIPE && !sigismember(&before, SIGPIPE)) { /* the reader has gone, which is not a reason to end */
        (void)sigtimedwait(&pipe_signal, NULL, &(struct timespec){0});
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return close(fd) < 0 && error == 0 ? errno : error;
}
