/* The thread that talks with clients: it accepts, checks who they are, reads requests, sends replies; without the GIL,
 * and asleep while nobody wants anything. */
#define _GNU_SOURCE
#include "listener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_ROOM 1024
#define LEAST_READ 256
#define DRAIN 65536             /* bytes of input that are read and forgotten, so that the end of the reply arrives */
#define BREATH 100000000        /* ns without accepting, where the system has no descriptor left */
#define READY_TIMEOUT 1000000000 /* ns */
#define FOREVER INT64_MAX

/* -- connections ---------------------------------------------------------------------------------- */

static void
forget_reply(Listener *self, Connection *connection)
{
    self->queued -= connection->written - connection->sent;
    free(connection->reply);
    connection->reply = NULL;
    connection->sent = connection->written = connection->reply_room = 0;
}

void
vmscope_forget_connection(Listener *self, Connection *connection)
{
    forget_reply(self, connection);
    free(connection->request);
    connection->request = NULL;
    connection->length = connection->room = 0;
    connection->stage = FREE;
    connection->serial = 0;
    connection->gone = 0;
    connection->fd = -1;
    connection->call = connection->steps = NULL; /* in a forked child: what they would clean up is the parent's */
}

/* On the talker. What is still served is forgotten once the servant is done with it. */
static void
drop(Listener *self, Connection *connection)
{
    if (connection->fd >= 0) {
        close(connection->fd);
        connection->fd = -1;
    }
    if (connection->stage == SERVED) {
        connection->gone = 1;
        forget_reply(self, connection);
    } else {
        vmscope_forget_connection(self, connection);
    }
    pthread_cond_broadcast(&self->changed);
}

/* A client that has got its whole reply. Unread input would take the reply from it, as a reset of the connection. */
static void
finish(Listener *self, Connection *connection)
{
    char ignored[4096];
    (void)shutdown(connection->fd, SHUT_WR);
    for (size_t drained = 0; drained < DRAIN; drained += sizeof ignored) {
        if (recv(connection->fd, ignored, sizeof ignored, MSG_DONTWAIT) <= 0) {
            break;
        }
    }
    drop(self, connection);
}

static void
refuse(Listener *self, Connection *connection, const char *reply)
{
    size_t length = strlen(reply);
    (void)send(connection->fd, reply, length, MSG_NOSIGNAL | MSG_DONTWAIT); /* the first bytes: there is room */
    finish(self, connection);
}

void
vmscope_give_up(Listener *self, Connection *connection)
{
    forget_reply(self, connection);
    connection->gone = 1;
}

void
vmscope_reclaim(Listener *self, int64_t now)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        if (connection->stage == ENDING && now - connection->since >= READING_TIMEOUT) {
            vmscope_give_up(self, connection);
        }
    }
}

/* The ns until its place may be taken by another; FOREVER: not before it has been served. */
static int64_t
grace(const Connection *connection, int64_t now)
{
    int64_t least = connection->stage == ARRIVING ? ARRIVAL_LEAST : connection->stage == ENDING ? READING_TIMEOUT : FOREVER;
    return least == FOREVER ? FOREVER : least - (now - connection->since);
}

/* A free place, or the one whose client has been given the most time beyond its due; NULL, and then `wait` says in how
 * many ns there may be one. */
static Connection *
find_place(Listener *self, int64_t now, int64_t *wait)
{
    Connection *best = NULL;
    *wait = FOREVER;
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        if (connection->stage == FREE) {
            *wait = 0;
            return connection;
        }
        int64_t left = grace(connection, now);
        if (left < *wait) {
            *wait = left;
            best = connection;
        }
    }
    if (*wait > 0) {
        return NULL;
    }
    *wait = 0;
    return best;
}

/* -- reading -------------------------------------------------------------------------------------- */

