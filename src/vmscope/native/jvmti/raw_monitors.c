/* Raw monitors: an agent's own locks. They are an OS thread's, whether or not Python knows it, and work in callbacks in
 * which nothing of Python may be touched.
 *
 * A thread that has to wait gives the GIL away first, so it is never kept from the thread that has the monitor. That one
 * may wait for the GIL, as no thread waits for a monitor with it. `guard` is held for a few instructions only, and with it
 * no thread waits for anything else.
 *
 * An id is a place and how often it was used before, not an address: one that is destroyed or foreign is found out.
 * Memory of monitors is used again, never freed.
 *
 *   bits 0-2 7, 3-31 place, 32-63 serial of the place */
#define _GNU_SOURCE
#include "jvmti/raw_monitors.h"
#include "attributes.h"
#include "jni/gil.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct Waiter {
    struct Waiter *next;           /* in the same monitor: the one that came after this */
    struct Waiter *before, *after; /* among all that wait */
    struct Monitor *monitor;
    pid_t thread;
    pthread_cond_t wake;
    int notified;
    int interrupted;
} Waiter;

typedef struct Monitor {
    pthread_mutex_t guard;
    pthread_cond_t free;
    _Atomic uint64_t owner; /* 0: none */
    uint32_t entered;
    _Atomic uint32_t users;  /* threads that wait for it, or in it */
    _Atomic uint32_t serial; /* odd: it exists */
    Waiter *first, *last;
    struct Monitor *next; /* free one */
    uint32_t place;
} Monitor;

#define CHUNK 256
#define CHUNKS 4096
#define LONGEST INT64_C(2147483648) /* ms: what every system's clocks can wait */

static _Atomic(Monitor *) chunks[CHUNKS];
static uint32_t count; /* places that have been used */
static Monitor *unused;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER; /* of what stands above, and below */
static Waiter *waiting;

/* Threads that were interrupted and do not know it yet: theirs to look up, when there is one. */
static _Atomic uint32_t interrupted_count;
static pid_t *interrupted;
static uint32_t interrupted_room;

static _Atomic uint64_t last_self;
static VMSCOPE_THREAD_LOCAL uint64_t self_number;

/* The calling thread: a number that no other ever gets. */
static inline uint64_t
self(void)
{
    if (__builtin_expect(self_number == 0, 0)) {
        self_number = atomic_fetch_add(&last_self, 1) + 1;
    }
    return self_number;
}

static pid_t
thread_id(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* -- ids ------------------------------------------------------------------------------------------- */

static void *
id_of(const Monitor *monitor)
{
    uint64_t serial = atomic_load_explicit(&monitor->serial, memory_order_relaxed);
    return (void *)(uintptr_t)(serial << 32 | (uint64_t)monitor->place << 3 | 7);
}

static Monitor *
monitor_at(uint32_t place)
{
    Monitor *chunk = atomic_load_explicit(&chunks[place / CHUNK], memory_order_acquire);
    return chunk == NULL ? NULL : &chunk[place % CHUNK];
}

static inline int
is_still(const Monitor *monitor, const void *id)
{
    return atomic_load_explicit(&monitor->serial, memory_order_acquire) == (uint32_t)((uintptr_t)id >> 32);
}

/* NULL for what is none, or no longer. */
static Monitor *
monitor_of(const void *id)
{
    uintptr_t bits = (uintptr_t)id;
    uint32_t place = (uint32_t)bits >> 3;
    if ((bits & 7) != 7 || !(bits >> 32 & 1) || place >= CHUNK * CHUNKS) {
        return NULL;
    }
    Monitor *monitor = monitor_at(place);
    return monitor != NULL && is_still(monitor, id) ? monitor : NULL;
}

/* -- for ever -------------------------------------------------------------------------------------- */

static void
init(Monitor *monitor)
{
    pthread_mutex_init(&monitor->guard, NULL);
    pthread_cond_init(&monitor->free, NULL);
}

/* In a forked child there is one thread: what others had is free, and none waits. */
static void
after_fork(void)
{
    pthread_mutex_init(&table, NULL);
    waiting = NULL;
    unused = NULL;
    atomic_store(&interrupted_count, 0);
    for (uint32_t place = 0; place < count; place++) {
        Monitor *monitor = monitor_at(place);
        init(monitor);
        monitor->first = monitor->last = NULL;
        monitor->users = 0;
        if (!(atomic_load(&monitor->serial) & 1)) {
            monitor->next = unused;
            unused = monitor;
            atomic_store(&monitor->owner, 0);
        } else if (atomic_load(&monitor->owner) != self()) {
            atomic_store(&monitor->owner, 0);
        }
    }
}

static void
watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

static Monitor *
monitor_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&table);
    Monitor *monitor = unused;
    if (monitor != NULL) {
        unused = monitor->next;
    } else if (count < CHUNK * CHUNKS) {
        if (count % CHUNK == 0 && atomic_load(&chunks[count / CHUNK]) == NULL) {
            atomic_store_explicit(&chunks[count / CHUNK], calloc(CHUNK, sizeof *monitor), memory_order_release);
        }
        monitor = monitor_at(count);
        if (monitor != NULL) {
            init(monitor);
            monitor->place = count++;
        }
    }
    pthread_mutex_unlock(&table);
    return monitor;
}

