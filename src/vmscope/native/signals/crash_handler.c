/* The fatal path: what the signals that end a process still do for its region.
 *
 * The image is brought up to date once more, saved where that was asked for, and the file's name taken
 * away; then the signal goes on, unchanged, to what was there before: faulthandler, a handler of the
 * program, or the default action with its core. All of it is async-signal-safe: no lock, no allocation,
 * and each wait has an end.
 *
 * A signal that was passed on is not taken again: whoever handles it may know better than we that the
 * process can go on. */
#define _GNU_SOURCE
#include "signals/problematic_frame.h"
#include "signals/guard.h"
#include "region/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ALTERNATE_STACK (64 << 10)
#define OTHERS_WAIT 1000 /* ms that a second crashing thread gives the first one to finish */

typedef enum {
    ABSENT,
    PRESENT, /* the handler, or below one that came later */
    ASIDE,   /* it passed a signal on */
} Place;

static struct {
    const int signum;
    _Atomic Place place;
    struct sigaction before;
} handlers[] = {{.signum = SIGSEGV}, {.signum = SIGBUS}, {.signum = SIGABRT}, {.signum = SIGFPE}, {.signum = SIGILL}};
#define HANDLERS (sizeof handlers / sizeof *handlers)

/* The mirror to save, a strong reference that belongs to whoever takes it out. The rest is written while
 * it is NULL. */
static _Atomic(Mirror *) armed;
static pid_t owner;                                   /* not a child that vmscope does not know */
static char file_path[PATH_MAX], save_path[PATH_MAX]; /* "": none */
static dev_t file_device;
static ino_t file_inode;
static int file_stays; /* what was counted goes to a service's totals: whoever adds it removes the file */

static int for_agents;       /* native agents are there: their crashes are reported, with or without a region */
static _Atomic pid_t worker; /* the thread that is at it */
static sigjmp_buf next_step;
static uint64_t scratch[TEXT_WORDS];

/* -- in the handler ------------------------------------------------------------------------------- */

static void
refresh_image(Mirror *mirror)
{
    vmscope_refresh_image(mirror, scratch);
}

static void
save_image(Mirror *mirror)
{
    if (save_path[0] != '\0') {
        (void)vmscope_save_image(mirror, save_path);
    }
}

static void
write_file(Mirror *mirror)
{
    struct stat status;
    int fd = open(file_path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (!mirror->direct && fstat(fd, &status) == 0 && status.st_dev == file_device && status.st_ino == file_inode &&
        (size_t)status.st_size >= mirror->used) {
        (void)vmscope_write_range(fd, mirror->image, 0, mirror->used);
    }
    (void)close(fd);
}

static void
end_file(Mirror *mirror)
{
    struct stat status;
    if (file_stays) {
        write_file(mirror);
        return;
    }
    if (file_path[0] != '\0' && lstat(file_path, &status) == 0 && status.st_dev == file_device &&
        status.st_ino == file_inode) {
        (void)unlink(file_path);
    }
}

static void
unlink_socket(Mirror *Py_UNUSED(mirror))
{
    vmscope_unlink_socket();
}

static void
finish_region(Mirror *mirror)
{
    static void (*const steps[])(Mirror *) = {refresh_image, save_image, end_file, unlink_socket};
    for (volatile size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (sigsetjmp(next_step, 0) == 0) { /* in a damaged heap a step may fault itself: then the next one */
            steps[i](mirror);
        }
    }
}

static void
wait_for_worker(void)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    for (int i = 0; i < OTHERS_WAIT && atomic_load(&worker) != 0; i++) {
        nanosleep(&millisecond, NULL);
    }
}

/* To what was there before, with the same siginfo and at the same instruction: once this handler has returned. */
static void
pass_on(int signum, siginfo_t *info, const struct sigaction *before)
{
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, signum);
    pthread_sigmask(SIG_BLOCK, &own, NULL); /* the return undoes it */
    sigaction(signum, before, NULL);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signum, info) != 0 && info->si_code <= 0) {
        raise(signum); /* a fault comes again by itself */
    }
}

/* What was sent to the process goes to its main thread, which held it back: on ours the program's handlers would find
 * none of its descriptors. Only a thread's own signals may be made up with any code, hence SI_QUEUE. */
static int
hand_over(int signum, const siginfo_t *info)
{
    siginfo_t copy = *info;
    copy.si_code = SI_QUEUE;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), signum, &copy) == 0;
}

/* The same for an end of the process that is not a fault. True where the region was there until now. */
int
vmscope_end_region(void)
{
    pid_t self = (pid_t)syscall(SYS_gettid), no_thread = 0;
    int ended = 0;
    if (getpid() != owner) {
        return 0;
    }
    if (atomic_compare_exchange_strong(&worker, &no_thread, self)) {
        Mirror *mirror = atomic_exchange(&armed, NULL);
        if (mirror != NULL) {
            finish_region(mirror);
            ended = 1;
        }
        atomic_store(&worker, 0);
    } else if (no_thread != self) {
        wait_for_worker();
    }
    return ended;
}

