/* Threads of vmscope's own, which the program does not notice: signals blocked, a small stack, no descriptor
 * of the program's, stopped around fork.
 *
 * os.fork warns of every second thread that it counts, so they end before it and are started again once it has
 * returned. */
#define _GNU_SOURCE
#include "threads/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE (1 << 20)
#define GONE_YIELDS 1000
#define GONE_TRIES 4000 /* those after the yields take 100 us each: it is another program's turn */
#define HOOK_DEPTH 16
#define RETRY 100000000         /* ns until a thread is started again for which there was no room */
#define FORK_TIMEOUT 4000000    /* ns; a fork waits so long for a thread, */
#define FROZEN_TRIES 2          /* so often for one that a frozen file system holds, once, */
#define STUCK_TRIES 50          /* so often for one that a slow disk holds, once, */
#define FORK_TRIES 500          /* and so often for one that nothing gives a processor, or that imports a module, */
#define COMMAND_TRIES 100       /* but so often for one that runs a command */
#define CALL_TIMEOUT 1000000000 /* ns: forked in the middle of a call, a child would have half of what it does */

static const char *const names[THREAD_KINDS] = {"timer",   "mirror", "sampler", "listener",
                                                "command", "export", "visits",  "flight"};

/* Each a strong reference to its owner: what fork looks at. Under `choosing`, which is held for some instructions. */
static Thread *active[THREAD_KINDS];
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

static _Atomic int64_t own_cpu;
_Atomic int64_t vmscope_own_states, vmscope_states_in_use;

VMSCOPE_THREAD_LOCAL int vmscope_on_own_thread;

int64_t
vmscope_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t
vmscope_now(void)
{
    return vmscope_clock(CLOCK_MONOTONIC);
}

int64_t
vmscope_own_cpu(void)
{
    return atomic_load_explicit(&own_cpu, memory_order_relaxed);
}

/* What runs may abort. From glibc 2.41 on abort() does not unblock its signal before the handlers have had their turn. */
static void
unblock_abort(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGABRT);
    pthread_sigmask(SIG_UNBLOCK, &set, before);
}

OwnCode
vmscope_begin_own_code(void)
{
    atomic_fetch_add(&vmscope_own_states, 1);
    atomic_fetch_add(&vmscope_states_in_use, 1);
    OwnCode own = {.gil = PyGILState_Ensure(), .state = PyThreadState_Get()};
    PyThreadState_EnterTracing(own.state);
    unblock_abort(&own.mask);
    return own;
}

void
vmscope_end_own_code(OwnCode own)
{
    pthread_sigmask(SIG_SETMASK, &own.mask, NULL);
    PyThreadState_LeaveTracing(own.state);
    PyGILState_Release(own.gil);
    atomic_fetch_sub(&vmscope_states_in_use, 1);
}

/* By a clock that cannot be set: to set it would make a fork, or the end of the process, wait for as long. */
static struct timespec
deadline_after(int64_t nanoseconds)
{
    int64_t deadline = vmscope_now() + nanoseconds;
    return (struct timespec){.tv_sec = (time_t)(deadline / 1000000000), .tv_nsec = (long)(deadline % 1000000000)};
}

/* -- for the body --------------------------------------------------------------------------------- */

void
vmscope_thread_unshare_files(void)
{
#ifdef SYS_close_range
    /* 2: CLOSE_RANGE_UNSHARE. A kernel without it leaves an ordinary close-on-exec descriptor. */
    (void)syscall(SYS_close_range, 0U, ~0U, 2U);
#endif
}

void
vmscope_thread_account(Thread *self)
{
    int64_t cpu = vmscope_clock(CLOCK_THREAD_CPUTIME_ID);
    atomic_fetch_add_explicit(&own_cpu, cpu - self->cpu, memory_order_relaxed);
    self->cpu = cpu;
}