/* With the guard: one user less. A monitor that is destroyed, and has none, may be used again. */
static void
leave(Monitor *monitor)
{
    uint32_t left = atomic_fetch_sub(&monitor->users, 1) - 1;
    int gone = left == 0 && !(atomic_load(&monitor->serial) & 1);
    pthread_mutex_unlock(&monitor->guard);
    if (gone) {
        pthread_mutex_lock(&table);
        monitor->next = unused;
        unused = monitor;
        pthread_mutex_unlock(&table);
    }
}

/* -- entering and leaving ---------------------------------------------------------------------------- */

static inline int
is_owner(const Monitor *monitor)
{
    return atomic_load_explicit(&monitor->owner, memory_order_relaxed) == self();
}

/* Makes it this thread's, where it has no owner. */
static inline int
try_own(Monitor *monitor)
{
    uint64_t no_thread = 0;
    return atomic_compare_exchange_strong(&monitor->owner, &no_thread, self());
}

/* Takes its owner away. Whoever waits for it has become a user before it last looked whose it is. */
static inline void
give_up(Monitor *monitor)
{
    monitor->entered = 0;
    atomic_store(&monitor->owner, 0);
    if (atomic_load(&monitor->users) > 0) {
        pthread_mutex_lock(&monitor->guard);
        pthread_cond_signal(&monitor->free);
        pthread_mutex_unlock(&monitor->guard);
    }
}

/* As a user, with the guard, without the GIL: until the monitor is this thread's, or no longer exists. */
static int
obtain(Monitor *monitor, const void *id, uint32_t entered)
{
    while (is_still(monitor, id)) {
        if (try_own(monitor)) {
            monitor->entered = entered;
            return ERROR_NONE;
        }
        pthread_cond_wait(&monitor->free, &monitor->guard);
    }
    return ERROR_INVALID_MONITOR;
}

static __attribute__((noinline)) int
enter_contended(Monitor *monitor, const void *id)
{
    pthread_mutex_lock(&monitor->guard);
    if (!is_still(monitor, id)) {
        pthread_mutex_unlock(&monitor->guard);
        return ERROR_INVALID_MONITOR;
    }
    atomic_fetch_add(&monitor->users, 1);
    pthread_mutex_unlock(&monitor->guard);
    PyThreadState *state = jni_release_gil();
    pthread_mutex_lock(&monitor->guard);
    int status = obtain(monitor, id, 1);
    leave(monitor);
    jni_take_gil(state);
    return status;
}

static inline int
enter(Monitor *monitor, const void *id)
{
    if (is_owner(monitor)) {
        monitor->entered++;
        return ERROR_NONE;
    }
    if (!try_own(monitor)) {
        return enter_contended(monitor, id);
    }
    if (!is_still(monitor, id)) { /* it was destroyed meanwhile */
        give_up(monitor);
        return ERROR_INVALID_MONITOR;
    }
    monitor->entered = 1;
    return ERROR_NONE;
}

/* -- waiting ----------------------------------------------------------------------------------------- */

static void
enlist(Waiter *waiter)
{
    pthread_mutex_lock(&table);
    waiter->before = NULL;
    waiter->after = waiting;
    if (waiting != NULL) {
        waiting->before = waiter;
    }
    waiting = waiter;
    pthread_mutex_unlock(&table);
}

static void
delist(Waiter *waiter)
{
    pthread_mutex_lock(&table);
    *(waiter->before == NULL ? &waiting : &waiter->before->after) = waiter->after;
    if (waiter->after != NULL) {
        waiter->after->before = waiter->before;
    }
    pthread_mutex_unlock(&table);
}