static int
make_room(Connection *connection)
{
    if (connection->room - connection->length >= LEAST_READ) {
        return 0;
    }
    size_t room = connection->room == 0 ? FIRST_ROOM : connection->room * 2;
    char *request = realloc(connection->request, room);
    if (request == NULL) {
        return -1;
    }
    connection->request = request;
    connection->room = room;
    return 0;
}

static void
take_request(Listener *self, Connection *connection, int64_t now)
{
    int version;
    size_t begin, end;
    switch (vmscope_frame(connection->request, connection->length, &version, &begin, &end)) {
    case FRAME_WHOLE:
        connection->stage = WAITING;
        connection->serial = ++self->serials;
        connection->since = now;
        pthread_mutex_lock(&self->servant.mutex);
        vmscope_thread_kick(&self->servant);
        pthread_mutex_unlock(&self->servant.mutex);
        break;
    case FRAME_VERSION:
        refuse(self, connection, "101\nprotocol versions 1 and 2 are known here\n");
        break;
    case FRAME_MALFORMED:
        refuse(self, connection, "-1\nmalformed request\n");
        break;
    case FRAME_INCOMPLETE:
        break;
    }
}

static void
receive(Listener *self, Connection *connection, int64_t now)
{
    while (connection->stage == ARRIVING) {
        if (make_room(connection) < 0) {
            drop(self, connection);
            return;
        }
        ssize_t count = recv(connection->fd, connection->request + connection->length,
                             connection->room - connection->length, MSG_DONTWAIT);
        if (count > 0) {
            connection->length += (size_t)count;
            take_request(self, connection, now);
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            drop(self, connection);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* -- sending -------------------------------------------------------------------------------------- */

static void
transmit(Listener *self, Connection *connection, int64_t now)
{
    while (connection->sent < connection->written) {
        ssize_t count = send(connection->fd, connection->reply + connection->sent,
                             connection->written - connection->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count > 0) {
            connection->sent += (size_t)count;
            connection->since = now;
            self->queued -= (size_t)count;
            pthread_cond_broadcast(&self->changed);
        } else if (count < 0 && errno == EAGAIN) {
            return;
        } else if (count < 0 && errno != EINTR) {
            drop(self, connection);
            return;
        }
    }
    if (connection->stage == ENDING) {
        finish(self, connection);
    }
}

/* -- accepting ------------------------------------------------------------------------------------ */

/* The user that this process is, or root: nobody else gets a word. */
static int
may_attach(int fd, struct ucred *client)
{
    socklen_t size = sizeof *client;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, client, &size) == 0 &&
           (client->uid == geteuid() || client->uid == 0);
}

/* As many as there are places for; false where the system has no descriptor left. */
static int
accept_all(Listener *self, int64_t now)
{
    int64_t wait;
    Connection *place;
    while ((place = find_place(self, now, &wait)) != NULL) {
        int fd = accept4(self->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            return errno == EAGAIN;
        }
        struct ucred client;
        if (!may_attach(fd, &client)) {
            close(fd);
            continue;
        }
        if (place->stage != FREE) {
            drop(self, place);
        }
        place->stage = ARRIVING;
        place->fd = fd;
        place->pid = client.pid;
        place->uid = client.uid;
        place->since = now;
        place->serial = ++self->serials;
        receive(self, place, now); /* most are there already */
    }
    return 1;
}

/* -- what others left ----------------------------------------------------------------------------- */

/* The ns until it is time to look; most processes have ended by then. */
static int64_t
sweep(Listener *self, int64_t now)
{
    char folder[sizeof(struct sockaddr_un)];
    if (self->sweep_at > now) {
        return self->sweep_at - now;
    }
    if (self->sweep_at > 0) {
        self->sweep_at = 0;
        vmscope_socket_folder(folder);
        vmscope_sweep(folder, &self->talker);
    }
    return FOREVER;
}

/* -- one turn ------------------------------------------------------------------------------------- */

static void
open_anew(Listener *self)
{
    if (self->fd >= 0) {
        close(self->fd);
    }
    self->fd = vmscope_open_socket();
}

/* Closes what has had its time. */
static void
expire(Listener *self, int64_t now)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        int late = connection->stage == ARRIVING && now - connection->since >= ARRIVAL_TIMEOUT;
        if (connection->fd >= 0 && (late || connection->gone)) {
            drop(self, connection);
        }
    }
}

