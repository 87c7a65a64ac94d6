/* Who may have this process do something: whom the kernel would let trace it, or root.
 *
 * Ids, capabilities, NoNewPrivs and seccomp are a thread's. Whoever has one thread do something has all of them, as they
 * share their memory: so a client needs the rights of each. And what a client asks for, a thread of vmscope's does: where that
 * has rights that the main thread has not, no client is served, as the program would come by them. */
#define _GNU_SOURCE
#include "attach/listener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITY_VERSION_3 0x20080522 /* capget(2); its header file is not everywhere */

#define NOBODY 65534 /* where the kernel does not say whom it shows for who has no id in a user namespace */
#define ALL " 4294967295\n"

/* Whether every id has one in this process's user namespace, as in the first one. False where that cannot be known. */
static int
maps_all(const char *path)
{
    char text[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t end = sizeof ALL - 1, length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) {
        close(fd);
    }
    return length > end && memcmp(text + length - end, ALL, (size_t)end) == 0;
}

/* The id that the kernel shows for each that has none in this process's user namespace. */
static unsigned
overflow_id(const char *path)
{
    char text[16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (unsigned)strtoul(text, NULL, 10) : NOBODY;
}

static int
is_known(uid_t uid, gid_t gid)
{
    return (maps_all("/proc/self/uid_map") || uid != overflow_id("/proc/sys/kernel/overflowuid")) &&
           (maps_all("/proc/self/gid_map") || gid != overflow_id("/proc/sys/kernel/overflowgid"));
}

/* The real, the effective and the saved one: a process that has put privileges aside for a while has them still. */
static int
has_ids(uid_t uid, gid_t gid)
{
    uid_t uids[3];
    gid_t gids[3];
    int same = getresuid(&uids[0], &uids[1], &uids[2]) == 0 && getresgid(&gids[0], &gids[1], &gids[2]) == 0;
    for (int i = 0; i < 3 && same; i++) {
        same = uids[i] == uid && gids[i] == gid;
    }
    return same;
}

/* Whether it has, or has had, what its user does not have by himself: it was started as a setuid, setgid or otherwise
 * privileged program, has changed its user since, guards its memory from others, or has capabilities. */
static int
is_privileged(void)
{
    struct {
        uint32_t version;
        int pid;
    } head = {.version = CAPABILITY_VERSION_3};
    struct {
        uint32_t effective, permitted, inheritable;
    } data[2];
    return getauxval(AT_SECURE) != 0 || prctl(PR_GET_DUMPABLE) != 1 || syscall(SYS_capget, &head, data) != 0 ||
           (data[0].permitted | data[1].permitted) != 0;
}

int
vmscope_may_attach(uid_t uid, gid_t gid)
{
    return uid == 0 || (has_ids(uid, gid) && is_known(uid, gid) && !is_privileged());
}

/* -- the rights of threads ------------------------------------------------------------------------ */

typedef struct {
    unsigned uids[4], gids[4]; /* real, effective, saved, and the one for files */
    uint64_t permitted, effective, inheritable, bounding;
    uint64_t groups; /* a hash of the supplementary ones */
    int no_new_privileges, seccomp, filters;
} Rights;

/* What follows the name of a field; NULL where the line is another's. */
static const char *
value_of(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 ? line + length : NULL;
}

static void
parse_ids(const char *text, unsigned *ids)
{
    (void)sscanf(text, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]);
}

/* Of the rest of a line, by FNV-1a. */
static uint64_t
hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text != '\0' && *text != '\n'; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    }
    return hash;
}

static void
parse_right(const char *line, Rights *rights)
{
    const char *value;
    if ((value = value_of(line, "Uid:")) != NULL) {
        parse_ids(value, rights->uids);
    } else if ((value = value_of(line, "Gid:")) != NULL) {
        parse_ids(value, rights->gids);
    } else if ((value = value_of(line, "Groups:")) != NULL) {
        rights->groups = hash_of(value);
    } else if ((value = value_of(line, "CapInh:")) != NULL) {
        rights->inheritable = strtoull(value, NULL, 16);
    } else if ((value = value_of(line, "CapPrm:")) != NULL) {
        rights->permitted = strtoull(value, NULL, 16);
    } else if ((value = value_of(line, "CapEff:")) != NULL) {
        rights->effective = strtoull(value, NULL, 16);
    } else if ((value = value_of(line, "CapBnd:")) != NULL) {
        rights->bounding = strtoull(value, NULL, 16);
    } else if ((value = value_of(line, "NoNewPrivs:")) != NULL) {
        rights->no_new_privileges = atoi(value);
    } else if ((value = value_of(line, "Seccomp:")) != NULL) {
        rights->seccomp = atoi(value);
    } else if ((value = value_of(line, "Seccomp_filters:")) != NULL) {
        rights->filters = atoi(value);
    }
}

