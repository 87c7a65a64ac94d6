/* Children of this process that are VMs: what one leaves that is killed is removed while this process goes on.
 *
 * A VM tells its parent of itself, by a request to the parent's socket. The parent's I/O thread has a descriptor of the process
 * (pidfd), in its own table, and is woken when the child has ended. It neither waits for the child nor reaps it. A fork ends
 * the I/O thread, and its descriptors with it; the next one makes them anew. */
#define _GNU_SOURCE
#include "attach/listener.h"
#include "files/shared_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CHILDREN 256
#define AFTER_FORK 100000000 /* ns until they are looked at again: a program that forks in a row pays for it once */
#define RETRY                                                                                                          \
    100000000 /* ns until a file is tried again that is locked still, as while a process reads the dead one's maps */
#define MOST_TRIES 50
#define HEAD ((size_t)1 << 20) /* bytes of a region that has to name its service early */

struct Child {
    pid_t pid; /* 0: a free place */
    int fd;    /* -1: it is to be looked at */
    int tries;
};

/* -- a child --------------------------------------------------------------------------------------- */

void
vmscope_tell_parent(void)
{
    static const char request[] = "1\0" VMSCOPE_CHILD_STARTED "\0\0\0"; /* and the NUL of the last argument */
    char path[sizeof(struct sockaddr_un) + 32], folder[sizeof(struct sockaddr_un)];
    struct stat found;
    pid_t parent = getppid();
    vmscope_socket_folder(folder);
    (void)snprintf(path, sizeof path, "%s/.java_pid%d", folder, (int)parent);
    int place = parent > 0 ? vmscope_find_named(path, O_PATH) : -1;
    if (place < 0) {
        return; /* it is not a VM, or of another pid namespace */
    }
    if (fstat(place, &found) == 0 && S_ISSOCK(found.st_mode) && found.st_uid == geteuid()) {
        int fd = vmscope_connect_at(place);
        if (fd >= 0) {
            (void)send(fd, request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL);
            close(fd);
        }
    }
    close(place);
}

/* -- what one has left ----------------------------------------------------------------------------- */

/* Whether it is a child of this process that has ended, or has not: 1, 0. -1: it is not a child. It stays for whoever waits. */
static int
has_ended(pid_t pid)
{
    siginfo_t found = {0};
    return waitid(P_PID, (id_t)pid, &found, WEXITED | WNOHANG | WNOWAIT) < 0 ? -1 : found.si_pid == pid;
}

/* As memory/_stale.py has it: whether no process of that pid can have written here. */
static int
is_over(pid_t pid)
{
    return has_ended(pid) == 1 || kill(pid, 0) < 0; /* in this order: the program may reap it in between */
}

/* What HotSpot asks of the directory. One that is mounted is left to the next start, which can tell by whom. */
static int
open_regions(const char *path)
{
    struct stat found;
    int folder = vmscope_open_named(path, O_RDONLY | O_DIRECTORY);
    if (folder >= 0 &&
        (fstat(folder, &found) < 0 || found.st_uid != geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)))) {
        close(folder);
        return -1;
    }
    return folder;
}

/* Whether what it has counted goes to a service's totals first: whoever adds it removes it (memory/_stale.py). */
static int
is_of_service(int fd, size_t size)
{
    static const char name[] = "vmscope.service"; /* an entry's name, and behind its NUL the text */
    size = size < HEAD ? size : HEAD;
    char *head = malloc(size + 1);
    if (head == NULL) {
        return 1; /* it stays */
    }
    ssize_t length = pread(fd, head, size, 0);
    char *found = length <= 0 ? NULL : memmem(head, (size_t)length, name, sizeof name);
    int named = found != NULL && found + sizeof name < head + length && found[sizeof name] != '\0';
    free(head);
    return named;
}

/* The rule of memory/_stale.py for one file. False where it is locked. */
static int
remove_region(int folder, pid_t pid)
{
    char name[16];
    struct stat found, named;
    (void)snprintf(name, sizeof name, "%d", (int)pid);
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return 1;
    }
    int locked = 0;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 1 && found.st_uid == geteuid()) {
        locked = flock(fd, LOCK_EX | LOCK_NB) < 0;
        /* Looked at again under the lock: a new process of this pid may have made a file of its own meanwhile. */
        if (!locked && is_over(pid) && !is_of_service(fd, (size_t)found.st_size) &&
            fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == found.st_dev &&
            named.st_ino == found.st_ino) {
            (void)unlinkat(folder, name, 0);
        }
    }
    close(fd);
    return !locked;
}

