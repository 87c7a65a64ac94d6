/* The flight recorder: what its thread, the sampler and the types of events share. */
#ifndef VMSCOPE_FLIGHT_RECORDER_H
#define VMSCOPE_FLIGHT_RECORDER_H

#include "flight/repository.h"
#include "stacks/racy_snapshot.h"
#include "threads/thread.h"

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

typedef enum { NOT_WAITING, WAITS, WAITS_FOR_GIL } WaitKind;

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
    WaitKind kind;    /* it has waited with this stack */
    int state_number; /* of its waiting */
    int64_t since;
    uint64_t since_round;
    int runs; /* without the GIL, when it was seen last */
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
    int64_t periods[FLIGHT_TYPE_COUNT]; /* ns between two samples; 0: off */
    int64_t period;                     /* the shortest of them */
    size_t depth;                       /* frames of a stack */
    SearchPath path;
    char *own_folder;          /* of vmscope's Python code */
    PyTypeObject *event_types; /* NULL: there is none yet */
    StackSource sampled,
        current;          /* of all threads, the sampler's; of the thread that commits an event: under the GIL */
    StackSampler sampler; /* the thread's alone */
    uint64_t samples;     /* that were written */
} Recorder;

/* With the mutex: the number of a stack that a source has read; 0: there is none. */
uint32_t vmscope_flight_stack(Recorder *self, StackSource *source, const SnapshotThread *thread);

/* Whether a frame is of vmscope's own Python code: not the program's. */
int vmscope_flight_is_own(const Recorder *self, const StackSource *source, uint32_t place);

/* On the thread, without the mutex: one look at all threads; events of waits that lasted until now. */
void vmscope_flight_sample(Recorder *self, int64_t now);
void vmscope_flight_end_waits(Recorder *self, int64_t now, int64_t shortest);
void vmscope_flight_sampler_free(StackSampler *sampler);

PyObject *vmscope_flight_event_type(PyObject *recorder, PyObject *args);

#endif
#endif
