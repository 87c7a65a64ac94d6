/* The thread that talks with clients: it accepts, checks who they are, reads requests, sends replies; without the GIL,
 * and asleep while there is nothing to do. */
#define _GNU_SOURCE
#include "attach/listener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_ROOM 1024
#define LEAST_READ 256
#define BREATH 100000000   /* ns without accepting, where the system has no descriptor left */
#define FIRST_CONNECTION 3 /* of what is polled */
#define RETRY 10000000000  /* ns until the socket is tried again that could not be opened */

_Static_assert(MAX_HANDED_OVER == 1 + MAX_CONNECTIONS, "the socket and all connections are handed over");

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
        connection->serial = ++self->serials;
        connection->since = now;
        vmscope_take_up(self, connection, connection->request + begin, connection->request + end);
        break;
    case FRAME_VERSION:
        vmscope_reply(self, connection, "101\nprotocol versions 1 and 2 are known here\n");
        break;
    case FRAME_MALFORMED:
        vmscope_reply(self, connection, "-1\nmalformed request\n");
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
            vmscope_drop(self, connection);
            return;
        }
        ssize_t count = recv(connection->socket.fd, connection->request + connection->length,
                             connection->room - connection->length, MSG_DONTWAIT);
        if (count > 0) {
            connection->length += (size_t)count;
            take_request(self, connection, now);
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            vmscope_drop(self, connection);
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
        ssize_t count = send(connection->socket.fd, connection->reply + connection->sent,
                             connection->written - connection->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count > 0) {
            connection->sent += (size_t)count;
            connection->since = now;
            self->queued -= (size_t)count;
            pthread_cond_broadcast(&self->changed);
        } else if (count < 0 && errno == EAGAIN) {
            return;
        } else if (count < 0 && errno != EINTR) {
            vmscope_drop(self, connection);
            return;
        }
    }
    if (connection->stage == ENDING) {
        vmscope_finish(self, connection);
    }
}

/* -- accepting ------------------------------------------------------------------------------------ */

/* What the kernel knows of who has connected. */
static int
get_client(int fd, struct ucred *client)
{
    socklen_t size = sizeof *client;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, client, &size) == 0;
}

/* As many as there are places for, and no more than that in a turn, whoever they are. 0, or the errno for which there can
 * be no more. */
static int
accept_all(Listener *self, int64_t now)
{
    int64_t wait;
    Connection *place;
    for (int i = 0; i < MAX_CONNECTIONS && (place = vmscope_find_place(self, now, &wait)) != NULL; i++) {
        int fd = accept4(self->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) {
            continue;
        }
        if (fd < 0) {
            return errno == EAGAIN ? 0 : errno;
        }
        struct ucred client;
        int allowed = get_client(fd, &client) && vmscope_may_attach(client.uid, client.gid);
        if (!allowed || !vmscope_all_may_attach(client.uid, client.gid)) {
            close(fd); /* without a word */
            if (allowed) {
                vmscope_note_limit(self);
            }
            continue;
        }
        if (place->stage != FREE) {
            vmscope_drop(self, place);
        }
        place->stage = ARRIVING;
        vmscope_own(&place->socket, fd);
        place->client = client;
        place->since = now;
        place->serial = ++self->serials;
        receive(self, place, now); /* most are there already */
    }
    return 0;
}

/* -- what others left ----------------------------------------------------------------------------- */

/* The ns until it is time to look; most processes have ended by then. */
static int64_t
remove_stale_sockets(Listener *self, int64_t now)
{
    char folder[sizeof(struct sockaddr_un)];
    if (self->stale_check_at > now) {
        return self->stale_check_at - now;
    }
    if (self->stale_check_at > 0) {
        self->stale_check_at = 0;
        vmscope_socket_folder(folder);
        vmscope_remove_stale_sockets(folder, &self->io_thread);
    }
    return VMSCOPE_FOREVER;
}

/* -- the socket ----------------------------------------------------------------------------------- */

/* With the mutex held. No client can connect any more: it is to be opened anew, at once. */
static void
lose_socket(Listener *self)
{
    vmscope_close_own(&self->socket);
    self->error = EINPROGRESS;
    self->open_after = 0;
}

/* -- one turn ------------------------------------------------------------------------------------- */

/* Opens the socket where there is none, or not under its name. Not under the mutex: the disk may be frozen. */
static void
keep_open(Listener *self, int asked, int64_t now)
{
    int there = self->socket.fd >= 0 && !(asked && (self->error != 0 || vmscope_has_lost_socket()));
    if (there || (self->socket.fd < 0 && !asked && now < self->open_after)) {
        return;
    }
    vmscope_close_own(&self->socket);
    self->open_after = now + RETRY;
    pthread_mutex_lock(&self->mutex);
    int opening = self->opening = !self->closed; /* whoever closes it now waits: what is made would be left */
    pthread_mutex_unlock(&self->mutex);
    if (!opening) {
        return;
    }
    int fd = vmscope_open_socket(), error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        vmscope_own(&self->socket, fd);
        vmscope_tell_parent();
    }
    pthread_mutex_lock(&self->mutex);
    self->opening = 0;
    self->error = error;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
}