/* Whether the calling thread was interrupted; that is then over. What counts is what the tool interface knows. */
static __attribute__((cold, noinline)) int
take_interrupt(void)
{
    pid_t thread = thread_id();
    int found = 0;
    pthread_mutex_lock(&table);
    uint32_t many = atomic_load(&interrupted_count);
    for (uint32_t i = 0; i < many; i++) {
        if (interrupted[i] == thread) {
            interrupted[i] = interrupted[--many];
            atomic_store(&interrupted_count, many);
            found = 1;
            break;
        }
    }
    pthread_mutex_unlock(&table);
    if (!found || !jni_attached()) {
        return 0;
    }
    int taken;
    JNI_WITH_GIL
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *answer = vmscope_call_method(jni_bridge, "take_interrupt", NULL);
    taken = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (taken < 0) {
        jni_swallow();
    }
    PyErr_Restore(type, value, trace);
    JNI_WITHOUT_GIL
    return taken > 0;
}

static int
was_interrupted(void)
{
    return atomic_load_explicit(&interrupted_count, memory_order_relaxed) != 0 && take_interrupt();
}

static void
append(Monitor *monitor, Waiter *waiter)
{
    waiter->next = NULL;
    *(monitor->first == NULL ? &monitor->first : &monitor->last->next) = waiter;
    monitor->last = waiter;
}

static void
take_out(Monitor *monitor, Waiter *waiter)
{
    Waiter *before = NULL;
    for (Waiter *each = monitor->first; each != NULL; before = each, each = each->next) {
        if (each == waiter) {
            *(before == NULL ? &monitor->first : &before->next) = each->next;
            if (monitor->last == each) {
                monitor->last = before;
            }
            return;
        }
    }
}

static struct timespec
moment(int64_t millis)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    millis = millis < LONGEST ? millis : LONGEST;
    time.tv_sec += millis / 1000;
    time.tv_nsec += millis % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

/* Without the GIL, as its owner. */
static int
wait_in(Monitor *monitor, const void *id, int64_t millis, Waiter *waiter)
{
    struct timespec end = moment(millis > 0 ? millis : 0);
    uint32_t entered = monitor->entered;
    pthread_mutex_lock(&monitor->guard);
    atomic_fetch_add(&monitor->users, 1);
    append(monitor, waiter);
    monitor->entered = 0;
    atomic_store(&monitor->owner, 0);
    pthread_cond_signal(&monitor->free);
    int over = 0;
    while (!waiter->notified && !waiter->interrupted && over != ETIMEDOUT) {
        over = millis > 0 ? pthread_cond_timedwait(&waiter->wake, &monitor->guard, &end)
                          : pthread_cond_wait(&waiter->wake, &monitor->guard);
    }
    if (!waiter->notified) {
        take_out(monitor, waiter);
    }
    int status = obtain(monitor, id, entered);
    leave(monitor);
    return status;
}

static int
wait_for(Monitor *monitor, const void *id, int64_t millis)
{
    Waiter waiter = {.monitor = monitor, .thread = thread_id()};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    enlist(&waiter); /* from now on whoever interrupts it wakes it; before, it left a note */
    int status = ERROR_NONE;
    if (was_interrupted()) {
        status = ERROR_INTERRUPT;
    } else {
        PyThreadState *state = jni_release_gil();
        status = wait_in(monitor, id, millis, &waiter);
        jni_take_gil(state);
    }
    delist(&waiter);
    pthread_cond_destroy(&waiter.wake);
    if (status == ERROR_NONE && waiter.interrupted && was_interrupted()) {
        status = ERROR_INTERRUPT;
    }
    return status;
}

static void
notify(Monitor *monitor, uint32_t most)
{
    pthread_mutex_lock(&monitor->guard);
    for (; most > 0 && monitor->first != NULL; most--) {
        Waiter *waiter = monitor->first;
        monitor->first = waiter->next;
        waiter->notified = 1;
        pthread_cond_signal(&waiter->wake);
    }
    if (monitor->first == NULL) {
        monitor->last = NULL;
    }
    pthread_mutex_unlock(&monitor->guard);
}

/* -- the functions ------------------------------------------------------------------------------------ */

int32_t
jni_create_raw_monitor(Environment *environment, const char *name, void **id)
{
    int error = jni_enter(environment, 31, NO_THREAD);
    if (error != ERROR_NONE) {
        return error;
    }
    if (name == NULL || id == NULL) {
        return ERROR_NULL_POINTER;
    }
    Monitor *monitor = monitor_new();
    if (monitor == NULL) {
        return ERROR_OUT_OF_MEMORY;
    }
    atomic_fetch_add_explicit(&monitor->serial, 1, memory_order_release);
    *id = id_of(monitor);
    return ERROR_NONE;
}

