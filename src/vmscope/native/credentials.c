/* Who may have this process do something: whom the kernel would let trace it, or root. */
#define _GNU_SOURCE
#include "listener.h"

#include <stdint.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITY_VERSION_3 0x20080522 /* capget(2); its header file is not everywhere */

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
    return uid == 0 || (has_ids(uid, gid) && !is_privileged());
}