/* Those that are not files of their own all have one inode. */
static int
is_signalfd(int fd)
{
    char path[64], kind[32] = "";
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
    return readlink(path, kind, sizeof kind - 1) > 0 && strcmp(kind, "anon_inode:[signalfd]") == 0;
}

/* With the mutex held. In a table that is the program's too it may have closed them, and have its own under their numbers. */
static void
find_closed(Listener *self)
{
    if (!self->shared_files) {
        return;
    }
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        if (connection->socket.fd >= 0 && !vmscope_owns(&connection->socket)) {
            vmscope_drop(self, connection);
        }
    }
    if (self->socket.fd >= 0 && !vmscope_owns(&self->socket)) {
        lose_socket(self);
    }
    if (!vmscope_owns(&vmscope_handover_sender)) {
        vmscope_handover_sender.fd = -1;
    }
    if (!is_signalfd(self->wake_fd)) {
        self->wake_fd = -1;
    }
}

/* Closes what has had its time. */
static void
expire(Listener *self, int64_t now)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        int late = connection->stage == ARRIVING && now - connection->since >= ARRIVAL_TIMEOUT;
        if (connection->socket.fd >= 0 && (late || connection->gone)) {
            vmscope_drop(self, connection);
        }
    }
}

static int64_t
earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* What is polled: `polls[0]` the wake-ups, `polls[1]` the socket where there is a place, `polls[2]` the ends of children,
 * then those of `polled`. The count; `wait` is how many ns may pass without an event. */
static nfds_t
prepare(Listener *self, struct pollfd *polls, Connection **polled, int64_t now, int64_t *wait)
{
    nfds_t count = FIRST_CONNECTION;
    int64_t until_place;
    (void)vmscope_find_place(self, now, &until_place);
    if (self->socket.fd < 0) {
        *wait = self->open_after > now ? self->open_after - now : 0;
    } else if (self->accept_after > now) {
        *wait = self->accept_after - now;
    } else {
        *wait = until_place > 0 ? until_place : VMSCOPE_FOREVER;
    }
    if (self->wake_fd < 0) { /* it cannot be woken */
        *wait = earlier(*wait, BREATH);
    }
    int accepts = until_place <= 0 && self->accept_after <= now;
    polls[0] = (struct pollfd){.fd = self->wake_fd, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = accepts ? self->socket.fd : -1, .events = POLLIN};
    polls[2] = (struct pollfd){.fd = self->children_fd, .events = POLLIN};
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        if (connection->socket.fd < 0) {
            continue;
        }
        short events = connection->stage == ARRIVING ? POLLIN : connection->sent < connection->written ? POLLOUT : 0;
        if (connection->stage == ARRIVING) {
            *wait = earlier(*wait, connection->since + ARRIVAL_TIMEOUT - now);
        } else if (connection->stage == ENDING && connection->sent == connection->written) {
            *wait = 0; /* served just now, with nothing to send */
        }
        polled[count] = connection;
        polls[count++] = (struct pollfd){.fd = connection->socket.fd, .events = events};
    }
    return count;
}

static void
serve_connection(Listener *self, Connection *connection, int fd, short events, int64_t now)
{
    if (connection->socket.fd != fd) { /* its place was taken */
        return;
    }
    if (connection->stage == ARRIVING && events != 0) {
        receive(self, connection, now);
    } else if (events & (POLLHUP | POLLERR | POLLNVAL)) {
        vmscope_drop(self, connection);
    } else if (connection->sent < connection->written || connection->stage == ENDING) {
        transmit(self, connection, now);
    }
}

/* Clients have come, or something has happened to the socket. */
static void
serve_socket(Listener *self, short events, int64_t now)
{
    int error = accept_all(self, now);
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
        self->accept_after = now + BREATH;
    } else if (error != 0 || (events & (POLLHUP | POLLERR | POLLNVAL))) {
        lose_socket(self);
    }
}

