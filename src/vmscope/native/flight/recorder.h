/* The flight recorder: what its thread, the sampler and the types of events share. */
#ifndef VMSCOPE_FLIGHT_RECORDER_H
#define VMSCOPE_FLIGHT_RECORDER_H

#include "threads/thread.h" /* first: Python says which interfaces of the system are wanted */
#include "flight/repository.h"
#include "stacks/racy_snapshot.h"

#ifdef HAS_STACKS

/* Module names of files: the longest folder of sys.path that a file is in, taken off. */
typedef struct {
    char **folders; /* the longest first */
    size_t count;
} SearchPath;

/* One reader of stacks, and the methods of the current chunk that its codes are. */
typedef struct {
    Snapshot *snapshot;
    uint32_t *methods; /* by the number of a code: 0: not met yet */
    size_t room;
    uint64_t chunk; /* of which the methods are */
} StackSource;

typedef enum { RUNS, WAITS, WAITS_FOR_GIL } Activity;

#define LONGEST_PATH 256 /* bytes that are recorded of one */

/* What a thread does, as the kernel tells it. */
typedef struct {
    Activity activity;
    int state;               /* STATE_... */
    FlightType type;         /* of the JDK's event for such a wait; FLIGHT_TYPE_COUNT: there is none */
    uintptr_t address;       /* what it waits for, of a lock */
    char path[LONGEST_PATH]; /* of a file */
} Doing;

/* A thread as the sampler saw it last. */
typedef struct {
    uint64_t state_id;
    uintptr_t state;
    int64_t native_id;
    unsigned long ident;
    int64_t cpu;    /* ns that it had used */
    uint64_t round; /* in which it was listed */
    uint64_t chunk; /* of which these are: */
    uint32_t thread, stack;
    Doing doing;          /* when it was read last; where it waits: */
    int64_t since, began; /* what is not written yet of a wait; all of it */
    uint64_t since_round;
    int had_gil, in_condition; /* it is a Condition's wait() */
} Sampled;

typedef struct {
    Sampled *threads; /* by state_id: open addressing */
    size_t mask, count;
    GilSeen gil;    /* in the last round, */
    uint64_t chunk; /* and the chunk of it */
    uint64_t round;
    int64_t base;  /* the next deadline before its jitter */
    uint64_t seed; /* of the jitter */
    uint64_t late, lists_lost, stacks_lost;
    uintptr_t *busy; /* states that ran without the GIL in the last round */
    size_t busy_count, busy_room;
} StackSampler;

typedef struct {
    PyObject_HEAD Thread thread;
    pthread_mutex_t mutex; /* of all that follows but where said otherwise; never held across a system call */
    pthread_cond_t rotated;
    uint32_t types[FLIGHT_TYPE_COUNT];
    Chunk chunk;
    uint64_t chunk_number;
    Repository repository;
    uint64_t chunk_size; /* bytes */
    Bytes metadata;      /* the whole event */
    Bytes spare;         /* the thread's: events on their way to the file */
    int wanted, done;    /* rotations: asked for, and done */
    int recording;
    int64_t periods[FLIGHT_TYPE_COUNT];    /* ns between two samples; 0: off */
    int64_t period;                        /* the shortest of them */
    int64_t thresholds[FLIGHT_TYPE_COUNT]; /* of waits that are events of the JDK's, ns; -1: off */
    size_t depth;                          /* frames of a stack */
    SearchPath path;
    char *own_folder; /* of vmscope's Python code */
    StackSource sampled,
        current;          /* of all threads, the sampler's; of the thread that commits an event: under the GIL */
    StackSampler sampler; /* the thread's alone */
    uint64_t samples;     /* that were written */
} Recorder;

/* With the mutex: the number of a stack that a source has read, without vmscope's own frames; 0: there is none. */
uint32_t vmscope_flight_stack(Recorder *self, StackSource *source, const SnapshotThread *thread);

/* Whether a frame is of vmscope's own Python code: not the program's. */
int vmscope_flight_is_own(const Recorder *self, const StackSource *source, uint32_t place);

/* On the thread, without the mutex: one look at all threads; events of waits that lasted until now. */
void vmscope_flight_sample(Recorder *self, int64_t now);
void vmscope_flight_end_waits(Recorder *self, int64_t now, int64_t shortest);
void vmscope_flight_sampler_free(StackSampler *sampler);

/* What the thread does now, without the GIL. */
void vmscope_flight_look_at(int64_t native_id, Doing *out);

/* With the mutex: the event of a wait that has ended, if it lasted long enough. */
void vmscope_flight_put_wait(Recorder *self, const Sampled *thread, int64_t now);

PyObject *vmscope_flight_event_type(PyObject *module, PyObject *args);
PyObject *vmscope_flight_adopt(PyObject *recorder, PyObject *args);

/* Samples of allocations, of one recorder at a time: on and off, with the GIL; off, as the recorder goes; in a child. */
PyObject *vmscope_flight_sample_allocations(PyObject *recorder, PyObject *args);
void vmscope_flight_stop_allocations(Recorder *self);
void vmscope_flight_forked_allocations(Recorder *self);

#endif
#endif