/* False where it is to be tried again. */
static int
remove_remains(const char *regions, pid_t pid)
{
    char folder[sizeof(struct sockaddr_un)];
    int directory = open_regions(regions);
    int done = directory < 0 || remove_region(directory, pid);
    if (directory >= 0) {
        close(directory);
    }
    if (done) {
        vmscope_socket_folder(folder);
        vmscope_remove_stale_socket(folder, pid, is_over);
    }
    return done;
}

/* -- the parent ------------------------------------------------------------------------------------ */

void
vmscope_watch_child(Listener *self, pid_t pid)
{
    struct Child *place = NULL;
    if (self->regions[0] == '\0' || self->shared_files || pid <= 0 || (has_ended(pid) < 0 && !is_over(pid))) {
        return; /* nothing of it is known here, its descriptor would be in the program's table, or it is not a child */
    }
    if (self->children == NULL && (self->children = calloc(MAX_CHILDREN, sizeof *self->children)) == NULL) {
        return;
    }
    for (struct Child *child = self->children; child < self->children + MAX_CHILDREN; child++) {
        if (child->pid == pid) {
            place = child; /* it has executed another program, or the pid is used again */
            if (child->fd >= 0) {
                close(child->fd);
            }
            break;
        }
        if (place == NULL && child->pid == 0) {
            place = child;
        }
    }
    if (place != NULL) {
        *place = (struct Child){.pid = pid, .fd = -1};
        self->children_at = 0;
    }
}

static rlim_t
count_watched(const Listener *self)
{
    rlim_t count = 0;
    for (const struct Child *child = self->children; child < self->children + MAX_CHILDREN; child++) {
        count += child->pid != 0 && child->fd >= 0;
    }
    return count;
}

/* A descriptor by which its end wakes the thread. -1 with errno. The half of all numbers stays for clients. */
static int
open_child(Listener *self, pid_t pid)
{
#ifdef SYS_pidfd_open
    struct rlimit limit;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)pid};
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || count_watched(self) >= limit.rlim_cur / 2) {
        errno = EMFILE;
        return -1;
    }
    if (self->children_fd < 0 && (self->children_fd = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        return -1;
    }
    int fd = (int)syscall(SYS_pidfd_open, pid, 0U);
    if (fd < 0 || epoll_ctl(self->children_fd, EPOLL_CTL_ADD, fd, &event) == 0) {
        return fd;
    }
    close(fd);
    errno = EMFILE;
#else
    errno = ENOSYS;
#endif
    return -1;
}

static void
look_at_child(Listener *self, const char *regions, struct Child *child, int64_t now)
{
    int again = 0;
    if (has_ended(child->pid) == 0) {
        child->fd = open_child(self, child->pid);
        again = child->fd < 0 && errno == ESRCH; /* it has ended since */
        child->pid = child->fd < 0 && !again ? 0 : child->pid;
    } else {
        again = !remove_remains(regions, child->pid) && ++child->tries < MOST_TRIES;
        child->pid = again ? child->pid : 0;
    }
    if (again) {
        self->children_at = now + RETRY;
    }
}

int64_t
vmscope_look_at_children(Listener *self, int64_t now)
{
    char regions[sizeof self->regions];
    if (self->children == NULL || self->children_at > now) {
        return self->children == NULL || self->children_at == VMSCOPE_FOREVER ? VMSCOPE_FOREVER
                                                                              : self->children_at - now;
    }
    pthread_mutex_lock(&self->mutex);
    memcpy(regions, self->regions, sizeof regions);
    pthread_mutex_unlock(&self->mutex);
    self->children_at = VMSCOPE_FOREVER;
    for (struct Child *child = self->children; child < self->children + MAX_CHILDREN; child++) {
        if (child->pid != 0 && child->fd < 0 && !vmscope_thread_is_stopping(&self->io_thread)) {
            look_at_child(self, regions, child, now);
        }
    }
    if (self->children_fd >= 0 && count_watched(self) == 0) {
        close(self->children_fd);
        self->children_fd = -1;
    }
    return self->children_at == VMSCOPE_FOREVER ? VMSCOPE_FOREVER : self->children_at - now;
}

void
vmscope_hear_of_children(Listener *self)
{
    struct epoll_event events[16];
    int count = epoll_wait(self->children_fd, events, sizeof events / sizeof *events, 0);
    for (int i = 0; i < count; i++) {
        for (struct Child *child = self->children; child < self->children + MAX_CHILDREN; child++) {
            if (child->fd >= 0 && child->pid == (pid_t)events[i].data.u64) {
                close(child->fd);
                child->fd = -1;
                self->children_at = 0;
            }
        }
    }
}

void
vmscope_forget_child_descriptors(Listener *self)
{
    self->children_fd = -1;
    for (struct Child *child = self->children; child != NULL && child < self->children + MAX_CHILDREN; child++) {
        child->fd = -1;
    }
    self->children_at = vmscope_now() + AFTER_FORK;
}