static int64_t
earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* What is polled: `polls[0]` the wake-ups, `polls[1]` the socket where there is a place, then those of `polled`. The
 * count; `wait` is how many ns may pass without an event. */
static nfds_t
prepare(Listener *self, struct pollfd *polls, Connection **polled, int64_t now, int64_t accept_after, int64_t *wait)
{
    nfds_t count = 2;
    int64_t until_place;
    (void)find_place(self, now, &until_place);
    *wait = accept_after > now ? accept_after - now : until_place > 0 ? until_place : FOREVER;
    polls[1] = (struct pollfd){.fd = until_place <= 0 && accept_after <= now ? self->fd : -1, .events = POLLIN};
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        if (connection->fd < 0) {
            continue;
        }
        short events = connection->stage == ARRIVING ? POLLIN : connection->sent < connection->written ? POLLOUT : 0;
        if (connection->stage == ARRIVING) {
            *wait = earlier(*wait, connection->since + ARRIVAL_TIMEOUT - now);
        } else if (connection->stage == ENDING && connection->sent == connection->written) {
            *wait = 0; /* served just now, with nothing to send */
        }
        polled[count] = connection;
        polls[count++] = (struct pollfd){.fd = connection->fd, .events = events};
    }
    return count;
}

static void
serve_connection(Listener *self, Connection *connection, int fd, short events, int64_t now)
{
    if (connection->fd != fd) { /* its place was taken */
        return;
    }
    if (connection->stage == ARRIVING && events != 0) {
        receive(self, connection, now);
    } else if (events & (POLLHUP | POLLERR | POLLNVAL)) {
        drop(self, connection);
    } else if (connection->sent < connection->written || connection->stage == ENDING) {
        transmit(self, connection, now);
    }
}

static int64_t
take_turn(Listener *self, int wake_fd, int64_t accept_after)
{
    struct pollfd polls[2 + MAX_CONNECTIONS];
    Connection *polled[2 + MAX_CONNECTIONS];
    int64_t now = vmscope_now(), wait;
    if (self->fd < 0 || (vmscope_handshake_asked() && vmscope_has_lost_socket())) {
        open_anew(self); /* not under the mutex: the disk may be frozen */
    }
    int64_t until_sweep = sweep(self, now); /* nor this */
    pthread_mutex_lock(&self->mutex);
    expire(self, now);
    nfds_t count = prepare(self, polls, polled, now, accept_after, &wait);
    pthread_mutex_unlock(&self->mutex);
    wait = earlier(wait, until_sweep);

    polls[0] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    struct timespec timeout = {.tv_sec = (time_t)(wait / 1000000000), .tv_nsec = (long)(wait % 1000000000)};
    if (wake_fd < 0 && wait > BREATH) { /* nobody can wake it */
        timeout = (struct timespec){.tv_nsec = BREATH};
        wait = BREATH;
    }
    int ready = ppoll(polls, count, wait == FOREVER ? NULL : &timeout, NULL);
    vmscope_thread_account(&self->talker);
    if (ready < 0) {
        return accept_after;
    }
    if (polls[0].revents != 0) {
        struct signalfd_siginfo ignored;
        while (read(wake_fd, &ignored, sizeof ignored) > 0) {
        }
    }
    now = vmscope_now();
    pthread_mutex_lock(&self->mutex);
    for (nfds_t i = 2; i < count; i++) {
        serve_connection(self, polled[i], polls[i].fd, polls[i].revents, now);
    }
    if (polls[1].revents != 0 && !accept_all(self, now)) {
        accept_after = now + BREATH;
    }
    pthread_mutex_unlock(&self->mutex);
    return accept_after;
}