#define FIND(slot)                                                                                                     \
    int error = jni_enter(environment, slot, NO_THREAD);                                                               \
    if (error != ERROR_NONE) {                                                                                         \
        return error;                                                                                                  \
    }                                                                                                                  \
    Monitor *monitor = monitor_of(id);                                                                                 \
    if (monitor == NULL) {                                                                                             \
        return ERROR_INVALID_MONITOR;                                                                                  \
    }

#define OWNED()                                                                                                        \
    if (!is_owner(monitor)) {                                                                                          \
        return ERROR_NOT_MONITOR_OWNER;                                                                                \
    }

/* Whoever waits in it, or, when its owner destroys it, for it, gets the error that it is not a monitor. */
int32_t
jni_destroy_raw_monitor(Environment *environment, const void *id)
{
    FIND(32)
    if (!is_owner(monitor) && !try_own(monitor)) {
        return ERROR_NOT_MONITOR_OWNER;
    }
    pthread_mutex_lock(&monitor->guard);
    int existed = is_still(monitor, id);
    if (existed) {
        atomic_fetch_add(&monitor->users, 1);
        atomic_fetch_add_explicit(&monitor->serial, 1, memory_order_release);
        pthread_cond_broadcast(&monitor->free);
        for (Waiter *waiter = monitor->first; waiter != NULL; waiter = waiter->next) {
            waiter->notified = 1;
            pthread_cond_signal(&waiter->wake);
        }
        monitor->first = monitor->last = NULL;
    }
    monitor->entered = 0;
    atomic_store(&monitor->owner, 0);
    if (existed) {
        leave(monitor);
    } else { /* it was used again meanwhile */
        pthread_cond_signal(&monitor->free);
        pthread_mutex_unlock(&monitor->guard);
    }
    return existed ? ERROR_NONE : ERROR_INVALID_MONITOR;
}

int32_t
jni_raw_monitor_enter(Environment *environment, const void *id)
{
    FIND(33)
    return enter(monitor, id);
}

int32_t
jni_raw_monitor_exit(Environment *environment, const void *id)
{
    FIND(34)
    OWNED()
    if (monitor->entered > 1) {
        monitor->entered--;
        return ERROR_NONE;
    }
    give_up(monitor);
    return ERROR_NONE;
}

int32_t
jni_raw_monitor_wait(Environment *environment, const void *id, int64_t millis)
{
    FIND(35)
    OWNED()
    return wait_for(monitor, id, millis);
}

int32_t
jni_raw_monitor_notify(Environment *environment, const void *id)
{
    FIND(36)
    OWNED()
    notify(monitor, 1);
    return ERROR_NONE;
}

int32_t
jni_raw_monitor_notify_all(Environment *environment, const void *id)
{
    FIND(37)
    OWNED()
    notify(monitor, UINT32_MAX);
    return ERROR_NONE;
}

/* -- for Python ---------------------------------------------------------------------------------------- */

/* Notes that a thread was interrupted, and wakes it where it waits. */
static PyObject *
py_interrupt(PyObject *Py_UNUSED(module), PyObject *number)
{
    pid_t thread = (pid_t)PyLong_AsLong(number);
    if (PyErr_Occurred()) {
        return NULL;
    }
    int woken = 0;
    pthread_mutex_lock(&table);
    uint32_t many = atomic_load(&interrupted_count), place = 0;
    while (place < many && interrupted[place] != thread) {
        place++;
    }
    if (place == interrupted_room) {
        uint32_t room = interrupted_room ? 2 * interrupted_room : 16;
        pid_t *larger = realloc(interrupted, room * sizeof *larger);
        if (larger == NULL) {
            pthread_mutex_unlock(&table);
            return PyErr_NoMemory();
        }
        interrupted = larger;
        interrupted_room = room;
    }
    if (place == many) {
        interrupted[many] = thread;
        atomic_store(&interrupted_count, many + 1);
    }
    for (Waiter *waiter = waiting; waiter != NULL; waiter = waiter->after) {
        if (waiter->thread == thread) {
            pthread_mutex_lock(&waiter->monitor->guard);
            waiter->interrupted = 1;
            pthread_cond_signal(&waiter->wake);
            pthread_mutex_unlock(&waiter->monitor->guard);
            woken = 1;
        }
    }
    pthread_mutex_unlock(&table);
    return PyBool_FromLong(woken);
}

static PyMethodDef functions[] = {
    {"interrupt", py_interrupt, METH_O,
     "interrupt(native_id) -> bool: ends this thread's wait in a raw monitor, now or next time; whether it waits now."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_raw_monitors(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
