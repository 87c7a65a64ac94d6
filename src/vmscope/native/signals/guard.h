/* Loads that may fault: from a file that its owner truncates, from memory that another thread gives back.
 *
 * While anything in the process reads under a guard, SIGBUS, and SIGSEGV where that is asked for, have a handler of vmscope's
 * that jumps out of the read of its own thread. Any other fault goes to whom it belongs: the handler that was there is
 * called as the kernel would call it, and the guard stays. */
#ifndef VMSCOPE_GUARD_H
#define VMSCOPE_GUARD_H

#include "compat.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    sigjmp_buf jump;
    uintptr_t start, end; /* a fault within is this read's */
} Guard;

extern VMSCOPE_THREAD_LOCAL __attribute__((visibility("hidden"))) Guard *volatile vmscope_current_guard;

typedef enum { GUARD_FILES, GUARD_MEMORY } GuardKind; /* SIGBUS; SIGBUS and SIGSEGV */

/* Between enter and leave this thread may load under a Guard. `mask` keeps the thread's signal mask: a fault that is
 * blocked ends the process, handler or not. */
void vmscope_guard_enter(GuardKind kind, sigset_t *mask);
void vmscope_guard_leave(GuardKind kind, const sigset_t *mask);

/* Between enter and leave, in a read that lasts: takes the place of a handler that was installed meanwhile. */
void vmscope_guard_renew(GuardKind kind);

/* sigaction for the fatal path: while the guard is up, what it puts back is looked at and changed. */
void vmscope_guard_action(int signum, const struct sigaction *action, struct sigaction *before);

/* if (sigsetjmp(guard.jump, 0) != 0) { vmscope_guard_clear(); return "it faulted"; }
 * vmscope_guard_set(...); the loads; vmscope_guard_clear(); */
static inline void
vmscope_guard_set(Guard *guard, uintptr_t start, uintptr_t end)
{
    guard->start = start;
    guard->end = end;
    vmscope_current_guard = guard;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void
vmscope_guard_clear(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    vmscope_current_guard = NULL;
}

#endif
