/* The attach listener: two threads, so that the one that talks with clients never holds the GIL, and the one that runs
 * commands never waits for a client longer than it must.
 *
 * The I/O thread (io_thread.c) has a descriptor table of its own, with the socket and the connections: the program neither
 * sees nor closes them, and no child inherits them. The command thread (listener.c) has the program's table, as what it runs
 * may be the program's code, or free its objects. They meet in the connections, under the listener's mutex. Around a fork
 * both end, and the sockets are in flight (handover.c). */
#ifndef VMSCOPE_LISTENER_H
#define VMSCOPE_LISTENER_H

#include "threads/thread.h" /* first: Python says which interfaces of the system are wanted */
#include "attach/handover.h"
#include "stacks/thread_dump.h"

#include <limits.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define VMSCOPE_FOREVER INT64_MAX
#define MAX_CONNECTIONS 64 /* more wait to be accepted */
#define BACKLOG 512        /* how many more */
#define MAX_REQUEST_1 (16 << 10)
#define MAX_REQUEST_2 (256 << 10)            /* as HotSpot has it */
#define MAX_QUEUED (16 << 20)                /* bytes of replies that have yet to go, of all connections */
#define ARRIVAL_TIMEOUT 10000000000          /* ns for a request to arrive, */
#define ARRIVAL_LEAST 1000000000             /* of which it gets this many while others wait for its place */
#define STALE_CHECK_DELAY 250000000          /* ns from the start until sockets are looked for that others left */
#define VMSCOPE_CHILD_STARTED "childstarted" /* the request by which a VM tells its parent of itself */
#define LOOK_TIMEOUT 1000000                 /* ns for which it counts that the rights of threads have been compared */
#define READING_TIMEOUT 10000000000          /* ns without a byte read by the client; then it loses what others need */

/* -- protocol.c: what a request looks like ---------------------------------------------------------- */

typedef enum { FRAME_INCOMPLETE, FRAME_WHOLE, FRAME_VERSION, FRAME_MALFORMED } Frame;

/* What the first `length` bytes of a connection are. Where they are a whole request: its version, and where its
 * strings, each with its NUL, begin and end. */
Frame vmscope_frame(const char *bytes, size_t length, int *version, size_t *begin, size_t *end);

/* -- credentials.c -------------------------------------------------------------------------------- */

/* Whether a client with these effective ids may have this process do what it asks for, by the ids and the privileges that
 * the calling thread has now. */
int vmscope_may_attach(uid_t uid, gid_t gid);

/* The same by the ids and the capabilities of all threads. Once it may, no thread gets others. */
int vmscope_all_may_attach(uid_t uid, gid_t gid);

/* Whether the calling thread has rights that the main thread has not, or that cannot be known; `unknown` is the answer
 * where the process has no descriptor left to look with. */
int vmscope_exceeds_main(int unknown);

/* Who cannot attach because threads differ in their rights, for people, where `tid` is a thread that carries requests out;
 * empty: none. */
void vmscope_describe_limit(pid_t tid, char *text, size_t size);

#define MAX_LIMIT 200 /* bytes of such a text */

/* -- the connections ------------------------------------------------------------------------------ */

typedef enum {
    FREE,
    ARRIVING, /* the request does */
    LOOKING,  /* the I/O thread is about to look at the threads for it */
    WAITING,  /* for the command thread */
    SERVED,   /* by the command thread, now */
    ENDING,   /* the rest of the reply is sent */
} Stage;

typedef struct {
    Stage stage;
    Socket socket;
    struct ucred client; /* as the kernel knew it when it connected */
    uint64_t serial;     /* of the connection; of the waiting ones: of its request */
    int64_t since;       /* when the client has last done what was its turn */
    int gone;            /* the client has hung up, or takes too long */
    int begun;           /* the reply is */
    char *request;
    size_t length, room;
    char *reply; /* what is queued stands from `sent` to `written` */
    size_t sent, written, reply_room;
    ThreadDump *dump; /* as of the request, which asks for one, */
    int plain;        /* and nothing more */
    int outside;      /* threads of vmscope's had more rights than the main thread */
    int64_t looked;   /* when that was looked at */
    int claimed;      /* the command thread has the GIL, and answers it */
    PyObject *call,
        *steps; /* of a command that is under way, between two of its steps; the command thread's, under the GIL */
} Connection;

typedef struct {
    PyObject_HEAD Thread io_thread, command_thread;
    PyObject *serve, *denied;
    PyTypeObject *call_type;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a reply has moved on, a client has gone, or the I/O thread is ready */
    Connection connections[MAX_CONNECTIONS];
    uint64_t serials;
    int limited;   /* a client was denied by the rights of threads: 1: the command thread is to say so, 2: it has */
    size_t queued; /* of MAX_QUEUED */
    int serving;   /* commands that are under way */
    int last;      /* the place of the one that has had its turn */
    int closed, opening; /* the I/O thread opens the socket while it is open */
    int error;           /* why the socket is not open, an errno; EINPROGRESS: it is being opened; 0: it is open */

    Socket socket;    /* as those of the connections: numbers of the I/O thread's table, or of the last one's */
    int shared_files; /* this kernel gives a thread no table of its own */

    int wake_fd;            /* the I/O thread's own, as what follows */
    int64_t accept_after;   /* CLOCK_MONOTONIC, ns */
    int64_t open_after;     /* the same, of a socket that could not be opened */
    int64_t stale_check_at; /* when that is due; 0: it is done */
    struct Child *children; /* NULL: no child has reported itself */
    int children_fd;        /* wakes the I/O thread when one of them ends; -1: none */
    int64_t children_at;    /* when they are to be looked at */
    char regions[256];      /* under the mutex: the directory of the regions' files; "": none */
} Listener;

