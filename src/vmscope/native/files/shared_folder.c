/* Names in folders where others may make some. A user may mount a FUSE file system under a name of his own, and need not
 * answer: whoever opens a file there, or only asks whose it is, waits for ever. So nothing is opened across a mount, which
 * the kernel tells without a look at what is mounted. It knows no Python. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "files/shared_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(SYS_openat2) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>

static long
openat_same_mount(int folder, const char *name, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return syscall(SYS_openat2, folder, name, &how, sizeof how);
}
#else
static long
openat_same_mount(int folder, const char *name, int flags)
{
    (void)folder, (void)name, (void)flags;
    errno = ENOSYS;
    return -1;
}
#endif

void
vmscope_append_number(char *text, int number)
{
    char digits[16];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    text += strlen(text);
    while (count > 0) {
        *text++ = digits[--count];
    }
    *text = '\0';
}

/* -- where the kernel has no openat2 (before 5.6), or a sandbox refuses it ------------------------ */

/* The number of the mount that a descriptor is on; -1 where /proc does not tell. */
static long
mount_of(int fd)
{
    char text[512] = "/proc/thread-self/fdinfo/";
    vmscope_append_number(text, fd);
    int info = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t size = info < 0 ? -1 : read(info, text, sizeof text - 1);
    if (info >= 0) {
        close(info);
    }
    text[size < 0 ? 0 : size] = '\0';
    const char *number = strstr(text, "mnt_id:");
    return number == NULL ? -1 : strtol(number + strlen("mnt_id:"), NULL, 10);
}

/* Opens what `place`, which asks nothing of a file system, stands for. */
static int
open_place(int folder, int place, const char *name, int flags)
{
    char path[64] = "/proc/thread-self/fd/";
    struct stat found;
    long mount = mount_of(folder);
    if (mount < 0) { /* without /proc nothing tells */
        return openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC);
    }
    if (mount_of(place) != mount) {
        errno = EXDEV;
        return -1;
    }
    if (fstat(place, &found) < 0 || S_ISLNK(found.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    vmscope_append_number(path, place);
    return open(path, (flags | O_CLOEXEC) & ~O_NOFOLLOW);
}

static void
close_quietly(int fd)
{
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
}

int
vmscope_open_beneath(int folder, const char *name, int flags)
{
    long fd = openat_same_mount(folder, name, flags);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) {
        return (int)fd;
    }
    int place = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    fd = place < 0 ? -1 : open_place(folder, place, name, flags);
    close_quietly(place);
    return (int)fd;
}

/* -- by a path ------------------------------------------------------------------------------------ */

int
vmscope_open_named(const char *path, int flags)
{
    char folder[LONGEST_NAMED] = ".";
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 1 : (size_t)(slash - path);
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (slash != NULL) {
        memcpy(folder, length == 0 ? "/" : path, length == 0 ? 1 : length);
    }
    int place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = place < 0 ? -1 : vmscope_open_beneath(place, slash == NULL ? path : slash + 1, flags);
    close_quietly(place);
    return fd;
}

int
vmscope_find_named(const char *path, int flags)
{
    int there = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* asks nothing of what is mounted there */
    if (there < 0) {
        return -1;
    }
    close(there);
    return vmscope_open_named(path, flags);
}

int
vmscope_stat_beneath(int folder, const char *name, struct stat *found)
{
    int place = vmscope_open_beneath(folder, name, O_PATH);
    int result = place < 0 ? -1 : fstat(place, found);
    close_quietly(place);
    return result;
}

int
vmscope_stat_named(const char *path, struct stat *found)
{
    int place = vmscope_open_named(path, O_PATH);
    int result = place < 0 ? -1 : fstat(place, found);
    close_quietly(place);
    return result;
}
