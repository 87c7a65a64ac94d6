/* All threads of an interpreter as of one moment, with what their frames are called: text and numbers alone. */
#ifndef VMSCOPE_SNAPSHOT_H
#define VMSCOPE_SNAPSHOT_H

#include "stacks/frame_names.h"

#include <signal.h>

#ifdef HAS_STACKS

typedef struct {
    State state;
    size_t begin, count; /* its frames, the innermost first */
    int cut;             /* there are more */
    int lost;            /* they changed whenever they were read */
} SnapshotThread;

typedef struct Snapshot {
    uintptr_t interpreter;
    size_t limit;            /* frames of one thread */
    SnapshotThread *threads; /* the newest first */
    SnapshotFrame *frames;
    size_t thread_count, frame_count;
    Names names;
    uint64_t reads, torn, faults; /* stacks that were read; those that were read again; reads that met no memory */

    size_t thread_size, frame_size, state_size;
    uintptr_t *states;
    Stack stack;
    sigset_t mask;
} Snapshot;

/* Nothing is in it yet. NULL without memory. */
Snapshot *vmscope_new_snapshot(void);
void vmscope_free_snapshot(Snapshot *self);

/* On any thread, without the GIL, this many frames of each thread at most; what was there before is forgotten, except the
 * names. 0 without memory. */
int vmscope_take_snapshot(Snapshot *self, PyInterpreterState *interpreter, size_t limit);

/* The same in parts. Between begin, which answers 0 without memory, and end: the addresses of all thread states into
 * `states`, `found` of them, 0 where the list changed whenever it was read; one of them; the stack of one thread, which is
 * added. The first and the last answer 0 without memory. */
int vmscope_begin_snapshot(Snapshot *self, PyInterpreterState *interpreter, size_t limit);
int vmscope_take_states(Snapshot *self, size_t *found);
int vmscope_see_state(Snapshot *self, uintptr_t address, State *out);
int vmscope_take_thread(Snapshot *self, uintptr_t state);
void vmscope_end_snapshot(Snapshot *self);

/* With the GIL, on a thread of this interpreter, without names; of the thread with this number, or, where that is 0, of
 * all. 0 without memory. */
int vmscope_copy_snapshot(Snapshot *self, PyInterpreterState *interpreter, size_t limit, uint64_t only);

/* Gives its frames their names, with the GIL, while the caller keeps their code objects. 0 without memory. */
int vmscope_name_snapshot(Snapshot *self);

/* Room for this many threads and frames before it is taken, its pages there. 0 without memory. */
int vmscope_reserve_snapshot(Snapshot *self, size_t threads, size_t frames);

#endif
#endif