static void
on_fatal(int signum, siginfo_t *info, void *context)
{
    int saved_errno = errno, sent = info->si_code <= 0;
    size_t i = 0;
    while (handlers[i].signum != signum) {
        i++;
    }
    if (sent && !(handlers[i].before.sa_flags & SA_SIGINFO) && handlers[i].before.sa_handler == SIG_IGN) {
        return;
    }
    int raised = info->si_code == SI_TKILL && info->si_pid == getpid(); /* as abort() does: this thread's own */
    if (sent && !raised && vmscope_on_own_thread && hand_over(signum, info)) {
        return;
    }
    if (getpid() == owner) {
        pid_t self = (pid_t)syscall(SYS_gettid), no_thread = 0;
        if (atomic_compare_exchange_strong(&worker, &no_thread, self)) {
            Mirror *mirror = atomic_exchange(&armed, NULL);
            if (mirror != NULL) {
                finish_region(mirror);
            }
            atomic_store(&worker, 0);
        } else if (no_thread != self) {
            wait_for_worker();
        } else if (sent) {
            return;
        } else {
            siglongjmp(next_step, 1);
        }
        atomic_store(&handlers[i].place, ASIDE);
    }
    vmscope_name_problematic_frame(signum, info, context);
    pass_on(signum, info, &handlers[i].before);
    errno = saved_errno;
}

/* -- outside -------------------------------------------------------------------------------------- */

static int
is_function(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static int
is_own(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fatal;
}

static void
install_handlers(void)
{
    struct sigaction action = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < HANDLERS; i++) { /* a fault that is blocked would end the process at once */
        sigdelset(&action.sa_mask, handlers[i].signum);
    }
    for (size_t i = 0; i < HANDLERS; i++) {
        struct sigaction found;
        Place place = atomic_load(&handlers[i].place);
        vmscope_guard_action(handlers[i].signum, NULL, &found);
        /* One that came after ours may pass on to it: above that one we would be called again and again. */
        if (place == ABSENT || (place == PRESENT && !is_function(&found))) {
            handlers[i].before = found;
            atomic_store(&handlers[i].place, PRESENT);
            vmscope_guard_action(handlers[i].signum, &action, NULL);
        }
    }
}

static void
remove_handlers(void)
{
    for (size_t i = 0; i < HANDLERS; i++) {
        struct sigaction found;
        if (atomic_load(&handlers[i].place) == PRESENT) {
            vmscope_guard_action(handlers[i].signum, NULL, &found);
            if (is_own(&found)) {
                vmscope_guard_action(handlers[i].signum, &handlers[i].before, NULL);
                atomic_store(&handlers[i].place, ABSENT);
            }
        }
    }
}

/* So that the handler runs after a stack overflow of the main thread. Never freed: a handler that came
 * later may have taken note of it. */
static int
ensure_alternate_stack(void *Py_UNUSED(ignored))
{
    static char *stack;
    stack_t found;
    if (sigaltstack(NULL, &found) < 0 || !(found.ss_flags & SS_DISABLE)) {
        return 0;
    }
    if (stack == NULL) {
        void *memory = mmap(NULL, PAGE + ALTERNATE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return 0; /* without it only a stack overflow is missed */
        }
        (void)mprotect(memory, PAGE, PROT_NONE);
        stack = (char *)memory + PAGE;
    }
    (void)sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = ALTERNATE_STACK}, NULL);
    return 0;
}

static void
forget(void)
{
    Py_XDECREF(atomic_exchange(&armed, NULL));
}

static void
find_alternate_stack(void)
{
    if (syscall(SYS_gettid) == getpid()) {
        ensure_alternate_stack(NULL);
    } else {
        (void)Py_AddPendingCall(ensure_alternate_stack, NULL); /* the main thread does it, in a moment */
    }
}

void
vmscope_watch_agent_code(void)
{
    for_agents = 1;
    find_alternate_stack();
    install_handlers();
}

static PyObject *
arm(PyObject *module, PyObject *args)
{
    PyObject *object;
    const char *save;
    Py_ssize_t length;
    int stays = 0;
    NativeState *state = vmscope_state(module);
    if (!PyArg_ParseTuple(args, "O!y#|p:arm", state->mirror, &object, &save, &length, &stays)) {
        return NULL;
    }
    Mirror *mirror = (Mirror *)object;
    const char *path = mirror->path == NULL ? "" : mirror->path;
    if ((size_t)length >= sizeof save_path || strlen(path) >= sizeof file_path) {
        errno = ENAMETOOLONG;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    forget();
    strcpy(save_path, save);
    strcpy(file_path, path);
    file_stays = stays;
    file_device = mirror->device;
    file_inode = mirror->inode;
    owner = getpid();
    atomic_store(&worker, 0); /* in a forked child it may be one of the parent's */
    find_alternate_stack();
    atomic_store(&armed, (Mirror *)Py_NewRef(object));
    install_handlers();
    Py_RETURN_NONE;
}

static PyObject *
disarm(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (!for_agents) {
        remove_handlers();
    }
    forget();
    Py_RETURN_NONE;
}

static PyObject *
is_armed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(atomic_load(&armed) != NULL);
}

static PyObject *
end_region(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return PyBool_FromLong(vmscope_end_region());
}

static PyMethodDef fatal_functions[] = {
    {"arm", arm, METH_VARARGS,
     "arm(mirror, save, stays=False): from now on a fatal signal saves the image to `save` (b\"\": nowhere) and "
     "unlinks "
     "the file,\nor brings it up to date where it stays."},
    {"disarm", disarm, METH_NOARGS, "Puts back the handlers that were there before, where ours still stand."},
    {"end_region", (PyCFunction)(void (*)(void))end_region, METH_FASTCALL,
     "end_region(*ignored): does now what a fatal signal would do. True where there was something to do."},
    {"is_armed", is_armed, METH_NOARGS, "Whether a fatal signal will be acted on; no longer once one was."},
    {NULL},
};

/* What Python has not ended: C code has called exit(), or a signal handler has raised in an atexit function. */
static void
end_at_exit(void)
{
    (void)vmscope_end_region();
}

static void
watch_exit(void)
{
    (void)atexit(end_at_exit); /* where there is no room, another VM removes the file */
}

int
vmscope_add_crash_handler(PyObject *module)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_exit);
    return PyModule_AddFunctions(module, fatal_functions);
}
