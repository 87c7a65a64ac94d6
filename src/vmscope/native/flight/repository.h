/* Where the chunks of a recording are: files of a folder, or memory. Nothing here knows Python. All of it but the list of
 * finished chunks is for the recorder's thread alone, which has a table of descriptors of its own. */
#ifndef VMSCOPE_FLIGHT_REPOSITORY_H
#define VMSCOPE_FLIGHT_REPOSITORY_H

#include "flight/chunk.h"

#include <pthread.h>

typedef struct {
    char name[24];       /* in the folder */
    unsigned char *data; /* or in memory; else NULL */
    uint64_t size;
    int64_t begin, end; /* ns since 1970 */
} FinishedChunk;

typedef struct {
    char *path;              /* of the folder; NULL: chunks stay in memory */
    int folder, file;        /* descriptors; -1: not open */
    uint64_t number;         /* of the current chunk */
    uint64_t max_size;       /* of all finished chunks, bytes; 0: no limit */
    int64_t max_age;         /* ns; 0: no limit */
    pthread_mutex_t mutex;   /* of the list */
    FinishedChunk *finished; /* the oldest first */
    size_t count, room;
    uint64_t total; /* bytes of the finished ones */
    uint64_t lost;  /* bytes of events for which there was no room, since they were last asked for */
    uint64_t lost_total;
    int error;      /* errno of the last failure */
    int discarding; /* the current chunk is lost */
} Repository;

/* On the thread: opens what a fork has taken. */
void vmscope_repository_open(Repository *self);
void vmscope_repository_close(Repository *self);

/* Events of the current chunk, in this order. */
void vmscope_repository_append(Repository *self, Chunk *chunk, Bytes *events);

/* `tail` is the checkpoint, with the metadata event from `metadata` on. Its name or data, for the list. 0: it is lost. */
int vmscope_repository_finish(Repository *self, Chunk *chunk, const Bytes *tail, size_t metadata, int64_t now,
                              int64_t time, FinishedChunk *out);

/* The list. A chunk for which there is no memory is not added: 0. Those that are too many or too old are taken out of it,
 * with their files. */
int vmscope_repository_add(Repository *self, FinishedChunk chunk);
void vmscope_repository_remove(Repository *self, size_t count);
void vmscope_repository_expire(Repository *self, int64_t time);
void vmscope_repository_free(Repository *self);

#endif