/* -- socket.c ------------------------------------------------------------------------------------- */

/* Makes the socket of this process in the calling thread's table; its descriptor, or -1 with errno. */
int vmscope_open_socket(void);

/* Whether the descriptor is that of a socket that listens, and was made here. */
int vmscope_is_socket(int fd);

/* 0, or the errno of connecting to the socket that a descriptor is the place of: ECONNREFUSED where no process listens. */
int vmscope_connect_to(int place);

/* A connection to it; -1 with errno. */
int vmscope_connect_at(int place);

/* True where the name is gone, or another's. */
int vmscope_has_lost_socket(void);

/* Where the socket is to be, and under which name it is made, ending with NUL; false where one is too long. */
int vmscope_name_socket(const char *path, const char *temporary);

const char *vmscope_socket_path(void);

/* The folder that it is in. */
void vmscope_socket_folder(char folder[sizeof(struct sockaddr_un)]);

/* -- stale_sockets.c: sockets of killed VMs that are known nowhere else ------------------------------------------ */

/* Unlinks what killed VMs of this user have left in the folder, unless the thread has to end. */
void vmscope_remove_stale_sockets(const char *path, Thread *self);

/* The same for one VM of which it is known that it was killed; `is_over` says whether its pid still is free. */
void vmscope_remove_stale_socket(const char *folder, pid_t pid, int (*is_over)(pid_t));

/* -- children.c: children that are VMs ------------------------------------------------------------- */

/* In a VM that has just opened its socket: where the parent is one too, it removes what this process leaves if it is killed. */
void vmscope_tell_parent(void);

/* With the mutex held: a process says that it is a VM, and a child. It is believed where it is a child. */
void vmscope_watch_child(Listener *self, pid_t pid);

/* Removes what those have left that have ended, and watches the others; how many ns there are until that is to be done again. */
int64_t vmscope_look_at_children(Listener *self, int64_t now);

/* One of them has ended. */
void vmscope_hear_of_children(Listener *self);

/* A new I/O thread has none of the last one's. */
void vmscope_forget_child_descriptors(Listener *self);

/* -- connections.c: all of it with the mutex held, on the I/O thread where it closes a descriptor ----- */

/* Closes it. What is still served is forgotten once the command thread is done with it. */
void vmscope_drop(Listener *self, Connection *connection);

/* The end of a client that has got its whole reply. */
void vmscope_finish(Listener *self, Connection *connection);

/* The whole of a short reply, which may be no more than the system takes at once. */
void vmscope_reply(Listener *self, Connection *connection, const char *reply);

/* The request and the reply are done with. */
void vmscope_forget_connection(Listener *self, Connection *connection);

/* Its client takes too long. What is queued for it is given back; the I/O thread closes it. */
void vmscope_give_up(Listener *self, Connection *connection);

/* Gives those up who hold memory and do not read. */
void vmscope_reclaim(Listener *self, int64_t now);

/* A free place, or the one whose client has been given the most time beyond its due; NULL, and then `wait` says in how
 * many ns there may be one. */
Connection *vmscope_find_place(Listener *self, int64_t now, int64_t *wait);

/* -- answers.c: what the I/O thread does for a request itself, as it needs no GIL ---------------------- */

/* With the mutex held: a whole request is there, of which the strings stand from `begin` to `end`. */
void vmscope_take_up(Listener *self, Connection *connection, const char *begin, const char *end);

/* Looks at the threads for those who have asked for that, as of now, and lets the command thread go on. */
void vmscope_look_at_threads(Listener *self);

/* Answers those for whom the command thread has not got the GIL in time; how many ns there are until that is to be asked again. */
int64_t vmscope_answer_late(Listener *self, int64_t now);

/* A client was denied because threads differ in their rights. */
void vmscope_note_limit(Listener *self);

/* -- request.c --------------------------------------------------------------------------------------- */

void vmscope_kick(Thread *thread);

/* With the mutex held: queues as much as there is room for; how much that is, or -1: no memory. */
Py_ssize_t vmscope_append(Listener *self, Connection *connection, const char *bytes, size_t length);

/* What is asked for on a connection, as an object; NULL with an exception set. */
PyObject *vmscope_make_call(Listener *self, Connection *connection);

/* Tells the client what was raised before anything could answer it, as where a module cannot be imported. */
void vmscope_answer_failure(PyObject *call);

int vmscope_add_call(PyObject *module);

/* -- listener.c ----------------------------------------------------------------------------------- */

/* The mutex and its condition, as new. */
void vmscope_init_lock(Listener *self);

/* -- io_thread.c ------------------------------------------------------------------------------------- */

void vmscope_talk(PyObject *listener);

/* Before each start: what was handed over, and is there no longer, is lost. */
void vmscope_prepare_io_thread(PyObject *listener);

/* In a forked child: what it has of the I/O thread's goes, without a word to clients, for the parent has it too. */
void vmscope_forget_io_thread(PyObject *listener);

/* -- attach_signal.c ---------------------------------------------------------------------------------- */

/* Which thread SIGQUIT wakes when a client asks for the socket; 0: none. */
extern _Atomic pid_t vmscope_attach_signal_thread;

/* Has the I/O thread see to it that the socket is there, under its name. */
void vmscope_ask_for_socket(void);

/* True once after a client has asked. */
int vmscope_attach_signal_asked(void);

#endif
