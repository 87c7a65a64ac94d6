/* What arrives in the place of the listener's sockets: messages with any number of descriptors, and with parts of other
 * kinds. All that is not expected is closed; what is expected is taken. Exits with 0 where that holds. */
#include "attach/handover.c"
#include "files/shared_folder.c"
#include "attach/socket.c"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>

#define MOST 253 /* descriptors in one message, as the kernel has it */

void
vmscope_ask_for_socket(void)
{
    /* no thread is there */
}

static void
require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s does not hold\n", what);
        exit(1);
    }
}

#define REQUIRE(condition) require(condition, #condition)

static size_t
count_open(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    REQUIRE(folder != NULL);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

/* A message with so many descriptors, all of them of one file. */
static void
send_some(int fd, size_t count)
{
    char bytes[CMSG_SPACE(sizeof(int) * MOST)] __attribute__((aligned(8))) = {0};
    struct iovec nothing = {.iov_base = "", .iov_len = 1};
    struct msghdr message = {.msg_iov = &nothing, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        for (size_t i = 0; i < count; i++) {
            memcpy(CMSG_DATA(head) + i * sizeof fd, &fd, sizeof fd);
        }
    }
    REQUIRE(sendmsg(fd, &message, 0) == 1);
}

/* Whether a message with `sent` descriptors is taken where `count` are expected; nothing of it stays open. */
static int
is_taken_for(const int pair[2], size_t sent, size_t count)
{
    size_t before = count_open();
    int *fds = malloc(count * sizeof *fds); /* so that the sanitizer sees one too many */
    REQUIRE(fds != NULL);
    send_some(pair[1], sent);
    int taken = receive_descriptors(pair[0], fds, count);
    for (size_t i = 0; i < count && taken; i++) {
        REQUIRE((fcntl(fds[i], F_GETFD) & FD_CLOEXEC) != 0);
        close(fds[i]);
    }
    free(fds);
    REQUIRE(count_open() == before);
    return taken;
}

static void
try_numbers(const int pair[2])
{
    const size_t counts[] = {1, 2, 3, MAX_IN_FLIGHT - 1, MAX_IN_FLIGHT};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (size_t sent = 0; sent <= MOST; sent++) {
            REQUIRE(is_taken_for(pair, sent, counts[i]) == (sent == counts[i]));
        }
    }
}

/* The kernel gives fewer than were sent, and says so. */
static void
try_limit(const int pair[2])
{
    struct rlimit before, less;
    int next = dup(0);
    close(next);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    for (int room = 0; room < 4; room++) {
        less = before;
        less.rlim_cur = (rlim_t)(next + room);
        int fds[4];
        size_t open_before = count_open();
        send_some(pair[1], 4);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &less) == 0);
        REQUIRE(!receive_descriptors(pair[0], fds, 4));
        REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
        REQUIRE(count_open() == open_before);
        send_some(pair[1], 4); /* as many as fit are not what is expected either */
        REQUIRE(setrlimit(RLIMIT_NOFILE, &less) == 0);
        REQUIRE(!receive_descriptors(pair[0], fds, room == 0 ? 1 : (size_t)room));
        REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
        REQUIRE(count_open() == open_before);
    }
}

/* Where the receiving end wants to know the sender, that comes before the descriptors. */
static void
try_other_parts(const int pair[2])
{
    int on = 1;
    REQUIRE(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    for (size_t sent = 0; sent <= MOST; sent++) {
        REQUIRE(is_taken_for(pair, sent, 3) == (sent == 3));
    }
    on = 0;
    REQUIRE(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
}

/* What is taken for the listening socket: that which was made here, and no other. */
static void
try_sockets(const char *folder, const int pair[2])
{
    char path[64], temporary[64], other[64];
    snprintf(path, sizeof path, "%s/s", folder);
    snprintf(temporary, sizeof temporary, "%s/s.tmp", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    REQUIRE(vmscope_name_socket(path, temporary));
    int made = vmscope_open_socket();
    REQUIRE(made >= 0 && vmscope_is_socket(made));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, other);
    int listening = socket(AF_UNIX, SOCK_STREAM, 0), silent = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listening, (struct sockaddr *)&name, sizeof name) == 0 && listen(listening, 1) == 0);
    strcpy(name.sun_path, temporary);
    REQUIRE(bind(silent, (struct sockaddr *)&name, sizeof name) == 0);
    REQUIRE(!vmscope_is_socket(listening));
    REQUIRE(!vmscope_is_socket(silent));
    REQUIRE(!vmscope_is_socket(pair[0]));
    REQUIRE(!vmscope_is_socket(0));
    REQUIRE(!vmscope_is_socket(-1));
    close(made);
    close(listening);
    close(silent);
}

int
main(int count, char **arguments)
{
    int pair[2];
    REQUIRE(count == 2);
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    REQUIRE(!receive_descriptors(pair[0], pair, 1)); /* nothing has come */
    try_numbers(pair);
    try_limit(pair);
    try_other_parts(pair);
    try_sockets(arguments[1], pair);
    return 0;
}
