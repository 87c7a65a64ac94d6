/* What the I/O thread does for a request itself. It never holds the GIL, so that it can do that while a call in C keeps it:
 * it says which version of the protocol is spoken, and takes thread dumps as of the request. Such a dump is completed with
 * the GIL, by the command thread; where that does not get it in time, it is sent as it is. */
#include "attach/listener.h"

#include <stdlib.h>
#include <string.h>

#define VERSION_REPLY "0\n2 progress" /* the protocol's, and its options, as commands/operations.py has it */

/* -- what is asked for ---------------------------------------------------------------------------- */

/* Whether the operation, which options may follow, has this name. */
static int
is_operation(const char *request, const char *name)
{
    size_t length = strlen(name);
    return strncmp(request, name, length) == 0 && (request[length] == '\0' || request[length] == ' ');
}

/* Whether the strings of a jcmd begin with Thread.print; then `rest` is what follows it. */
static int
is_thread_print(const char *arguments, const char **rest)
{
    static const char name[] = "Thread.print";
    arguments += strspn(arguments, " ");
    if (strncmp(arguments, name, sizeof name - 1) != 0) {
        return 0;
    }
    *rest = arguments + sizeof name - 1;
    return **rest == '\0' || **rest == ' ';
}

/* Whether there is nothing but options of Thread.print that need no more than their names: what else is asked for, or
 * wrong, it takes the GIL to tell. */
static int
is_plain(const char *next, const char *end)
{
    for (; next < end; next++) { /* a NUL ends a string */
        next += strspn(next, " ");
        if (next[0] == '-' && (next[1] == 'l' || next[1] == 'e') && (next[2] == '\0' || next[2] == ' ')) {
            next += 2;
        }
        if (*next != '\0' && *next != ' ') {
            return 0;
        }
    }
    return 1;
}

/* The process may have got other ids since the client connected: then the command thread refuses it. */
static int
is_allowed(const Connection *connection)
{
    return !connection->outside && vmscope_may_attach(connection->client.uid, connection->client.gid);
}

void
vmscope_note_limit(Listener *self)
{
    if (self->limited == 0) {
        self->limited = 1;
        vmscope_kick(&self->command_thread);
    }
}

static void
hand_to_command_thread(Listener *self, Connection *connection)
{
    connection->stage = WAITING;
    vmscope_kick(&self->command_thread);
}

void
vmscope_take_up(Listener *self, Connection *connection, const char *begin, const char *end)
{
    const char *rest = begin + strlen(begin) + 1;
    connection->outside = vmscope_exceeds_main(1);
    connection->looked = vmscope_now();
    int allowed = is_allowed(connection), thread_dump = allowed && is_operation(begin, "threaddump");
    connection->plain = thread_dump;
    if (allowed && !thread_dump && is_operation(begin, "jcmd") && rest < end && is_thread_print(rest, &rest)) {
        thread_dump = 1;
        connection->plain = is_plain(rest, end);
    }
    if (thread_dump) {
        connection->stage = LOOKING;
    } else if (allowed && is_operation(begin, "getversion")) {
        vmscope_reply(self, connection, VERSION_REPLY);
    } else if (allowed && is_operation(begin, VMSCOPE_CHILD_STARTED)) {
        vmscope_watch_child(self, connection->client.pid);
        vmscope_reply(self, connection, "0\n");
    } else {
        hand_to_command_thread(self, connection);
    }
}

/* -- thread dumps --------------------------------------------------------------------------------- */

void
vmscope_look_at_threads(Listener *self)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        if (connection->stage == LOOKING) { /* which no other thread touches */
            connection->dump = vmscope_take_dump();
            pthread_mutex_lock(&self->mutex);
            hand_to_command_thread(self, connection);
            pthread_mutex_unlock(&self->mutex);
        }
    }
}

/* Whether the I/O thread may answer it, should the GIL not come in time. */
static int
is_unclaimed(const Listener *self, const Connection *connection)
{
    int waits = connection->stage == WAITING || (connection->stage == SERVED && !connection->claimed);
    return waits && connection->plain && connection->dump != NULL && !connection->gone && !self->closed &&
           connection->socket.fd >= 0 && is_allowed(connection) && !vmscope_exceeds_main(1);
}

/* The command thread finds that the request is no longer its own. */
static void
answer(Listener *self, Connection *connection)
{
    size_t length = 0;
    char *text = vmscope_write_dump(connection->dump, &length);
    pthread_mutex_lock(&self->mutex);
    if (text == NULL || vmscope_append(self, connection, "0\n", 2) < 2 ||
        vmscope_append(self, connection, text, length) < (Py_ssize_t)length) {
        vmscope_give_up(self, connection); /* there is no room for it */
    }
    pthread_mutex_unlock(&self->mutex);
    free(text);
}

int64_t
vmscope_answer_late(Listener *self, int64_t now)
{
    int64_t wait = VMSCOPE_FOREVER;
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        Connection *connection = &self->connections[i];
        int64_t left = VMSCOPE_FOREVER;
        pthread_mutex_lock(&self->mutex);
        int late = is_unclaimed(self, connection) && vmscope_dump_is_late(connection->dump, now, &left);
        if (late) {
            connection->stage = ENDING;
            connection->since = now;
        }
        pthread_mutex_unlock(&self->mutex);
        if (late) {
            answer(self, connection);
        } else {
            wait = left < wait ? left : wait;
        }
    }
    return wait;
}
