/* One chunk of a recording: events, and the constants that they name. Nothing here knows Python; the caller has the
 * recorder's mutex. */
#ifndef VMSCOPE_FLIGHT_CHUNK_H
#define VMSCOPE_FLIGHT_CHUNK_H

#include "flight/pool.h"

/* The types that C writes, by their names in flight/types.py. A number that is 0: there is no such type. */
#define FLIGHT_TYPES(X)                                                                                                \
    X(EXECUTION_SAMPLE, "jdk.ExecutionSample")                                                                         \
    X(NATIVE_METHOD_SAMPLE, "jdk.NativeMethodSample")                                                                  \
    X(WAIT_SAMPLE, "vmscope.WaitSample")                                                                               \
    X(GIL_WAIT, "vmscope.GILWait")                                                                                     \
    X(ALLOCATION_SAMPLE, "jdk.ObjectAllocationSample")                                                                 \
    X(THREAD_SLEEP, "jdk.ThreadSleep")                                                                                 \
    X(MONITOR_ENTER, "jdk.JavaMonitorEnter")                                                                           \
    X(MONITOR_WAIT, "jdk.JavaMonitorWait")                                                                             \
    X(SOCKET_READ, "jdk.SocketRead")                                                                                   \
    X(SOCKET_WRITE, "jdk.SocketWrite")                                                                                 \
    X(FILE_READ, "jdk.FileRead")                                                                                       \
    X(FILE_WRITE, "jdk.FileWrite")                                                                                     \
    X(SAMPLER_STATISTICS, "vmscope.SamplerStatistics")                                                                 \
    X(DATA_LOSS, "jdk.DataLoss")                                                                                       \
    X(THREAD, "java.lang.Thread")                                                                                      \
    X(CLASS, "java.lang.Class")                                                                                        \
    X(STACK_TRACE, "jdk.types.StackTrace")                                                                             \
    X(METHOD, "jdk.types.Method")                                                                                      \
    X(SYMBOL, "jdk.types.Symbol")                                                                                      \
    X(PACKAGE, "jdk.types.Package")                                                                                    \
    X(FRAME_TYPE, "jdk.types.FrameType")                                                                               \
    X(THREAD_STATE, "jdk.types.ThreadState")

#define FLIGHT_IDENTIFIER(identifier, name) OF_##identifier,
typedef enum { FLIGHT_TYPES(FLIGHT_IDENTIFIER) FLIGHT_TYPE_COUNT } FlightType;

/* Keys of the two pools that are the same in every chunk. */
enum { FRAME_INTERPRETED = 1, FRAME_NATIVE };
enum { STATE_RUNNABLE = 1, STATE_SLEEPING, STATE_PARKED, STATE_IN_SYSTEM_CALL };

/* A thread that an event is of. */
typedef struct {
    uint64_t state_id; /* of its thread state, which no other gets */
    unsigned long ident;
    int64_t native_id;
    char *name; /* as threading calls it; NULL: not known */
    int used;   /* in this chunk */
    int ended;
} FlightThread;

typedef struct {
    Bytes events;
    uint64_t written; /* bytes of them that are in a file already */
    Pool symbols, packages, classes, methods, stacks;
    FlightThread *threads; /* their numbers begin with one, and stay */
    size_t thread_count, thread_room;
    int64_t start, start_time; /* ns of the monotonic clock, and since 1970 */
} Chunk;

/* Numbers of constants; 0: null, also where there is no memory. `class_name` has its parts separated by slashes. */
uint32_t vmscope_chunk_symbol(Chunk *self, const char *text, size_t length);
uint32_t vmscope_chunk_class(Chunk *self, const char *class_name, size_t length);

/* Of a function by its module, with dots, and its qualified name. */
uint32_t vmscope_chunk_method(Chunk *self, const char *module, const char *qualname);

/* A stack is put frame by frame into `row`, then interned. */
void vmscope_put_frame(Bytes *row, uint32_t method, int line, int offset, int type);
uint32_t vmscope_chunk_stack(Chunk *self, const Bytes *frames, size_t count, int truncated);

/* The number of a thread, which is marked as used. */
uint32_t vmscope_chunk_thread(Chunk *self, uint64_t state_id, unsigned long ident, int64_t native_id);

/* Of those that ended before the chunk began nothing is kept. */
void vmscope_chunk_clear(Chunk *self, int64_t now, int64_t time);
void vmscope_chunk_free(Chunk *self);

/* Bytes that it takes in a file, about. */
uint64_t vmscope_chunk_size(const Chunk *self);

/* What follows the events, a checkpoint with all constants and the metadata event, and what stands before them. */
void vmscope_put_checkpoint(const Chunk *self, const uint32_t *types, Bytes *to);

#define CHUNK_HEADER 68 /* bytes */

void
vmscope_put_header(const Chunk *self, int64_t now, uint64_t size, uint64_t checkpoint, uint64_t metadata, Bytes *to);

#endif
