/* Sockets that VMs left which were killed, and whose regions are gone too, so that nobody else knows of them. */
#define _GNU_SOURCE
#include "listener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX ".java_pid"
#define LEAST_AGE 60 /* seconds */
#define MOST_NAMES 16384 /* are looked at: whoever may make files there must not hold up a start */

/* The pid of `.java_pidN`, or of `.java_pidN.tmp`, under which it is made; 0: another name. */
static pid_t
pid_of(const char *name)
{
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) {
        return 0;
    }
    const char *digits = name + sizeof PREFIX - 1;
    size_t count = strspn(digits, "0123456789");
    int whole = digits[count] == '\0' || strcmp(digits + count, ".tmp") == 0;
    long pid = whole && count > 0 && count < 11 && digits[0] != '0' ? strtol(digits, NULL, 10) : 0;
    return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static int
is_dead(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* A socket of ours that is a minute old. */
static int
is_left(const struct stat *found)
{
    return S_ISSOCK(found->st_mode) && found->st_uid == geteuid() && time(NULL) - found->st_mtime >= LEAST_AGE;
}

/* Whether the name still is that of what was looked at: a new process of the pid may have come, and have made its own. */
static int
is_still_named(int folder, const char *name, const struct stat *found)
{
    struct stat again;
    return fstatat(folder, name, &again, AT_SYMLINK_NOFOLLOW) == 0 && again.st_dev == found->st_dev &&
           again.st_ino == found->st_ino;
}

/* What is connected to is what was looked at, wherever its name leads by then. A VM of another pid namespace, which shares
 * the folder, answers. */
static void
sweep_one(int folder, const char *name)
{
    struct stat found;
    pid_t pid = pid_of(name);
    int place = pid != 0 && is_dead(pid) ? openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (place < 0) {
        return;
    }
    if (fstat(place, &found) == 0 && is_left(&found) && vmscope_connect_to(place) == ECONNREFUSED &&
        is_still_named(folder, name, &found) && is_dead(pid)) {
        (void)unlinkat(folder, name, 0);
    }
    close(place);
}

void
vmscope_sweep(const char *path, Thread *self)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    struct dirent *entry;
    for (int i = 0; i < MOST_NAMES && !vmscope_thread_is_stopping(self) && (entry = readdir(folder)) != NULL; i++) {
        sweep_one(dirfd(folder), entry->d_name);
    }
    closedir(folder);
}
