/* Around a fork the listener's sockets are in flight, in the queue of a socket pair without a name. The program's table has
 * the pair's one end; the other one is in flight with them. So only the I/O thread adds to the queue, nothing of vmscope's goes
 * through the program's table, and what a forked child has of all this is one descriptor. */
#define _GNU_SOURCE
#include "attach/handover.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_IN_FLIGHT (1 + MAX_HANDED_OVER)
#define LEAST_NUMBER 48 /* of our end: the lowest ones stay the program's, and below 64 a table need not grow */

Socket vmscope_handover_end = {.fd = -1}, vmscope_handover_sender = {.fd = -1};
static pid_t maker; /* a forked child has its parent's end */

/* -- a descriptor and its file -------------------------------------------------------------------- */

void
vmscope_own(Socket *self, int fd)
{
    struct stat found = {0};
    self->fd = fstat(fd, &found) == 0 ? fd : -1;
    self->device = found.st_dev;
    self->inode = found.st_ino;
}

int
vmscope_owns(const Socket *self)
{
    struct stat found;
    return self->fd >= 0 && fstat(self->fd, &found) == 0 && found.st_dev == self->device && found.st_ino == self->inode;
}

void
vmscope_close_own(Socket *self)
{
    if (vmscope_owns(self)) {
        close(self->fd);
    }
    self->fd = -1;
}

/* -- messages ------------------------------------------------------------------------------------- */

typedef union {
    char bytes[CMSG_SPACE(sizeof(int) * MAX_IN_FLIGHT)];
    struct cmsghdr align;
} Control;

static int
send_descriptors(int fd, const int *fds, size_t count)
{
    Control control = {.bytes = {0}};
    struct iovec nothing = {.iov_base = "", .iov_len = 1};
    struct msghdr message = {.msg_iov = &nothing,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* The descriptors that a message has brought, in whichever of its parts: this many are kept, the others closed. How many there
 * were. */
static size_t
unpack(struct msghdr *message, int *fds, size_t room)
{
    size_t count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
        int rights = part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS;
        size_t found = rights ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
        for (size_t i = 0; i < found; i++, count++) { /* one more than MAX_IN_FLIGHT where CMSG_SPACE pads */
            int received;
            memcpy(&received, CMSG_DATA(part) + i * sizeof received, sizeof received);
            if (count < room) {
                fds[count] = received;
            } else {
                close(received);
            }
        }
    }
    return count;
}

/* Takes a message with this many, and no other. */
static int
receive_descriptors(int fd, int *fds, size_t count)
{
    Control control;
    char byte;
    struct iovec nothing = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &nothing, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
        return 0;
    }
    size_t found = unpack(&message, fds, count);
    if (found == count && !(message.msg_flags & MSG_CTRUNC)) {
        return 1;
    }
    for (size_t i = 0; i < found && i < count; i++) {
        close(fds[i]);
    }
    return 0;
}

/* -- the handover --------------------------------------------------------------------------------- */

/* In a forked child, also where C code forks: whoever had the end could take what is in flight at the parent's next fork. */
static void
forget(void)
{
    vmscope_close_own(&vmscope_handover_end);
}

static void
watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget);
}

static void
make(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int pair[2];
    pthread_once(&once, watch_forks);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        return;
    }
    int end = fcntl(pair[0], F_DUPFD_CLOEXEC, LEAST_NUMBER);
    end = end < 0 ? fcntl(pair[0], F_DUPFD_CLOEXEC, 3) : end;
    vmscope_own(&vmscope_handover_end, end);
    vmscope_own(&vmscope_handover_sender, pair[1]);
    if (!vmscope_handover_send(NULL, 0)) {
        vmscope_close_own(&vmscope_handover_end);
        vmscope_handover_sender.fd = -1;
    }
    close(pair[0]);
    close(pair[1]);
    maker = getpid();
}

int
vmscope_handover_prepare(void)
{
    int there = maker == getpid() && vmscope_handover_sender.fd >= 0 && vmscope_owns(&vmscope_handover_end);
    if (!there) {
        vmscope_close_own(&vmscope_handover_end);
        vmscope_handover_sender.fd = -1;
        make();
    }
    return there;
}

int
vmscope_handover_unshare(void)
{
#ifdef SYS_close_range
    int kept = vmscope_owns(&vmscope_handover_end) ? vmscope_handover_end.fd : -1;
    if (syscall(SYS_close_range, (unsigned)(kept + 1), ~0U, 2U) == 0) { /* 2: CLOSE_RANGE_UNSHARE */
        if (kept > 0) {
            (void)syscall(SYS_close_range, 0U, (unsigned)kept - 1, 0U);
        }
        if (kept >= 0 &&
            !vmscope_owns(&vmscope_handover_end)) { /* the program has closed it meanwhile, and has its own there */
            close(kept);
        }
        return 1;
    }
#endif
    return 0;
}

int
vmscope_handover_send(Socket *const *sockets, size_t count)
{
    int fds[MAX_IN_FLIGHT] = {vmscope_handover_sender.fd};
    for (size_t i = 0; i < count; i++) {
        fds[1 + i] = sockets[i]->fd;
    }
    return send_descriptors(vmscope_handover_sender.fd, fds, 1 + count);
}

int
vmscope_handover_receive(Socket *const *sockets, size_t count)
{
    Socket *expected[MAX_IN_FLIGHT] = {&vmscope_handover_sender};
    int fds[MAX_IN_FLIGHT];
    for (size_t i = 0; i < count; i++) {
        expected[1 + i] = sockets[i];
    }
    int received = vmscope_owns(&vmscope_handover_end) && receive_descriptors(vmscope_handover_end.fd, fds, 1 + count);
    int right = received;
    for (size_t i = 0; i <= count; i++) {
        expected[i]->fd = received ? fds[i] : -1;
        right = right && vmscope_owns(expected[i]);
    }
    for (size_t i = 0; i <= count && received && !right; i++) {
        close(fds[i]);
        expected[i]->fd = -1;
    }
    return right;
}
