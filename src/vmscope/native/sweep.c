/* Sockets that VMs left which were killed, and whose regions are gone too, so that nobody else knows of them. */
#define _GNU_SOURCE
#include "listener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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

/* Whether nobody listens: a VM of another pid namespace, which shares the folder, would be connected to. */
static int
is_refused(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path) {
        return 0;
    }
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int refused = fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) < 0 && errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return refused;
}

static int
is_left(int folder, const char *name, struct stat *found)
{
    return fstatat(folder, name, found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(found->st_mode) &&
           found->st_uid == geteuid() && time(NULL) - found->st_mtime >= LEAST_AGE;
}

static void
sweep_one(const char *path, int folder, const char *name)
{
    struct stat found, again;
    char full[PATH_MAX];
    pid_t pid = pid_of(name);
    if (pid == 0 || !is_dead(pid) || !is_left(folder, name, &found) ||
        snprintf(full, sizeof full, "%s/%s", path, name) >= (int)sizeof full || !is_refused(full)) {
        return;
    }
    /* once more: a new process of the pid may have come, and have made its own */
    if (is_left(folder, name, &again) && again.st_dev == found.st_dev && again.st_ino == found.st_ino && is_dead(pid)) {
        (void)unlinkat(folder, name, 0);
    }
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
        sweep_one(path, dirfd(folder), entry->d_name);
    }
    closedir(folder);
}