/* Those of a task, by its folder in /proc; 0, or the errno for which they cannot be known. */
static int
read_rights(const char *task, Rights *rights)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%s/status", task);
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* not with stdio, which a thread that flushes all streams may lock */
    if (fd < 0) {
        return errno;
    }
    *rights = (Rights){.permitted = UINT64_MAX};
    size_t length = 0;
    ssize_t count;
    while ((count = read(fd, text + length, sizeof text - 1 - length)) > 0) {
        char *line = text, *end;
        length += (size_t)count;
        text[length] = '\0';
        while ((end = strchr(line, '\n')) != NULL) {
            parse_right(line, rights);
            line = end + 1;
        }
        length = line == text && length == sizeof text - 1 ? 0 : (size_t)(text + length - line); /* a long one is cut */
        memmove(text, line, length);
    }
    int error = count < 0 ? errno : 0;
    close(fd);
    return error != 0 || rights->permitted != UINT64_MAX ? error : EIO;
}

/* What one has that the other has not; NULL: nothing. */
static const char *
excess(const Rights *one, const Rights *other)
{
    if (memcmp(one->uids, other->uids, sizeof one->uids) != 0 ||
        memcmp(one->gids, other->gids, sizeof one->gids) != 0) {
        return "ids";
    }
    if (one->groups != other->groups) {
        return "groups";
    }
    if ((one->permitted & ~other->permitted) != 0 || (one->effective & ~other->effective) != 0 ||
        (one->inheritable & ~other->inheritable) != 0 || (one->bounding & ~other->bounding) != 0) {
        return "capabilities";
    }
    if (one->no_new_privileges < other->no_new_privileges) {
        return "NoNewPrivs";
    }
    int confined = other->seccomp == 0 || (one->seccomp == other->seccomp && one->filters >= other->filters);
    return confined ? NULL : "Seccomp";
}

static int
is_plain(const Rights *rights, uid_t uid, gid_t gid)
{
    int same = rights->permitted == 0;
    for (int i = 0; i < 3; i++) {
        same = same && rights->uids[i] == uid && rights->gids[i] == gid;
    }
    return same;
}

/* The number of a thread that has other ids or capabilities, -1 where that cannot be known; 0: none. */
static long
find_privileged(uid_t uid, gid_t gid)
{
    DIR *folder = opendir("/proc/self/task");
    long found = folder == NULL ? -1 : 0;
    struct dirent *entry;
    while (found == 0 && (entry = readdir(folder)) != NULL) {
        char task[32];
        Rights rights;
        long id = strtol(entry->d_name, NULL, 10);
        if (id > 0) { /* not . and .. */
            snprintf(task, sizeof task, "self/task/%ld", id);
            int error = read_rights(task, &rights);
            int ended = error == ENOENT || error == ESRCH;
            found = ended || (error == 0 && is_plain(&rights, uid, gid)) ? 0 : error != 0 ? -1 : id;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

int
vmscope_all_may_attach(uid_t uid, gid_t gid)
{
    return uid == 0 || find_privileged(uid, gid) == 0;
}

/* Its own are read again where it seems to have more: what gives a thread of vmscope's other ids gives them to all threads, and
 * nothing gives it capabilities, so that what it has had is enough to compare with until then. */
int
vmscope_exceeds_main(int unknown)
{
    static VMSCOPE_THREAD_LOCAL Rights own = {.permitted = UINT64_MAX};
    Rights leader;
    int error = read_rights("self", &leader);
    if (error == 0 && excess(&own, &leader) != NULL) {
        error = read_rights("thread-self", &own);
    }
    if (error != 0) {
        return unknown || (error != EMFILE && error != ENFILE);
    }
    return excess(&own, &leader) != NULL;
}

void
vmscope_describe_limit(pid_t tid, char *text, size_t size)
{
    char task[32];
    Rights own, leader;
    const char *more;
    long other;
    text[0] = '\0';
    snprintf(task, sizeof task, "self/task/%ld", (long)tid);
    if (read_rights("self", &leader) != 0 || read_rights(task, &own) != 0) {
        return;
    }
    if ((more = excess(&own, &leader)) != NULL) {
        snprintf(text, size,
                 "no client can attach: threads of vmscope have rights that the main thread does not have (%s); "
                 "call vmscope.stop() and start() once the program has changed its rights",
                 more);
    } else if (is_plain(&own, own.uids[0], own.gids[0]) && (other = find_privileged(own.uids[0], own.gids[0])) > 0) {
        snprintf(text, size, "root alone can attach: thread %ld has other ids than the process, or capabilities",
                 other);
    }
}
