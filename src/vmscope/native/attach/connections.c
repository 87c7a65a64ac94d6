/* The connections of the listener: their ends, and who has a place when there are more clients than places. */
#define _GNU_SOURCE
#include "attach/listener.h"

#include <stdlib.h>
#include <string.h>

#define DRAIN 65536 /* bytes of input that are read and forgotten, so that the end of the reply arrives */

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
    vmscope_free_dump(connection->dump);
    connection->dump = NULL;
    connection->claimed = 0;
    connection->length = connection->room = 0;
    connection->stage = FREE;
    connection->serial = 0;
    connection->gone = 0;
    connection->socket.fd = -1;
    connection->call = connection->steps = NULL; /* in a forked child: what they would clean up is the parent's */
}

void
vmscope_drop(Listener *self, Connection *connection)
{
    vmscope_close_own(&connection->socket);
    if (connection->stage == SERVED) {
        connection->gone = 1;
        forget_reply(self, connection);
    } else {
        vmscope_forget_connection(self, connection);
    }
    pthread_cond_broadcast(&self->changed);
}

/* Unread input would take the reply from the client, as a reset of the connection. */
void
vmscope_finish(Listener *self, Connection *connection)
{
    char ignored[4096];
    (void)shutdown(connection->socket.fd, SHUT_WR);
    for (size_t drained = 0; drained < DRAIN; drained += sizeof ignored) {
        if (recv(connection->socket.fd, ignored, sizeof ignored, MSG_DONTWAIT) <= 0) {
            break;
        }
    }
    vmscope_drop(self, connection);
}

void
vmscope_reply(Listener *self, Connection *connection, const char *reply)
{
    size_t length = strlen(reply);
    (void)send(connection->socket.fd, reply, length, MSG_NOSIGNAL | MSG_DONTWAIT); /* the first bytes: there is room */
    vmscope_finish(self, connection);
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

/* The ns until its place may be taken by another; VMSCOPE_FOREVER: not before it has been served. */
static int64_t
grace(const Connection *connection, int64_t now)
{
    int64_t least = connection->stage == ARRIVING ? ARRIVAL_LEAST
                    : connection->stage == ENDING ? READING_TIMEOUT
                                                  : VMSCOPE_FOREVER;
    return least == VMSCOPE_FOREVER ? VMSCOPE_FOREVER : least - (now - connection->since);
}

Connection *
vmscope_find_place(Listener *self, int64_t now, int64_t *wait)
{
    Connection *best = NULL;
    *wait = VMSCOPE_FOREVER;
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
