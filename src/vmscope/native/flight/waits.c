/* What threads wait for: by the system call that the kernel says they are in, and the function that made it. */
#define _GNU_SOURCE
#include "flight/recorder.h"

#ifdef HAS_STACKS

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCK_CLASS "_thread/lock"
#define CONDITION_CLASS "threading/Condition"
#define SOCKET_LINK "socket:"

/* The system calls in which the programs of Python wait, and the events that a JVM has for them. */
static const struct {
    long call;
    int state;
    FlightType type;
} calls[] = {
    {SYS_futex, STATE_PARKED, OF_MONITOR_ENTER},          {SYS_clock_nanosleep, STATE_SLEEPING, OF_THREAD_SLEEP},
#ifdef SYS_nanosleep
    {SYS_nanosleep, STATE_SLEEPING, OF_THREAD_SLEEP},
#endif
    {SYS_read, STATE_IN_SYSTEM_CALL, OF_FILE_READ},       {SYS_pread64, STATE_IN_SYSTEM_CALL, OF_FILE_READ},
    {SYS_write, STATE_IN_SYSTEM_CALL, OF_FILE_WRITE},     {SYS_pwrite64, STATE_IN_SYSTEM_CALL, OF_FILE_WRITE},
    {SYS_recvfrom, STATE_IN_SYSTEM_CALL, OF_SOCKET_READ}, {SYS_recvmsg, STATE_IN_SYSTEM_CALL, OF_SOCKET_READ},
    {SYS_sendto, STATE_IN_SYSTEM_CALL, OF_SOCKET_WRITE},  {SYS_sendmsg, STATE_IN_SYSTEM_CALL, OF_SOCKET_WRITE},
};

/* Of a descriptor: the path of its file. A socket that is read as one is a socket. */
static void
find_file(int64_t native_id, unsigned long descriptor, Doing *out)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/task/%lld/fd/%lu", (long long)native_id, descriptor);
    ssize_t length = readlink(link, out->path, sizeof out->path - 1);
    out->path[length < 0 ? 0 : length] = '\0';
    if (strncmp(out->path, SOCKET_LINK, strlen(SOCKET_LINK)) == 0) {
        out->type = out->type == OF_FILE_READ ? OF_SOCKET_READ : OF_SOCKET_WRITE;
    }
}

void
vmscope_flight_look_at(int64_t native_id, Doing *out)
{
    char path[64], text[128];
    long call = -1;
    unsigned long first = 0;
    snprintf(path, sizeof path, "/proc/self/task/%lld/syscall", (long long)native_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    text[length < 0 ? 0 : length] = '\0';
    *out = (Doing){.activity = WAITS, .state = STATE_IN_SYSTEM_CALL, .type = FLIGHT_TYPE_COUNT};
    if (text[0] == '\0') { /* the kernel does not tell, or the thread has ended */
        return;
    }
    if (sscanf(text, "%ld 0x%lx", &call, &first) < 1 || call < 0) { /* "running"; -1: a page fault */
        out->activity = RUNS;
        out->state = STATE_RUNNABLE;
        return;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].call == call) {
            out->state = calls[i].state;
            out->type = calls[i].type;
        }
    }
    if (call == SYS_futex) {
        out->address = (uintptr_t)first;
        out->activity = vmscope_is_in_gil(out->address) ? WAITS_FOR_GIL : WAITS;
    } else if (out->type == OF_FILE_READ || out->type == OF_FILE_WRITE) {
        find_file(native_id, first, out);
    }
}

/* What such an event has behind its stack. */
static void
put_fields(Recorder *self, Bytes *to, FlightType type, const Sampled *thread, int64_t duration)
{
    Chunk *chunk = &self->chunk;
    switch (type) {
    case OF_THREAD_SLEEP:
        put_number(to, (uint64_t)duration);
        break;
    case OF_MONITOR_ENTER:
        put_number(to, vmscope_chunk_class(chunk, LOCK_CLASS, strlen(LOCK_CLASS)));
        put_number(to, 0); /* whose it was */
        put_number(to, thread->doing.address);
        break;
    case OF_MONITOR_WAIT:
        put_number(to, vmscope_chunk_class(chunk, CONDITION_CLASS, strlen(CONDITION_CLASS)));
        put_number(to, 0); /* who ended it */
        put_number(to, 0); /* its limit: not known */
        put_byte(to, 0);
        put_number(to, thread->doing.address);
        break;
    case OF_SOCKET_READ:
    case OF_SOCKET_WRITE:
        put_string(to, NULL, 0); /* host, address, port: not known */
        put_string(to, NULL, 0);
        put_number(to, 0);
        if (type == OF_SOCKET_READ) {
            put_number(to, 0); /* its limit */
        }
        put_number(to, 0); /* bytes: not known */
        if (type == OF_SOCKET_READ) {
            put_byte(to, 0);
        }
        break;
    default:
        put_string(to, thread->doing.path, strlen(thread->doing.path));
        put_number(to, 0); /* bytes: not known */
        if (type == OF_FILE_READ) {
            put_byte(to, 0);
        }
    }
}

void
vmscope_flight_put_wait(Recorder *self, const Sampled *thread, int64_t now)
{
    FlightType type = thread->doing.type;
    Bytes *events = &self->chunk.events;
    int64_t duration = now - thread->began;
    if (type == OF_MONITOR_ENTER && thread->in_condition) {
        type = OF_MONITOR_WAIT;
    }
    if (thread->doing.activity != WAITS || type == FLIGHT_TYPE_COUNT || self->types[type] == 0 ||
        self->thresholds[type] < 0 || duration < self->thresholds[type]) {
        return;
    }
    size_t at = begin_event(events, self->types[type]);
    put_number(events, (uint64_t)thread->began);
    put_number(events, (uint64_t)duration);
    put_number(events, thread->thread);
    put_number(events, thread->stack);
    put_fields(self, events, type, thread, duration);
    end_event(events, at);
}

#endif