int
vmscope_thread_is_stopping(Thread *self)
{
    pthread_mutex_lock(&self->mutex);
    int stopping = self->stopping;
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

int
vmscope_thread_hear(Thread *self)
{
    pthread_mutex_lock(&self->mutex);
    int stopping = self->stopping;
    self->kicked = 0;
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

int
vmscope_thread_wait(Thread *self, int64_t nanoseconds)
{
    vmscope_thread_account(self);
    struct timespec deadline = deadline_after(nanoseconds);
    pthread_mutex_lock(&self->mutex);
    while (!self->stopping && !self->kicked &&
           pthread_cond_timedwait(&self->wake, &self->mutex, &deadline) != ETIMEDOUT) {
    }
    int stopping = self->stopping;
    self->kicked = 0;
    pthread_mutex_unlock(&self->mutex);
    vmscope_thread_account(self);
    return stopping;
}

void
vmscope_thread_finish(Thread *self)
{
    pthread_mutex_lock(&self->mutex);
    atomic_store(&self->finished, 1);
    self->stopping = STOP;
    pthread_mutex_unlock(&self->mutex);
}

int
vmscope_thread_leave(Thread *self)
{
    vmscope_thread_account(self);
    pthread_mutex_lock(&self->mutex);
    int stopping = self->stopping;
    if (stopping) {
        self->running = 0;
    }
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

/* -- the active ones ------------------------------------------------------------------------------ */

/* The one of a kind, with a new reference to its owner; NULL: there is none. */
static Thread *
get_active(int kind)
{
    pthread_mutex_lock(&choosing);
    Thread *self = active[kind];
    if (self != NULL) {
        Py_INCREF(self->owner);
    }
    pthread_mutex_unlock(&choosing);
    return self;
}

/* Puts `next` in place of `expected`, whose reference it takes over; what stood there. */
static Thread *
replace_active(int kind, Thread *expected, Thread *next)
{
    pthread_mutex_lock(&choosing);
    Thread *found = active[kind];
    if (found == expected) {
        active[kind] = next;
    }
    pthread_mutex_unlock(&choosing);
    return found;
}

int
vmscope_is_own_thread(pid_t tid)
{
    int found = 0;
    pthread_mutex_lock(&choosing);
    for (int kind = 0; kind < THREAD_KINDS && !found; kind++) {
        found = active[kind] != NULL && active[kind]->tid == tid;
    }
    pthread_mutex_unlock(&choosing);
    return found;
}

/* -- start and stop ------------------------------------------------------------------------------- */

void
vmscope_thread_init(Thread *self, PyObject *owner, ThreadKind kind, void (*body)(PyObject *owner))
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->wake, &attributes);
    pthread_cond_init(&self->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&self->mutex, NULL);
    pthread_mutex_init(&self->turn, NULL);
    self->owner = owner;
    self->kind = kind;
    self->body = body;
    self->tid = 0;
    self->joinable = self->alive = self->running = self->stopping = self->kicked = self->stuck = 0;
    atomic_store(&self->late, 0);
    atomic_store(&self->paused, 0);
    atomic_store(&self->finished, 0);
}

/* With the mutex held. */
static void
wake(Thread *self)
{
    pthread_cond_signal(&self->wake);
    if (self->wake_signal != 0 && self->running && self->tid != 0) {
        (void)syscall(SYS_tgkill, getpid(), self->tid, self->wake_signal);
    }
}

void
vmscope_thread_kick(Thread *self)
{
    if (!self->kicked) {
        self->kicked = 1;
        wake(self);
    }
}

/* A fault that is blocked would end the process at once, past the fatal path. */
static void
unblock_faults(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigaddset(&set, faults[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void
set_alive(Thread *self, int alive)
{
    pthread_mutex_lock(&self->mutex);
    self->alive = alive;
    pthread_cond_broadcast(&self->ended);
    pthread_mutex_unlock(&self->mutex);
}

static void *
enter(void *argument)
{
    Thread *self = argument;
    vmscope_on_own_thread = 1;
    unblock_faults();
#ifdef __linux__
    char name[16] = "vmscope "; /* as top -H and the like show it */
    prctl(PR_SET_NAME, strncat(name, names[self->kind], sizeof name - sizeof "vmscope "));
#endif
    self->cpu = 0;
    pthread_mutex_lock(&self->mutex);
    self->tid = (pid_t)syscall(SYS_gettid);
    pthread_mutex_unlock(&self->mutex);
    self->body(self->owner);
    set_alive(self, 0);
    return NULL;
}

/* Takes a stop back that the thread has yet to see; true where there is a thread. */
static int
keep_running(Thread *self)
{
    pthread_mutex_lock(&self->mutex);
    self->stopping = 0;
    int running = self->running;
    pthread_mutex_unlock(&self->mutex);
    return running;
}

static void
set_running(Thread *self, int running)
{
    pthread_mutex_lock(&self->mutex);
    self->running = running;
    pthread_mutex_unlock(&self->mutex);
}

/* 0, or the errno of pthread_create. */
static int
begin_thread(pthread_t *thread, void *(*begin)(void *), void *argument)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are not for this thread */
    int status = pthread_create(thread, &attributes, begin, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return status;
}

/* A thread made in advance. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t thread;
    int there, dismissed; /* it waits */
    Thread *taker;
} spare = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void *
wait_for_taker(void *Py_UNUSED(ignored))
{
    pthread_mutex_lock(&spare.mutex);
    while (spare.taker == NULL && !spare.dismissed) {
        pthread_cond_wait(&spare.wake, &spare.mutex);
    }
    Thread *taker = spare.taker;
    spare.taker = NULL;
    pthread_mutex_unlock(&spare.mutex);
    return taker == NULL ? NULL : enter(taker);
}

void
vmscope_thread_make_spare(void)
{
    pthread_mutex_lock(&spare.mutex);
    spare.dismissed = 0;
    spare.there = begin_thread(&spare.thread, wait_for_taker, NULL) == 0;
    pthread_mutex_unlock(&spare.mutex);
}

void
vmscope_thread_dismiss_spare(void)
{
    pthread_mutex_lock(&spare.mutex);
    int there = spare.there;
    spare.there = 0;
    spare.dismissed = there;
    pthread_cond_signal(&spare.wake);
    pthread_mutex_unlock(&spare.mutex);
    if (there) {
        pthread_join(spare.thread, NULL);
    }
}

static int
take_spare(Thread *self)
{
    pthread_mutex_lock(&spare.mutex);
    int there = spare.there;
    if (there) {
        spare.there = 0;
        spare.taker = self;
        self->thread = spare.thread;
        pthread_cond_signal(&spare.wake);
    }
    pthread_mutex_unlock(&spare.mutex);
    return there;
}

/* In its turn, where no thread runs. 0, or the errno of pthread_create. */
static int
create(Thread *self)
{
    if (self->joinable) {
        pthread_join(self->thread, NULL);
    }
    if (self->starting != NULL) {
        self->starting(self->owner);
    }
    self->tid = 0;
    set_running(self, 1);
    set_alive(self, 1);
    self->pid = getpid();
    int status = self->shares_files && take_spare(self) ? 0 : begin_thread(&self->thread, enter, self);
    self->joinable = status == 0;
    if (status != 0) {
        set_running(self, 0);
        set_alive(self, 0);
    }
    return status;
}

/* 0, or the errno of pthread_create. */
static int
launch(Thread *self)
{
    if (keep_running(self)) {
        return 0;
    }
    pthread_mutex_lock(&self->turn); /* soon: what it may be held for is the end of a thread that runs no more */
    int created = !keep_running(self);
    int status = created ? create(self) : 0;
    pthread_mutex_unlock(&self->turn);
    return status;
}

static void
ask_to_stop(Thread *self, int order)
{
    pthread_mutex_lock(&self->mutex);
    self->stopping = order > self->stopping ? order : self->stopping;
    wake(self);
    pthread_mutex_unlock(&self->mutex);
}

/* A thread that was joined is still counted for a moment, of which os.fork would warn: until it is gone. */
static void
wait_until_gone(pid_t tid)
{
    for (int i = 0; i < GONE_TRIES && syscall(SYS_tgkill, getpid(), tid, 0) == 0; i++) {
        if (i < GONE_YIELDS) {
            sched_yield();
        } else {
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        }
    }
}

/* Until its body has returned, or the deadline (NULL: it has passed) has come; which of the two it was. */
static int
has_ended(Thread *self, const struct timespec *deadline)
{
    pthread_mutex_lock(&self->mutex);
    while (self->alive && deadline != NULL &&
           pthread_cond_timedwait(&self->ended, &self->mutex, deadline) != ETIMEDOUT) {
    }
    int ended = !self->alive;
    pthread_mutex_unlock(&self->mutex);
    return ended;
}

static int
is_current(Thread *self)
{
    pthread_mutex_lock(&self->mutex);
    pid_t tid = self->tid;
    pthread_mutex_unlock(&self->mutex);
    return tid == (pid_t)syscall(SYS_gettid);
}

/* Without the GIL; true when the thread has ended. */
static int
join(Thread *self, int64_t timeout)
{
    if (self->pid != getpid()) { /* there is none, or it is the parent's, as is whoever had the turn */
        pthread_mutex_init(&self->turn, NULL);
        self->joinable = 0;
        return 1;
    }
    struct timespec deadline = deadline_after(is_current(self) ? 0 : timeout);
    int ended = 0;
    while (!ended && has_ended(self, &deadline)) {
        pthread_mutex_lock(&self->turn); /* soon: what it may be held for is the end of a thread that runs no more */
        ended = has_ended(self, NULL);   /* false: it has just been started again */
        if (ended && self->joinable) {
            pthread_join(self->thread, NULL);
            wait_until_gone(self->tid);
            self->joinable = 0;
        }
        pthread_mutex_unlock(&self->turn);
    }
    return ended;
}

int
vmscope_in_main_interpreter(void)
{
    return PyInterpreterState_Get() == PyInterpreterState_Main();
}

int
vmscope_thread_start(Thread *self)
{
    if (!vmscope_in_main_interpreter()) {
        PyErr_SetString(PyExc_RuntimeError, "a process has one region: only its main interpreter makes it");
        return -1;
    }
    Py_INCREF(self->owner);
    Thread *found = replace_active(self->kind, NULL, self);
    if (found != NULL) {
        Py_DECREF(self->owner);
        if (found != self) {
            PyErr_Format(PyExc_RuntimeError, "this process has a running %s", names[self->kind]);
            return -1;
        }
    }
    atomic_store(&self->finished, 0);
    int status = launch(self);
    if (status != 0) {
        if (replace_active(self->kind, self, NULL) == self) {
            Py_DECREF(self->owner);
        }
        errno = status;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    return 0;
}

int
vmscope_thread_stop(Thread *self, int64_t timeout)
{
    int ended;
    int was_active = replace_active(self->kind, self, NULL) == self;
    Py_BEGIN_ALLOW_THREADS
    ask_to_stop(self, STOP);
    ended = join(self, timeout);
    Py_END_ALLOW_THREADS
    if (was_active && ended) {
        Py_DECREF(self->owner); /* else the thread may still come back to it: never freed */
    }
    return ended;
}

/* -- fork ----------------------------------------------------------------------------------------- */

/* The start of a file that the kernel has about a thread; "" where there is none. */
static void
read_task(pid_t tid, const char *name, char text[128])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, 127);
    if (fd >= 0) {
        close(fd);
    }
    text[length < 0 ? 0 : length] = '\0';
}

/* Whether it waits to write until a file system thaws; a kernel that does not tell leaves it to is_stuck. */
static int
is_frozen(pid_t tid)
{
    char text[128];
    read_task(tid, "wchan", text);
    return strstr(text, "percpu") != NULL; /* percpu_rwsem_wait; older ones: __percpu_down_read */
}

/* Whether the kernel keeps a thread waiting for a disk. */
static int
is_stuck(pid_t tid)
{
    char text[128];
    read_task(tid, "stat", text);
    const char *end = strrchr(text, ')'); /* of the name, which the state follows */
    return end == NULL || strncmp(end, ") D", 3) == 0;
}

/* Without the GIL. */
static void
wait_for_pause(Thread *self)
{
    if (self->stuck && is_stuck(self->tid)) {
        return;
    }
    self->stuck = 0;
    int commands = self->kind == COMMAND_THREAD, ended = 0;
    int tries = atomic_load(&self->late) ? 1 : FORK_TRIES; /* only one fork waits long for a long command */
    for (int i = 1; i <= tries && !self->stuck && !(ended = join(self, FORK_TIMEOUT)); i++) {
        self->stuck = (i >= FROZEN_TRIES && is_frozen(self->tid)) || (i >= STUCK_TRIES && is_stuck(self->tid));
        if (commands && i % COMMAND_TRIES == 0 && !vmscope_is_importing()) {
            tries = i + 2;
        }
    }
    atomic_store(&self->late, commands && !ended);
}

static PyFrameObject *forking; /* the frame in which the main thread calls os.fork */
static int forking_at;         /* and where in it: what it calls later is not a hook of that fork */

static PyObject *
before_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    Thread *found[THREAD_KINDS];
    int stopped[THREAD_KINDS];
    for (int kind = 0; kind < THREAD_KINDS; kind++) {
        Thread *self = found[kind] = get_active(kind);
        stopped[kind] =
            self != NULL && atomic_fetch_add(&self->paused, 1) == 0; /* of two forks at once the first waits */
        if (stopped[kind]) {
            ask_to_stop(self, PAUSE);
        }
        if (kind == DELAYED_CALL_THREAD &&
            stopped[kind]) { /* its call may start the others: they come into view once it is over */
            Py_BEGIN_ALLOW_THREADS
            join(self, CALL_TIMEOUT);
            Py_END_ALLOW_THREADS
        }
    }
    Py_BEGIN_ALLOW_THREADS
    for (int kind = THREAD_KINDS - 1; kind > DELAYED_CALL_THREAD; kind--) {
        if (stopped[kind] && !is_current(found[kind])) { /* what is called on a thread of vmscope's may fork too */
            wait_for_pause(found[kind]);
        }
    }
    Py_END_ALLOW_THREADS
    for (int kind = 0; kind < THREAD_KINDS; kind++) {
        if (found[kind] != NULL) {
            Py_DECREF(found[kind]->owner); /* which may have been stopped meanwhile */
        }
    }
    Py_RETURN_NONE;
}

static _Atomic int64_t retry_at; /* when one is tried again that could not be started; 0: there is none */

void
vmscope_thread_resume(void)
{
    atomic_store(&retry_at, 0);
    for (int kind = 0; kind < THREAD_KINDS; kind++) {
        Thread *self = get_active(kind);
        if (self == NULL) {
            continue;
        }
        int due = atomic_load(&self->paused) == 0 && !atomic_load(&self->finished);
        int status = due ? launch(self) : 0;
        if (status != 0) {
            atomic_store(&self->error, status);
            atomic_store(&retry_at, vmscope_now() + RETRY);
        }
        Py_DECREF(self->owner);
    }
}

void
vmscope_thread_retry(void)
{
    int64_t at = atomic_load_explicit(&retry_at, memory_order_relaxed);
    if (at != 0 && vmscope_now() >= at) {
        vmscope_thread_resume();
    }
}

/* Whether what runs was called by os.fork: a hook of the program's, written in Python. */
static int
still_forking(void)
{
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef(PyEval_GetFrame());
    int found = 0;
    for (int depth = 0; depth < HOOK_DEPTH && frame != NULL && frame != forking && !found; depth++) {
        Py_SETREF(frame, PyFrame_GetBack(frame));
        found = frame != NULL && frame == forking && PyFrame_GetLasti(frame) == forking_at;
    }
    Py_XDECREF(frame);
    return found;
}

static int
resume_after_fork(void *Py_UNUSED(ignored))
{
    if (still_forking() && Py_AddPendingCall(resume_after_fork, NULL) == 0) {
        return 0;
    }
    Py_CLEAR(forking);
    vmscope_thread_resume();
    return 0;
}

/* From 3.12 on os.fork counts the threads after its hooks, to warn. A pending call of the main thread comes later
 * than that; on any other thread the program has threads of its own and is warned in any case. */
static int
must_resume_later(void)
{
    return PY_VERSION_HEX >= 0x030C0000 && syscall(SYS_gettid) == getpid();
}

static PyObject *
after_fork_in_parent(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    int due = 0;
    for (int kind = 0; kind < THREAD_KINDS; kind++) {
        Thread *self = get_active(kind);
        if (self != NULL) {
            due |= atomic_load(&self->paused) > 0 && atomic_fetch_sub(&self->paused, 1) == 1;
            Py_DECREF(self->owner);
        }
    }
    if (!due) {
        Py_RETURN_NONE;
    }
    if (must_resume_later()) {
        Py_XSETREF(forking, (PyFrameObject *)Py_XNewRef(PyEval_GetFrame()));
        forking_at = forking == NULL ? -1 : PyFrame_GetLasti(forking);
        if (Py_AddPendingCall(resume_after_fork, NULL) == 0) {
            Py_RETURN_NONE;
        }
        Py_CLEAR(forking);
    }
    vmscope_thread_resume();
    Py_RETURN_NONE;
}

static PyObject *
after_fork_in_child(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    pthread_mutex_init(&choosing, NULL); /* without a GIL another thread may have held it */
    pthread_mutex_init(&spare.mutex, NULL);
    spare.there = 0;
    for (int kind = 0; kind < THREAD_KINDS; kind++) {
        Thread *self = active[kind];
        active[kind] = NULL;
        if (self != NULL) { /* its thread is the parent's */
            vmscope_thread_init(self, self->owner, self->kind, self->body);
            if (self->forked != NULL) {
                self->forked(self->owner);
            }
            Py_DECREF(self->owner);
        }
    }
    Py_CLEAR(forking);
    atomic_store(&own_cpu, 0);
    atomic_store(&vmscope_states_in_use, 0);
    vmscope_sampler_after_fork();
    Py_RETURN_NONE;
}

static PyObject *
in_main_interpreter(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(vmscope_in_main_interpreter());
}

static PyMethodDef functions[] = {
    {"in_main_interpreter", in_main_interpreter, METH_NOARGS,
     "False in a sub-interpreter, which has no threads of vmscope's."},
    {"before_fork", before_fork, METH_NOARGS, "For os.register_at_fork: stops the running threads."},
    {"after_fork_in_parent", after_fork_in_parent, METH_NOARGS, "Starts them again once os.fork has returned."},
    {"after_fork_in_child", after_fork_in_child, METH_NOARGS, "Forgets them: they and their files are the parent's."},
    {NULL},
};

int
vmscope_add_thread(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
