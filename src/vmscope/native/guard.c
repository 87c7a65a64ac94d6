/* The handlers behind guard.h. */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

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
    unsigned users;          /* under `lock` */
    struct sigaction before; /* constant while there are users, but for what the fatal path changes */
    struct sigaction below;  /* of one that was installed above ours: what was there before both */
    volatile sig_atomic_t overtaken; /* there was one: it takes ours for the one before it, and may call it, or put it back */
} Place;

static Place places[] = {{.signum = SIGBUS}, {.signum = SIGSEGV}}; /* of GUARD_FILES the first, of GUARD_MEMORY both */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

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
 * again, is not called twice. NULL: nobody is left. */
static struct sigaction *
next_action(Place *place)
{
    struct sigaction *first = &place->before, *second = place->overtaken ? &place->below : NULL;
    if (place->users == 0 && second != NULL) { /* ours is called by the one above, or was put back by it */
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

static void
pass_on(Place *place, siginfo_t *info, void *context)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    while (passing.count > 0 && passing.frames[passing.count - 1] <= here) {
        passing.count--;
    }
    struct sigaction *next = next_action(place), action = {.sa_handler = SIG_DFL};
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

static void
on_fault(int signum, siginfo_t *info, void *context)
{
    Guard *guard = vmscope_current_guard;
    uintptr_t address = (uintptr_t)info->si_addr;
    if (guard != NULL && info->si_code > 0 && address >= guard->start && address <= guard->end) {
        siglongjmp(guard->jump, 1);
    }
    int saved = errno;
    pass_on(&places[signum == SIGSEGV], info, context);
    errno = saved;
}

static bool
is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

/* Ours is to take the place of this one. */
static void
put_below(Place *place, const struct sigaction *found)
{
    if (!is_ours(found)) {
        if (place->users > 0 && is_function(found)) {
            place->below = place->before;
            place->overtaken = 1;
        }
        place->before = *found;
    } else if (place->users == 0 && place->overtaken) { /* who was above has put ours back, and is gone */
        place->before = place->below;
        place->overtaken = 0;
    }
}

/* With the lock. Another thread's fault may come as soon as ours is there: it must find whom it belongs to. */
static void
install(Place *place)
{
    struct sigaction action, found, replaced;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    /* NODEFER: the jump out of the handler leaves the signal mask as it was. */
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(place->signum, NULL, &found);
    put_below(place, &found);
    sigaction(place->signum, &action, &replaced);
    if (function_of(&replaced) != function_of(&found)) { /* it has come this very moment */
        put_below(place, &replaced);
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
    place->below = place->before; /* somebody installed theirs meanwhile: it stays */
    place->overtaken = 1;
}

/* A fork while another thread reads must leave the child a lock that it can take and no handler of ours. */
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
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].users != 0) {
            places[i].users = 0;
            restore(&places[i]);
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
    pthread_mutex_lock(&lock);
    for (int i = 0; i <= (int)kind; i++) {
        if (places[i].users == 0) {
            install(&places[i]);
        }
        places[i].users++;
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
        if (--places[i].users == 0) {
            restore(&places[i]);
        }
    }
    pthread_mutex_unlock(&lock);
}

void
vmscope_guard_renew(GuardKind kind)
{
    for (int i = 0; i <= (int)kind; i++) {
        struct sigaction found;
        sigaction(places[i].signum, NULL, &found);
        if (!is_ours(&found)) {
            pthread_mutex_lock(&lock);
            install(&places[i]);
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
