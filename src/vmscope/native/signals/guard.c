/* The handlers behind guard.h. */
#define _GNU_SOURCE
#include "signals/guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

VMSCOPE_THREAD_LOCAL Guard *volatile vmscope_current_guard;

#define MOST_PASSED 4

/* The handlers that a fault of this thread is being passed on to, the outermost first, and the frames that do: one may
 * have been left by a jump. */
static VMSCOPE_THREAD_LOCAL struct {
    void *handlers[MOST_PASSED];
    uintptr_t frames[MOST_PASSED];
    int count;
} passing;

/* Whom the faults of one signal belong to. */
typedef struct {
    const int signum;
    unsigned users;          /* under `lock`; while ours is there, more than none */
    struct sigaction before; /* constant while there are users, except what the fatal path changes */
    struct sigaction below;  /* of one that was installed above ours: what was there before both */
    volatile sig_atomic_t
        overtaken; /* there was one: it takes ours for the one before it, and may call it, or put it back */
} Place;

static Place places[] = {{.signum = SIGBUS}, {.signum = SIGSEGV}}; /* of GUARD_FILES the first, of GUARD_MEMORY both */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A handler that a fault is passed on to may put back the one before it, as faulthandler does before its first word: a
 * read that faults at that moment would end the process. And whom a fault belongs to is plain when no read begins or
 * ends. So neither begins while the other lasts. Each waits only so long: a handler may jump away, a reader be stopped. */
static atomic_int reads, passed;
static VMSCOPE_THREAD_LOCAL int own_reads;
static const struct timespec pause_time = {.tv_nsec = 50000};
enum { PAUSES_OF_FAULT = 200, PAUSES_OF_READ = 20 };

static void on_fault(int signum, siginfo_t *info, void *context);

static bool
is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

static bool
is_function(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void *
function_of(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO ? (void *)action->sa_sigaction : (void *)action->sa_handler;
}

static bool
is_passing_to(const struct sigaction *action)
{
    for (int i = 0; i < passing.count; i++) {
        if (passing.handlers[i] == function_of(action)) {
            return true;
        }
    }
    return false;
}

/* Whose turn it is: a handler that passes a fault on to the one before it, or has put that back and sends the signal
 * again, is not called twice. NULL: none is left. */
static struct sigaction *
next_action(Place *place, bool was_restored)
{
    struct sigaction *first = &place->before, *second = place->overtaken ? &place->below : NULL;
    if (place->users == 0 && second != NULL && !was_restored) { /* the one above calls ours, or has put it back */
        first = &place->below;
        second = &place->before;
    }
    if (passing.count == MOST_PASSED) {
        return NULL;
    }
    return !is_passing_to(first) ? first : second != NULL && !is_passing_to(second) ? second : NULL;
}

static void
call_handler(const struct sigaction *action, int signum, siginfo_t *info, void *context)
{
    sigset_t mask = action->sa_mask;
    if (!(action->sa_flags & SA_NODEFER)) {
        sigaddset(&mask, signum);
    }
    pthread_sigmask(SIG_BLOCK, &mask, NULL); /* the return from the signal undoes it */
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(signum, info, context);
    } else {
        action->sa_handler(signum);
    }
}

/* Until no other thread reads under a guard. */
static void
wait_for_reads(void)
{
    atomic_store(&passed, 1);
    for (int i = 0; i < PAUSES_OF_FAULT && atomic_load(&reads) > own_reads; i++) {
        nanosleep(&pause_time, NULL);
    }
}

/* Counts a read that begins: not while a fault is passed on. */
static void
begin_read(void)
{
    atomic_fetch_add(&reads, 1);
    for (int i = 0; atomic_load(&passed); i++) {
        if (i == PAUSES_OF_READ) {
            atomic_store(&passed, 0); /* left by a jump */
        } else {
            atomic_fetch_sub(&reads, 1);
            nanosleep(&pause_time, NULL);
            atomic_fetch_add(&reads, 1);
        }
    }
    own_reads++;
}

static void
end_read(void)
{
    own_reads--;
    atomic_fetch_sub(&reads, 1);
}

static void
pass_on(Place *place, siginfo_t *info, void *context, bool was_restored)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    while (passing.count > 0 && passing.frames[passing.count - 1] <= here) {
        passing.count--;
    }
    struct sigaction *next = next_action(place, was_restored), action = {.sa_handler = SIG_DFL};
    action = next == NULL ? action : *next;
    if (is_function(&action)) {
        if (action.sa_flags & SA_RESETHAND) {
            next->sa_flags &= ~SA_SIGINFO;
            next->sa_handler = SIG_DFL;
        }
        passing.handlers[passing.count] = function_of(&action);
        passing.frames[passing.count++] = here;
        call_handler(&action, place->signum, info, context);
        passing.count--;
    } else if (info->si_code > 0 || action.sa_handler == SIG_DFL) {
        /* A fault repeats itself when we return; a signal that was sent has to be sent again. */
        sigaction(place->signum, &action, NULL);
        if (info->si_code <= 0) {
            raise(place->signum);
        }
    }
}

/* Whether the kernel called the handler with this frame, and no other handler did. The kernel's part of the stack has
 * the context next to where the handler returns to; on aarch64 a frame record above it. */