/* -- the descriptors' way through a fork ---------------------------------------------------------- */

/* The socket and the connections, in the order in which they travel. */
static int
collect(Listener *self, int *fds)
{
    int count = 0;
    if (self->fd >= 0) {
        fds[count++] = self->fd;
        for (int i = 0; i < MAX_CONNECTIONS; i++) {
            if (self->connections[i].fd >= 0) {
                fds[count++] = self->connections[i].fd;
            }
        }
    }
    return count;
}

/* They have new numbers, or are lost (NULL). */
static void
distribute(Listener *self, const int *fds)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        if (connection->fd >= 0 && fds != NULL) {
            connection->fd = *++fds;
        } else if (connection->stage != FREE) {
            connection->fd = -1;
            drop(self, connection);
        }
    }
}

static int
compare(const void *one, const void *other)
{
    return *(const int *)one - *(const int *)other;
}

/* A table of the thread's own, with nothing but the listener's in it. */
static void
unshare_files(Listener *self)
{
#ifdef SYS_close_range
    int fds[1 + MAX_CONNECTIONS], count = collect(self, fds);
    qsort(fds, (size_t)count, sizeof *fds, compare);
    unsigned first = count == 0 ? 0 : (unsigned)fds[count - 1] + 1;
    if (syscall(SYS_close_range, first, ~0U, 2U) == 0) { /* 2: CLOSE_RANGE_UNSHARE */
        for (int i = 0; i < count; i++) {
            unsigned begin = i == 0 ? 0 : (unsigned)fds[i - 1] + 1;
            if (begin < (unsigned)fds[i]) {
                (void)syscall(SYS_close_range, begin, (unsigned)fds[i] - 1, 0U);
            }
        }
        return;
    }
#endif
    self->shared_files = 1;
}

/* Sends them to the thread that is about to fork, where the listener waits to be started again. */
static int
hand_over(Listener *self, const int *fds, int count)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * (1 + MAX_CONNECTIONS))];
        struct cmsghdr align;
    } control;
    struct iovec nothing = {.iov_base = "", .iov_len = 1};
    struct msghdr message = {.msg_name = &self->hatch,
                             .msg_namelen = self->hatch_length,
                             .msg_iov = &nothing,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count)};
    struct stat status;
    int known = count > 0 && self->hatch_length > 0 && fstat(fds[0], &status) == 0;
    int fd = known ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0) {
        return 0;
    }
    self->inode = status.st_ino;
    memset(&control, 0, sizeof control);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(head), fds, sizeof(int) * (size_t)count);
    int sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    close(fd);
    return sent;
}

/* Takes `count` descriptors from a message; 0 where it is somebody else's, -1: there is none. */
static int
take_over(int hatch_fd, int *fds, int count, ino_t inode)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * (1 + MAX_CONNECTIONS))];
        struct cmsghdr align;
    } control;
    char byte;
    struct iovec nothing = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &nothing, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    if (recvmsg(hatch_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
        return -1;
    }
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head == NULL || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
        return 0;
    }
    int found = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(head), sizeof(int) * (size_t)found);
    struct stat status;
    if (found == count && fstat(fds[0], &status) == 0 && status.st_ino == inode) {
        return found;
    }
    while (found > 0) {
        close(fds[--found]);
    }
    return 0;
}

static void
close_held(Listener *self)
{
    while (self->held_count > 0) {
        close(self->held[--self->held_count]);
    }
}

/* Before a fork, on its thread: a way for the descriptors into the program's table. */
static void
pausing(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    close_held(self);
    self->hatch_length = 0;
    if (self->shared_files) {
        return;
    }
    self->hatch_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (self->hatch_fd < 0) {
        return;
    }
    socklen_t length = sizeof self->hatch;
    if (bind(self->hatch_fd, (struct sockaddr *)&nameless, sizeof(sa_family_t)) == 0 && /* the kernel finds a name */
        getsockname(self->hatch_fd, (struct sockaddr *)&self->hatch, &length) == 0) {
        self->hatch_length = length;
    }
}

