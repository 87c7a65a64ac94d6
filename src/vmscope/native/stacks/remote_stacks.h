/* The stacks of another process's threads. */
#ifndef VMSCOPE_REMOTE_STACKS_H
#define VMSCOPE_REMOTE_STACKS_H

#define VMSCOPE_REMOTE
#include "stacks/frame_names.h"
#include "stacks/memory.h"

#ifdef HAS_REMOTE_STACKS

#define VMSCOPE_MOST_INTERPRETERS 64

/* One interpreter, and its GIL as it was seen last. */
typedef struct {
    uintptr_t address, gil, holder;
    unsigned long switches;
    int locked, moved; /* since it was seen before */
} RemoteInterpreter;

/* One thread, and its stack as it was read last. */
typedef struct {
    State state;
    size_t interpreter; /* its place among these */
    long task;          /* its number as /proc has it; 0: it has ended */
    int task_file;      /* of /proc, -1: none */
    uint32_t number;    /* which no other thread gets */
    RemotePiece *chunks;
    size_t chunk_count, chunk_size;
    uintptr_t top;       /* of the innermost chunk's frames */
    RemotePiece *others; /* frames that are in no chunk: generators', and those of C */
    size_t other_count, other_size;
    SnapshotFrame *frames; /* the innermost first */
    size_t frame_count, frame_size;
    int known, cut; /* it was read; there are more frames */
    int fresh;      /* and not looked at in /proc since */
    char runs;      /* R or S, when it was looked at last */
    size_t row[4];  /* where the profile counts it, one more than that; 0: not yet */
} RemoteThread;

typedef struct {
    RemoteLayout layout;
    RemoteMemory memory;
    pid_t pid;
    int proc, ended, namespaced; /* descriptors of /proc/PID/task and of the process; its pids are others than ours */
    RemoteInterpreter interpreters[VMSCOPE_MOST_INTERPRETERS];
    size_t interpreter_count;
    RemoteThread *threads; /* interpreter by interpreter, the newest first */
    size_t thread_count, thread_size;
    uint32_t numbers;
    Stack stack;
    Names names;
    size_t limit; /* frames of one thread */
    uintptr_t *addresses;
    size_t address_size;
    uint64_t reads, torn, lost, rounds;
} RemoteProcess;

typedef enum {
    ROUND_READ,
    ROUND_TORN,      /* the list of threads changed whenever it was read */
    ROUND_GONE,      /* the process has ended, or is another program now */
    ROUND_NO_MEMORY, /* for vmscope itself */
} RoundOutcome;

/* Of this process; 0 without memory. Its descriptors are whoever's calls. */
int vmscope_open_process(RemoteProcess *self, size_t limit);
void vmscope_close_process(RemoteProcess *self);

/* Reads the stacks of those threads that may have changed, or of all. Without the GIL. */
RoundOutcome vmscope_read_round(RemoteProcess *self, int all);

/* Whether the thread has the GIL of its interpreter. */
int vmscope_holds_gil(const RemoteProcess *self, const RemoteThread *thread);

/* Its state as /proc has it, a letter; '?' where that is not known. */
char vmscope_task_state(RemoteProcess *self, RemoteThread *thread);

/* R or S: whether it runs. This is cheaper. */
char vmscope_task_runs(RemoteProcess *self, RemoteThread *thread);

#endif
#endif