static void
take_turn(Listener *self)
{
    struct pollfd polls[FIRST_CONNECTION + MAX_CONNECTIONS];
    Connection *polled[FIRST_CONNECTION + MAX_CONNECTIONS];
    int64_t now = vmscope_now(), wait;
    keep_open(self, vmscope_attach_signal_asked(), now);
    int64_t until_stale_check = remove_stale_sockets(self, now); /* not under the mutex: the disk may be frozen */
    int64_t until_children = vmscope_look_at_children(self, now);
    int64_t until_late = vmscope_answer_late(self, now);
    pthread_mutex_lock(&self->mutex);
    find_closed(self);
    expire(self, now);
    nfds_t count = prepare(self, polls, polled, now, &wait);
    pthread_mutex_unlock(&self->mutex);
    wait = earlier(earlier(wait, until_children), earlier(until_stale_check, until_late));

    struct timespec timeout = {.tv_sec = (time_t)(wait / 1000000000), .tv_nsec = (long)(wait % 1000000000)};
    int ready = ppoll(polls, count, wait == VMSCOPE_FOREVER ? NULL : &timeout, NULL);
    vmscope_thread_account(&self->io_thread);
    if (ready < 0) { /* no memory, or more descriptors than the program's limit has become */
        (void)vmscope_thread_wait(&self->io_thread, BREATH);
        return;
    }
    now = vmscope_now();
    pthread_mutex_lock(&self->mutex);
    find_closed(self);
    if (polls[0].revents != 0) {
        struct signalfd_siginfo ignored;
        while (read(self->wake_fd, &ignored, sizeof ignored) > 0) {
        }
    }
    if (polls[2].revents != 0) {
        vmscope_hear_of_children(self);
    }
    for (nfds_t i = FIRST_CONNECTION; i < count; i++) {
        serve_connection(self, polled[i], polls[i].fd, polls[i].revents, now);
    }
    if (polls[1].revents != 0 && polls[1].fd == self->socket.fd) {
        serve_socket(self, polls[1].revents, now);
    }
    pthread_mutex_unlock(&self->mutex);
    vmscope_look_at_threads(self);
}

/* -- from one I/O thread to the next ------------------------------------------------------------------ */

/* The socket and the connections, in the order in which they are handed over. */
static size_t
collect(Listener *self, Socket **sockets)
{
    size_t count = 0;
    if (self->socket.fd >= 0) {
        sockets[count++] = &self->socket;
    }
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        if (self->connections[i].socket.fd >= 0) {
            sockets[count++] = &self->connections[i].socket;
        }
    }
    return count;
}

/* None of them is there any more. */
static void
lose(Listener *self)
{
    vmscope_handover_sender.fd = -1;
    lose_socket(self);
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        if (self->connections[i].stage != FREE) {
            vmscope_drop(self, &self->connections[i]);
        }
    }
}

void
vmscope_prepare_io_thread(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    pthread_mutex_lock(&self->mutex);
    if (!vmscope_handover_prepare()) {
        lose(self);
    }
    pthread_mutex_unlock(&self->mutex);
}

static void
take_over(Listener *self)
{
    Socket *sockets[MAX_HANDED_OVER];
    atomic_store(&self->io_thread.error, 0);
    pthread_mutex_lock(&self->mutex);
    self->shared_files = !vmscope_handover_unshare();
    if (!vmscope_handover_receive(sockets, collect(self, sockets))) {
        lose(self);
    }
    if (self->socket.fd >= 0 && !vmscope_is_socket(self->socket.fd)) {
        lose_socket(self);
    }
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        struct ucred client;
        if (connection->socket.fd >= 0 &&
            !(get_client(connection->socket.fd, &client) && client.pid == connection->client.pid &&
              client.uid == connection->client.uid && client.gid == connection->client.gid)) {
            vmscope_drop(self, connection);
        }
    }
    pthread_mutex_unlock(&self->mutex);
}

void
vmscope_forget_io_thread(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    Socket *sockets[MAX_HANDED_OVER];
    vmscope_init_lock(self);
    if (self->shared_files) { /* and the I/O thread has not come to its end */
        for (size_t count = collect(self, sockets); count > 0; count--) {
            vmscope_close_own(sockets[count - 1]);
        }
        vmscope_close_own(&vmscope_handover_sender);
    }
    self->socket.fd = -1;
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        vmscope_forget_connection(self, &self->connections[i]);
    }
    self->closed = 1;
    self->opening = self->serving = 0;
    atomic_store(&vmscope_attach_signal_thread, 0);
}

/* -- the thread ----------------------------------------------------------------------------------- */

static void
end(Listener *self, int order)
{
    Socket *sockets[MAX_HANDED_OVER];
    pthread_mutex_lock(&self->mutex);
    find_closed(self);
    size_t count = collect(self, sockets);
    int handed = order == PAUSE && vmscope_handover_send(sockets, count);
    if (self->wake_fd >= 0) {
        close(self->wake_fd);
    }
    if (vmscope_handover_sender.fd >= 0) {
        close(vmscope_handover_sender.fd);
    }
    while (count > 0) {
        close(sockets[--count]->fd);
    }
    if (!handed) {
        lose(self);
    }
    pthread_mutex_unlock(&self->mutex);
}

void
vmscope_talk(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    sigset_t wake;
    int order;
    sigemptyset(&wake);
    sigaddset(&wake, VMSCOPE_WAKE_SIGNAL);
    take_over(self);
    self->wake_fd = signalfd(-1, &wake, SFD_NONBLOCK | SFD_CLOEXEC);
    self->accept_after = 0;
    vmscope_forget_child_descriptors(self);
    atomic_store(&vmscope_attach_signal_thread, self->io_thread.tid);
    keep_open(self, 1, vmscope_now());
    do {
        while ((order = vmscope_thread_hear(&self->io_thread)) == 0) {
            take_turn(self);
        }
    } while (!vmscope_thread_leave(&self->io_thread));
    atomic_store(&vmscope_attach_signal_thread, 0);
    end(self, order);
}