static bool
is_called_by_kernel(const uintptr_t *frame, const void *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context == (uintptr_t)(frame + 2);
#elif defined(__aarch64__)
    return frame[0] > (uintptr_t)context;
#else
    return frame == NULL && context == NULL; /* not known */
#endif
}

/* Whether the fault came while ours was there and another thread has put back the one before it since. */
static bool
is_restored(const Place *place, const uintptr_t *frame, const void *context)
{
    struct sigaction found;
    return is_called_by_kernel(frame, context) && sigaction(place->signum, NULL, &found) == 0 && !is_ours(&found);
}

static void
on_fault(int signum, siginfo_t *info, void *context)
{
    Guard *guard = vmscope_current_guard;
    uintptr_t address = (uintptr_t)info->si_addr;
    if (guard != NULL && info->si_code > 0 && address >= guard->start && address <= guard->end) {
        siglongjmp(guard->jump, 1);
    }
    int saved = errno;
    Place *place = &places[signum == SIGSEGV];
    wait_for_reads();
    pass_on(place, info, context, is_restored(place, __builtin_frame_address(0), context));
    atomic_store(&passed, 0);
    errno = saved;
}

/* Ours is to take the place of this one. `meanwhile`: it came while ours was there. */
static void
put_below(Place *place, const struct sigaction *found, bool meanwhile)
{
    if (!is_ours(found)) {
        if (meanwhile && is_function(found)) {
            place->below = place->before;
            place->overtaken = 1;
        }
        place->before = *found;
    } else if (!meanwhile && place->overtaken) { /* who was above has put ours back, and is gone */
        place->before = place->below;
        place->overtaken = 0;
    }
}

/* With the lock. Another thread's fault may come as soon as ours is there: it must find whom it belongs to. */
static void
install(Place *place, bool again)
{
    struct sigaction action, found, replaced;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    /* NODEFER: the jump out of the handler leaves the signal mask as it was. */
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(place->signum, NULL, &found);
    put_below(place, &found, again);
    sigaction(place->signum, &action, &replaced);
    if (function_of(&replaced) != function_of(&found)) { /* it has come this very moment */
        put_below(place, &replaced, again);
    }
}

/* With the lock. */
static void
restore(Place *place)
{
    struct sigaction found;
    sigaction(place->signum, NULL, &found);
    if (is_ours(&found)) {
        sigaction(place->signum, &place->before, &found);
        if (is_ours(&found)) {
            return;
        }
        sigaction(place->signum, &found, NULL); /* it has come this very moment */
    }
    place->below = place->before; /* another was installed meanwhile: it stays */
    place->overtaken = 1;
}

/* A fork while another thread reads must leave the child a lock that it can take and no handler of vmscope's. */
static void
fork_before(void)
{
    pthread_mutex_lock(&lock);
}

static void
fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void
fork_child(void)
{
    pthread_mutex_unlock(&lock);
    atomic_store(&reads, 0);
    atomic_store(&passed, 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].users != 0) {
            restore(&places[i]);
            places[i].users = 0;
        }
    }
}

static void
watch_forks(void)
{
    pthread_atfork(fork_before, fork_parent, fork_child);
}

static void
faults_of(GuardKind kind, sigset_t *faults)
{
    sigemptyset(faults);
    for (int i = 0; i <= (int)kind; i++) {
        sigaddset(faults, places[i].signum);
    }
}

void
vmscope_guard_enter(GuardKind kind, sigset_t *mask)
{
    sigset_t faults;
    pthread_once(&once, watch_forks);
    begin_read();
    pthread_mutex_lock(&lock);
    for (int i = 0; i <= (int)kind; i++) {
        if (places[i].users++ == 0) {
            install(&places[i], false);
        }
    }
    pthread_mutex_unlock(&lock);
    faults_of(kind, &faults);
    pthread_sigmask(SIG_UNBLOCK, &faults, mask);
}

void
vmscope_guard_leave(GuardKind kind, const sigset_t *mask)
{
    if (sigismember(mask, SIGBUS) || sigismember(mask, SIGSEGV)) {
        pthread_sigmask(SIG_SETMASK, mask, NULL);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i <= (int)kind; i++) {
        if (places[i].users == 1) {
            restore(&places[i]);
        }
        places[i].users--;
    }
    pthread_mutex_unlock(&lock);
    end_read();
}

void
vmscope_guard_renew(GuardKind kind)
{
    for (int i = 0; i <= (int)kind; i++) {
        struct sigaction found;
        sigaction(places[i].signum, NULL, &found);
        if (!is_ours(&found)) {
            pthread_mutex_lock(&lock);
            install(&places[i], true);
            pthread_mutex_unlock(&lock);
        }
    }
}

void
vmscope_guard_action(int signum, const struct sigaction *action, struct sigaction *before)
{
    if (signum != SIGBUS && signum != SIGSEGV) {
        sigaction(signum, action, before);
        return;
    }
    Place *place = &places[signum == SIGSEGV];
    struct sigaction found;
    pthread_mutex_lock(&lock);
    sigaction(signum, NULL, &found);
    bool guarded = is_ours(&found);
    if (before != NULL) {
        *before = guarded ? place->before : found;
    }
    if (action != NULL && guarded) {
        place->before = *action;
    } else if (action != NULL) {
        sigaction(signum, action, NULL);
    }
    pthread_mutex_unlock(&lock);
}
