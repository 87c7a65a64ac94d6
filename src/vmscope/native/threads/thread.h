/* A native thread of vmscope's own: timed waits, a stop with a bound, and what fork does to it (thread.c). */
#ifndef VMSCOPE_THREAD_H
#define VMSCOPE_THREAD_H

#include "native.h"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>

/* The process has at most one running thread of each kind. In this order: what the first calls may start the others. */
typedef enum {
    DELAYED_CALL_THREAD,
    MIRROR_THREAD,
    SAMPLER_THREAD,
    IO_THREAD,
    COMMAND_THREAD,
    SERVING_THREAD,
    PERIODIC_THREAD,
    FLIGHT_THREAD,
    THREAD_KINDS
} ThreadKind;

/* What a thread has to do: to end for the time of a fork, or for good, with whatever it has to do at the end. */
enum { PAUSE = 1, STOP };

typedef struct {
    PyObject *owner; /* the object that this is a part of */
    ThreadKind kind;
    void (*body)(PyObject *owner);
    void (*starting)(PyObject *owner); /* or NULL: before each start, on the thread that starts it */
    void (*forked)(PyObject *owner);   /* or NULL: in a forked child, what becomes of what the thread had */
    int wake_signal;                   /* what wakes it besides the condition; 0: nothing does */
    int shares_files;                  /* it has to be a child of a thread that has the program's descriptors */

    pthread_mutex_t mutex;      /* held for some instructions only, never across a system call */
    pthread_cond_t wake, ended; /* for the thread: there is something to do; for others: its body has returned */

    pthread_mutex_t turn; /* held while the thread is started or joined: one may do that at a time */
    pthread_t thread;
    pid_t tid;                                      /* the thread's own while it runs */
    pid_t pid;                                      /* whose thread it is: a bare fork(2) calls no hook */
    int joinable, alive, running, stopping, kicked; /* under the mutex; alive: until the body has returned */
    _Atomic int paused;                             /* forks under way */
    _Atomic int finished;                           /* no fork starts it again */
    int stuck;                                      /* on a frozen disk, as the last fork found it */
    _Atomic int late;                               /* a fork has waited in vain for the command that it runs */
    int64_t cpu;                                    /* ns of CPU that are accounted for; the thread's own */
    _Atomic int error;                              /* errno of the last failure: a start, or the owner's work */
} Thread;

int64_t vmscope_clock(clockid_t clock); /* ns */
int64_t vmscope_now(void);              /* CLOCK_MONOTONIC, ns */

/* A signal that no program sends, which a thread of vmscope's waits for with a descriptor. It is blocked there, and so is never
 * delivered, whatever its action is. */
#ifdef SIGSTKFLT
#define VMSCOPE_WAKE_SIGNAL SIGSTKFLT
#else
#define VMSCOPE_WAKE_SIGNAL SIGURG
#endif

/* ns of CPU that vmscope's own threads have used. */
int64_t vmscope_own_cpu(void);

/* Thread states that vmscope's own threads have made, and those of them that are there now, except the sampler's. */
extern _Atomic int64_t vmscope_own_states, vmscope_states_in_use;

/* Around Python code of vmscope's on such a thread: takes the GIL, and the program's tools see nothing in between:
 * neither sys.monitoring nor sys.settrace and sys.setprofile. */
typedef struct {
    PyGILState_STATE gil;
    PyThreadState *state;
    sigset_t mask;
} OwnCode;
OwnCode vmscope_begin_own_code(void);
void vmscope_end_own_code(OwnCode own);

/* Whether the thread with this number is such a one. */
int vmscope_is_own_thread(pid_t tid);

/* True on such a thread; a signal handler may read it. */
extern VMSCOPE_THREAD_LOCAL int vmscope_on_own_thread;

/* Whether any thread imports a module just now. In a child that is forked meanwhile whoever imports it waits for ever.
 * A heap dump does not let go of the GIL: so this waits for its end, as the whole program does. (import_timer.c) */
int vmscope_is_importing(void);

/* While the sampler waits for the GIL: puts into its counters how long, and what it would read without it (sampler.c). */
void vmscope_sampler_show_wait(void);

/* Where the attach socket has lost its name: it is made anew, as when a client asks for it. (socket.c) */
void vmscope_notice_lost_socket(void);

/* Counts threads from one again, in a forked child (sampler.c). */
void vmscope_sampler_after_fork(void);

/* A process has one of each thread, for its one region: its main interpreter's. */
int vmscope_in_main_interpreter(void);

void vmscope_thread_init(Thread *self, PyObject *owner, ThreadKind kind, void (*body)(PyObject *owner));

/* Starts the body on a thread, as the process's one of its kind; 0, or -1 with RuntimeError (also in a sub-interpreter)
 * or OSError. */
int vmscope_thread_start(Thread *self);

/* Asks the thread to end and waits for that, `timeout` ns at most; true when it has ended. No fork starts it again. */
int vmscope_thread_stop(Thread *self, int64_t timeout);

/* With the mutex held: there is something new, wake up now. */
void vmscope_thread_kick(Thread *self);

/* With the GIL: starts those again that are to run and do not, as where a fork could not. */
void vmscope_thread_resume(void);

/* The same at a moment of the program's choice, for those that could not be started: none where there are no such. */
void vmscope_thread_retry(void);

/* Makes a thread in advance, before the caller leaves the program's descriptors: the next start of one that shares them
 * takes it. Dismissed, it ends where it was not taken. */
void vmscope_thread_make_spare(void);
void vmscope_thread_dismiss_spare(void);

/* -- for the body */

/* A descriptor table of the thread's own, empty, that the program neither sees nor closes and no child inherits. */
void vmscope_thread_unshare_files(void);

/* Waits for `nanoseconds` or a kick; PAUSE or STOP when the thread has to end. */
int vmscope_thread_wait(Thread *self, int64_t nanoseconds);

int vmscope_thread_is_stopping(Thread *self);

/* The same for a thread that waits otherwise: what was a kick until now is heard. */
int vmscope_thread_hear(Thread *self);

/* Adds the CPU that the thread has used to what vmscope's own threads have. */
void vmscope_thread_account(Thread *self);

/* There is nothing left to do: no fork starts it again. */
void vmscope_thread_finish(Thread *self);

/* The last thing to call: true, and the body returns; false when the stop was taken back meanwhile. */
int vmscope_thread_leave(Thread *self);

#endif
