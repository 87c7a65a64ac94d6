/* Who may have this process do something: whom the kernel would let trace it, or root. */
#define _GNU_SOURCE
#include "listener.h"

#include <stdint.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITY_VERSION_3 0x20080522 /* capget(2); its header file is not everywhere */

#define NOBODY 65534 /* and, as the kernel shows it, whoever has no id in this process's user namespace */
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

static int
is_known(uid_t uid, gid_t gid)
{
    return (uid != NOBODY || maps_all("/proc/self/uid_map")) && (gid != NOBODY || maps_all("/proc/self/gid_map"));
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
