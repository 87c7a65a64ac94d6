/* Thread dumps without the GIL, for a client that would otherwise wait until a call in C gives it back: the stacks, and
 * what the kernel knows. Which locks there are, and how Python calls its threads, only the interpreter can tell. */
#define _GNU_SOURCE
#include "stacks/thread_dump.h"

#include "stacks/racy_snapshot.h"

#if defined(HAS_STACKS) && defined(__linux__)

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_FRAMES 1024            /* of one thread, as tool/model/thread_snapshot.py has it */
#define GIL_PATIENCE 100000000      /* ns for which a dump waits while one thread keeps the GIL, */
#define LONGEST_PATIENCE 2000000000 /* and in any case: with many threads that want it, its turn comes late */

ThreadDump *
vmscope_take_dump(void)
{
    struct timespec running;
    PyInterpreterState *interpreter = PyInterpreterState_Main();
    ThreadDump *self = interpreter == NULL ? NULL : calloc(1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->snapshot = vmscope_new_snapshot();
    if (self->snapshot == NULL || !vmscope_take_snapshot(self->snapshot, interpreter, MOST_FRAMES) ||
        !vmscope_read_os_threads(&self->os_threads)) {
        vmscope_free_dump(self);
        return NULL;
    }
    self->taken = time(NULL);
    clock_gettime(CLOCK_BOOTTIME, &running);
    self->running = (double)running.tv_sec + (double)running.tv_nsec / 1e9;
    return self;
}

/* A thread that keeps the GIL is seen in it unchanged; where others come and go, it will come. */
int
vmscope_dump_is_late(ThreadDump *self, int64_t now, int64_t *wait)
{
    GilSeen gil = vmscope_see_gil();
    if (self->asked == 0) {
        self->asked = now;
    }
    if (self->kept == 0 || gil.holder == 0 || gil.holder != self->holder || gil.switches != self->switches) {
        self->kept = now;
        self->holder = gil.holder;
        self->switches = gil.switches;
    }
    int64_t left = self->kept + GIL_PATIENCE - now, until = self->asked + LONGEST_PATIENCE - now;
    *wait = left < until ? left : until;
    return *wait <= 0;
}

void
vmscope_free_dump(ThreadDump *self)
{
    if (self != NULL) {
        vmscope_free_snapshot(self->snapshot);
        vmscope_free_os_threads(&self->os_threads);
        free(self);
    }
}

/* -- text ----------------------------------------------------------------------------------------- */

typedef struct {
    char *bytes;
    size_t length, room;
    int failed;
} Text;

static void
put_bytes(Text *text, const char *bytes, size_t length)
{
    if (text->failed) {
        return;
    }
    if (text->room - text->length < length) {
        size_t room = 2 * text->room + length + 4096;
        char *moved = realloc(text->bytes, room);
        if (moved == NULL) {
            text->failed = 1;
            return;
        }
        text->bytes = moved;
        text->room = room;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static __attribute__((format(printf, 2, 3))) void
put(Text *text, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    put_bytes(text, line, length < (int)sizeof line ? (size_t)length : sizeof line - 1);
}

/* One character of UTF-8, or a byte that is not; how many bytes it takes. */
static size_t
take_character(const unsigned char *from, size_t left, uint32_t *character)
{
    size_t more = *from >= 0xF0 ? 3 : *from >= 0xE0 ? 2 : *from >= 0xC0 ? 1 : 0;
    *character = *from;
    if (more == 0 || more >= left) {
        return 1;
    }
    uint32_t value = *from & (0x3Fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((from[i] & 0xC0) != 0x80) {
            return 1;
        }
        value = value << 6 | (from[i] & 63);
    }
    *character = value;
    return more + 1;
}

/* Text that cannot steer a terminal: what is not ASCII is escaped as in Python source. */
static void
put_escaped(Text *text, const char *from, size_t length)
{
    for (size_t i = 0; i < length;) {
        uint32_t character;
        i += take_character((const unsigned char *)from + i, length - i, &character);
        if (character >= ' ' && character < 127) {
            put_bytes(text, (const char[]){(char)character}, 1);
        } else {
            put(text, character < 0x100 ? "\\x%02x" : character < 0x10000 ? "\\u%04x" : "\\U%08x", character);
        }
    }
}

/* -- one thread ----------------------------------------------------------------------------------- */

typedef struct {
    const char *header, *state;
} Activity;

static const Activity runnable = {"runnable", "RUNNABLE"},
                      sleeping = {"waiting on condition", "TIMED_WAITING (sleeping)"},
                      waiting = {"waiting on condition", "WAITING (parking)"},
                      limited = {"waiting on condition", "TIMED_WAITING (parking)"};

/* By the system call that it is in. */
static Activity
activity_of(const OsThread *task)
{
    unsigned long address, timeout;
    long call;
    if (task == NULL || sscanf(task->call, "%ld %lx %*x %*x %lx", &call, &address, &timeout) != 3) {
        return runnable;
    }
#ifdef SYS_nanosleep
    if (call == SYS_nanosleep) {
        return sleeping;
    }
#endif
    if (call == SYS_clock_nanosleep) {
        return sleeping;
    }
    if (call != SYS_futex || address - (uintptr_t)&_PyRuntime < sizeof _PyRuntime) { /* it waits for the GIL */
        return runnable;
    }
    return timeout != 0 ? limited : waiting;
}

/* The page of its stack that it is in, where it waits in the kernel. */
static unsigned long
stack_page(const OsThread *task)
{
    unsigned long pointer = 0;
    if (task != NULL) {
        (void)sscanf(task->call, "%*d %*x %*x %*x %*x %*x %*x %lx", &pointer);
    }
    return pointer & ~0xFFFul;
}

static const OsThread *
find_task(const ThreadDump *self, unsigned long native_id)
{
    for (size_t i = 0; i < self->os_threads.count; i++) {
        if ((unsigned long)self->os_threads.rows[i].id == native_id) {
            return &self->os_threads.rows[i];
        }
    }
    return NULL;
}

static int
is_main(const OsThread *task)
{
    return task != NULL && task->id == getpid();
}

/* A thread of vmscope's, by the name that thread.c has given to it. */
static int
is_own(const OsThread *task)
{
    return task != NULL && strstr(task->stat, "(vmscope ") != NULL;
}

/* What the kernel calls it; Python's own names cannot be read. */
static void
put_name(Text *text, const OsThread *task)
{
    const char *begin = task == NULL ? NULL : strchr(task->stat, '('),
               *end = begin == NULL ? NULL : strrchr(begin, ')');
    put(text, "\"");
    if (is_main(task)) {
        put(text, "MainThread");
    } else if (end != NULL) {
        put_escaped(text, begin + 1, (size_t)(end - begin - 1));
    }
    put(text, "\"");
}

static void
put_times(Text *text, const ThreadDump *self, const OsThread *task)
{
    const char *rest = task == NULL ? NULL : strrchr(task->stat, ')');
    long nice = 0;
    unsigned long long start = 0;
    double elapsed = 0.0, cpu = task == NULL || task->cpu < 0 ? 0.0 : (double)task->cpu / 1e6;
    if (rest != NULL &&
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %ld %*d %*d %llu", &nice,
               &start) == 2) {
        elapsed = self->running - (double)start / (double)sysconf(_SC_CLK_TCK);
    }
    put(text, "os_prio=%ld cpu=%.2fms elapsed=%.2fs", nice, cpu, elapsed > 0 ? elapsed : 0.0);
}

/* `module.function(file:line)`: the module by its file, as sys.modules is out of reach. */
static void
put_frame(Text *text, const Names *names, uint32_t place)
{
    const char *path = vmscope_filename(names, place), *slash = strrchr(path, '/');
    const char *file = slash == NULL ? path : slash + 1, *function = vmscope_qualname(names, place);
    const char *module = file;
    size_t length = strlen(file), module_length = length;
    if (strncmp(path, "<frozen ", 8) == 0) {
        module = path + 8;
        module_length = strlen(module);
    } else if (length > 3 && strcmp(file + length - 3, ".py") == 0) {
        module_length -= 3;
    }
    while (module_length > 0 && *module == '<') {
        module++;
        module_length--;
    }
    while (module_length > 0 && module[module_length - 1] == '>') {
        module_length--;
    }
    put(text, "\tat ");
    put_escaped(text, module, module_length);
    put(text, ".");
    put_escaped(text, function, strlen(function));
    put(text, "(");
    put_escaped(text, file, length);
    put(text, ":%d)\n", names->places[place].line);
}

static void
put_thread(Text *text, const ThreadDump *self, const SnapshotThread *thread)
{
    const OsThread *task = find_task(self, thread->state.native_id);
    Activity activity = activity_of(task);
    put_name(text, task);
    put(text, " #%llu %sprio=5 ", (unsigned long long)thread->state.id, is_main(task) ? "" : "daemon ");
    put_times(text, self, task);
    put(text, " tid=0x%016lx nid=0x%lx %s  [0x%016lx]\n   java.lang.Thread.State: %s\n", thread->state.ident,
        thread->state.native_id, activity.header, stack_page(task), activity.state);
    for (size_t i = 0; i < thread->count; i++) {
        put_frame(text, &self->snapshot->names, self->snapshot->frames[thread->begin + i].place);
    }
    if (thread->lost) {
        put(text, "\t<no stack: it changed whenever it was read>\n");
    } else if (thread->cut) {
        put(text, "\t...\n");
    }
    put(text, "\n");
}

/* -- all of it ------------------------------------------------------------------------------------ */

static void
put_head(Text *text, const ThreadDump *self)
{
    char when[32];
    struct tm local;
    const char *version = Py_GetVersion();
    const SnapshotThread *holder = NULL;
    uintptr_t state = vmscope_see_gil().holder;
    for (size_t i = 0; state != 0 && i < self->snapshot->thread_count; i++) {
        const SnapshotThread *thread = &self->snapshot->threads[i];
        holder = thread->state.address == state ? thread : holder;
    }
    localtime_r(&self->taken, &local);
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    put(text, "%s\nFull thread dump CPython %d-Bit VM (%.*s interpreted mode):\n\nTaken without the GIL", when,
        8 * (int)sizeof(void *), (int)strcspn(version, " "), version);
    if (holder != NULL) {
        put(text, ", which ");
        put_name(text, find_task(self, holder->state.native_id));
        put(text, " #%llu keeps", (unsigned long long)holder->state.id);
    }
    put(text, ": locks, deadlocks and Python's names of threads are not known.\n\n");
}

/* Whether the thread has Python code to show. */
static int
is_shown(const ThreadDump *self, const SnapshotThread *thread)
{
    return (thread->count > 0 || thread->lost) && !is_own(find_task(self, thread->state.native_id));
}

/* A native thread that runs no Python code. */
static void
put_os_thread(Text *text, const ThreadDump *self, const OsThread *task)
{
    const char *rest = strrchr(task->stat, ')');
    for (size_t i = 0; i < self->snapshot->thread_count; i++) {
        const SnapshotThread *thread = &self->snapshot->threads[i];
        if (thread->state.native_id == (unsigned long)task->id && is_shown(self, thread)) {
            return;
        }
    }
    if (rest == NULL || is_own(task)) { /* it has ended; it is ours */
        return;
    }
    put_name(text, task);
    put(text, " ");
    put_times(text, self, task);
    put(text, " tid=0x%016lx nid=0x%lx %s  \n\n", task->id, task->id,
        strncmp(rest, ") R", 3) == 0 ? "runnable" : "waiting on condition");
}

char *
vmscope_write_dump(const ThreadDump *self, size_t *length)
{
    const Snapshot *snapshot = self->snapshot;
    Text text = {0};
    put_head(&text, self);
    for (size_t i = snapshot->thread_count; i > 0; i--) { /* the oldest first */
        if (is_shown(self, &snapshot->threads[i - 1])) {
            put_thread(&text, self, &snapshot->threads[i - 1]);
        }
    }
    for (size_t i = 0; i < self->os_threads.count; i++) {
        put_os_thread(&text, self, &self->os_threads.rows[i]);
    }
    *length = text.length;
    if (text.failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}

#else

ThreadDump *
vmscope_take_dump(void)
{
    return NULL;
}

void
vmscope_free_dump(ThreadDump *self)
{
    (void)self;
}

int
vmscope_dump_is_late(ThreadDump *self, int64_t now, int64_t *wait)
{
    (void)self, (void)now, (void)wait;
    return 0;
}

char *
vmscope_write_dump(const ThreadDump *self, size_t *length)
{
    (void)self;
    *length = 0;
    return NULL;
}

#endif
