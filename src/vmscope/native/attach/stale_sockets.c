/* Stale sockets of killed VMs whose regions are gone too, so that they are known nowhere else. */
#define _GNU_SOURCE
#include "attach/listener.h"
#include "files/shared_folder.h"

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
#define LEAST_AGE 60     /* seconds */
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

/* A socket of vmscope's that is old enough. */
static int
is_left(const struct stat *found, time_t least_age)
{
    return S_ISSOCK(found->st_mode) && found->st_uid == geteuid() && time(NULL) - found->st_mtime >= least_age;
}

/* Whether the name still is that of what was looked at: a new process of the pid may have come, and have made its own. */
static int
is_still_named(int folder, const char *name, const struct stat *found)
{
    struct stat again;
    return vmscope_stat_beneath(folder, name, &again) == 0 && again.st_dev == found->st_dev &&
           again.st_ino == found->st_ino;
}

/* What is connected to is what was looked at, wherever its name leads by then. A VM of another pid namespace, which shares
 * the folder, answers. */
static void
remove_if_stale(int folder, const char *name, pid_t pid, int (*is_over)(pid_t), time_t least_age)
{
    struct stat found;
    int place = pid != 0 && is_over(pid) ? vmscope_open_beneath(folder, name, O_PATH) : -1;
    if (place < 0) {
        return;
    }
    if (fstat(place, &found) == 0 && is_left(&found, least_age) && vmscope_connect_to(place) == ECONNREFUSED &&
        is_still_named(folder, name, &found) && is_over(pid)) {
        (void)unlinkat(folder, name, 0);
    }
    close(place);
}

void
vmscope_remove_stale_sockets(const char *path, Thread *self)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    struct dirent *entry;
    for (int i = 0; i < MOST_NAMES && !vmscope_thread_is_stopping(self) && (entry = readdir(folder)) != NULL; i++) {
        if (entry->d_type == DT_SOCK || entry->d_type == DT_UNKNOWN) {
            remove_if_stale(dirfd(folder), entry->d_name, pid_of(entry->d_name), is_dead, LEAST_AGE);
        }
    }
    closedir(folder);
}

void
vmscope_remove_stale_socket(const char *path, pid_t pid, int (*is_over)(pid_t))
{
    char name[sizeof PREFIX + 16];
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(name, sizeof name, PREFIX "%d", (int)pid);
    if (folder >= 0) {
        remove_if_stale(folder, name, pid, is_over, 0); /* it listens before it has this name */
        close(folder);
    }
}