static void
paused(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    if (self->shared_files || self->hatch_fd < 0) {
        return;
    }
    pthread_mutex_lock(&self->mutex);
    int fds[1 + MAX_CONNECTIONS], count = self->held_count, found = 0;
    self->held_count = 0;
    if (self->talker.joinable == 0) { /* else it is at work */
        while (count > 0 && found == 0) {
            found = take_over(self->hatch_fd, fds, count, self->inode);
        }
        if (found > 0) {
            self->fd = fds[0];
            memcpy(self->held, fds, sizeof(int) * (size_t)found);
            self->held_count = found;
        } else {
            self->fd = -1;
        }
        distribute(self, found > 0 ? fds : NULL);
    }
    pthread_mutex_unlock(&self->mutex);
    close(self->hatch_fd);
    self->hatch_fd = -1;
    self->hatch_length = 0;
}

/* The program's table has them until the talker has a copy. */
void
vmscope_settle(Listener *self)
{
    struct timespec deadline;
    Py_BEGIN_ALLOW_THREADS
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += READY_TIMEOUT / 1000000000;
    pthread_mutex_lock(&self->mutex);
    while (!self->ready && pthread_cond_timedwait(&self->changed, &self->mutex, &deadline) != ETIMEDOUT) {
    }
    if (self->ready && self->shared_files) {
        self->held_count = 0; /* they are the same */
    } else if (self->ready) {
        close_held(self);
    }
    pthread_mutex_unlock(&self->mutex);
    Py_END_ALLOW_THREADS
}

static void
launched(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    if (!self->unsettled) {
        vmscope_settle(self);
    }
}

/* In a forked child: what it has of them goes, and nobody is told, for the parent has them too. */
static void
forked(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    vmscope_init_lock(self);
    if (self->shared_files) {
        self->held_count = collect(self, self->held);
    }
    close_held(self);
    if (self->hatch_fd >= 0) {
        close(self->hatch_fd);
        self->hatch_fd = -1;
    }
    self->fd = -1;
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        vmscope_forget_connection(self, &self->connections[i]);
    }
    self->closed = 1;
    self->ready = self->serving = 0;
    atomic_store(&vmscope_handshake_thread, 0);
}

const ThreadHooks vmscope_talker_hooks = {pausing, paused, launched, forked};

/* -- the thread ----------------------------------------------------------------------------------- */

static void
end(Listener *self, int order)
{
    pthread_mutex_lock(&self->mutex);
    self->ready = 0;
    if (self->shared_files && order == PAUSE) {
        pthread_mutex_unlock(&self->mutex);
        return;
    }
    int fds[1 + MAX_CONNECTIONS], count = collect(self, fds);
    self->held_count = order == PAUSE && hand_over(self, fds, count) ? count : 0;
    while (count > 0) {
        close(fds[--count]);
    }
    if (order != PAUSE) {
        self->fd = -1;
        distribute(self, NULL);
    }
    pthread_mutex_unlock(&self->mutex);
}

void
vmscope_talk(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, VMSCOPE_WAKE_SIGNAL);
    pthread_mutex_lock(&self->mutex);
    unshare_files(self);
    self->ready = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    int wake_fd = signalfd(-1, &wake, SFD_NONBLOCK | SFD_CLOEXEC), order;
    atomic_store(&vmscope_handshake_thread, self->talker.tid);
    int64_t accept_after = 0;
    do {
        while ((order = vmscope_thread_hear(&self->talker)) == 0) {
            accept_after = take_turn(self, wake_fd, accept_after);
        }
    } while (!vmscope_thread_leave(&self->talker));
    atomic_store(&vmscope_handshake_thread, 0);
    close(wake_fd);
    end(self, order);
}
