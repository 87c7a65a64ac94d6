/* The socket's name: made under another one, closed to others from the first moment, and renamed when it listens. */
#define _GNU_SOURCE
#include "attach/listener.h"
#include "files/shared_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Switched off, no client can hand us descriptors, of which the last close may wait for a network or a disk. Linux 6.16;
 * an older one does not know the number. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static struct sockaddr_un final_name, temporary_name; /* written while no thread of the listener's runs */
static _Atomic dev_t device;
static _Atomic ino_t inode;
static dev_t folder_device; /* of the folder that the name is in, where that is known: else 0 */
static ino_t folder_inode;
static _Atomic pid_t owner; /* the process whose socket has the name; 0: none */
static _Atomic int watched; /* it was opened, and is not known to have lost its name */

int
vmscope_name_socket(const char *path, const char *temporary)
{
    if (strlen(path) >= sizeof final_name.sun_path || strlen(temporary) >= sizeof temporary_name.sun_path) {
        return 0;
    }
    final_name.sun_family = temporary_name.sun_family = AF_UNIX;
    strcpy(final_name.sun_path, path);
    strcpy(temporary_name.sun_path, temporary);
    return 1;
}

const char *
vmscope_socket_path(void)
{
    return final_name.sun_path;
}

void
vmscope_socket_folder(char folder[sizeof(struct sockaddr_un)])
{
    const char *end = strrchr(final_name.sun_path, '/');
    size_t length = end == NULL ? 0 : (size_t)(end - final_name.sun_path);
    memcpy(folder, final_name.sun_path, length);
    folder[length] = '\0';
}

static int
is_named(void)
{
    struct stat found;
    return vmscope_stat_named(final_name.sun_path, &found) == 0 && found.st_dev == device && found.st_ino == inode;
}

int
vmscope_has_lost_socket(void)
{
    return !is_named();
}

/* After a chroot the path leads elsewhere, and says nothing. */
void
vmscope_notice_lost_socket(void)
{
    char path[sizeof(struct sockaddr_un)];
    struct stat folder;
    if (!atomic_load(&watched) || atomic_load(&owner) != getpid()) {
        return;
    }
    vmscope_socket_folder(path);
    if (stat(path, &folder) == 0 && folder.st_dev == folder_device && folder.st_ino == folder_inode && !is_named() &&
        atomic_exchange(&watched, 0)) {
        vmscope_ask_for_socket();
    }
}

int
vmscope_is_socket(int fd)
{
    struct sockaddr_un name = {0};
    socklen_t size = sizeof name, length = sizeof(int);
    int listens = 0;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens &&
           getsockname(fd, (struct sockaddr *)&name, &size) == 0 && name.sun_family == AF_UNIX &&
           strncmp(name.sun_path, temporary_name.sun_path, sizeof name.sun_path) == 0;
}

void
vmscope_unlink_socket(void)
{
    pid_t self = getpid();
    if (atomic_compare_exchange_strong(&owner, &self, 0) && is_named()) {
        (void)unlink(final_name.sun_path);
    }
}

int
vmscope_connect_at(int place)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "/proc/thread-self/fd/%d", place);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) == 0) {
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int
vmscope_connect_to(int place)
{
    int fd = vmscope_connect_at(place);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

/* Whether a process answers at what the descriptor is. */
static int
answers(int place)
{
    int error = vmscope_connect_to(place);
    return error == 0 || error == EAGAIN;
}

/* 0, or the errno for which the name cannot be had: a process answers there, as a VM of the same pid in another pid
 * namespace, which shares the folder (EADDRINUSE), or a file system is mounted there (EXDEV). What is looked at is what is
 * connected to: the name may be another user's, and lead elsewhere by then. */
static int
find_taken(void)
{
    struct stat found;
    int place = vmscope_find_named(final_name.sun_path, O_PATH);
    if (place < 0) {
        return errno == EXDEV ? EXDEV : 0;
    }
    int taken = fstat(place, &found) == 0 && S_ISSOCK(found.st_mode) && answers(place);
    close(place);
    return taken ? EADDRINUSE : 0;
}

/* Binds the socket to its first name, closed to others, and listens. 0, or -1 with errno. */
static int
bind_temporary(int fd, struct stat *found)
{
    const struct sockaddr *name = (struct sockaddr *)&temporary_name;
    if (fchmod(fd, 0600) < 0) {
        return -1;
    }
    int bound = bind(fd, name, sizeof temporary_name);
    if (bound < 0 && errno == EADDRINUSE && unlink(temporary_name.sun_path) == 0) {
        /* it was a former process's of this pid, which was killed between two steps */
        bound = bind(fd, name, sizeof temporary_name);
    }
    return bound < 0 || listen(fd, BACKLOG) < 0 || lstat(temporary_name.sun_path, found) < 0 ? -1 : 0;
}

int
vmscope_open_socket(void)
{
    struct stat found, folder;
    char path[sizeof(struct sockaddr_un)];
    atomic_store(&watched, 0); /* until all of it is known */
    int taken = find_taken();
    if (taken != 0) {
        errno = taken;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int));
    int bound = bind_temporary(fd, &found) == 0;
    if (!bound || rename(temporary_name.sun_path, final_name.sun_path) < 0) {
        int error = errno;
        if (bound) {
            (void)unlink(temporary_name.sun_path);
        }
        close(fd);
        errno = error;
        return -1;
    }
    device = found.st_dev;
    inode = found.st_ino;
    vmscope_socket_folder(path);
    int known = stat(path, &folder) == 0;
    folder_device = known ? folder.st_dev : 0;
    folder_inode = known ? folder.st_ino : 0;
    atomic_store(&owner, getpid());
    atomic_store(&watched, 1);
    return fd;
}
