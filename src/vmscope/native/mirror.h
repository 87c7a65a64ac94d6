/* The mirror's state, and what its thread (carrier.c) offers to its Python face (mirror.c). */
#ifndef VMSCOPE_MIRROR_H
#define VMSCOPE_MIRROR_H

#include "native.h"

#include <pthread.h>
#include <sys/types.h>

/* wire/layout.py has the whole prologue */
#define PROLOGUE_SIZE 32
#define PROLOGUE_USED 8
#define PROLOGUE_OVERFLOW 12
#define PROLOGUE_MOD_TIME_STAMP 16
#define PROLOGUE_NUM_ENTRIES 28

#define PAGE 4096
#define CHUNK 128
#define IDLE_INTERVAL 500000000 /* ns: two visits a second while nothing changes */
#define THREAD_STACK (1 << 20)
#define FORK_TIMEOUT 50000000 /* ns: how long a thread stuck on a frozen disk may hold up a fork */
#define TEXT_WORDS (VMSCOPE_MAX_TEXT / 8 + 1)

typedef struct {
    PyObject *slot; /* a strong reference, kept until the mirror goes */
    uint32_t offset;
    uint32_t sequence; /* of the text that the image has */
    int is_text;
} Binding;

typedef struct Chunk {
    Binding bindings[CHUNK];
    struct Chunk *next;
} Chunk;

typedef struct {
    PyObject_HEAD
    unsigned char *image;
    size_t capacity;
    int64_t epoch;   /* CLOCK_MONOTONIC ns from which the clock and the time stamps count */
    LongSlot *clock; /* a bound slot that shows the ns since then */

    /* Append-only, so that it is walked without a lock; `count` is written last. */
    Chunk *first, *last;
    _Atomic size_t count;
    _Atomic unsigned char *dirty; /* a byte for each page of the image that the file lacks */

    pthread_mutex_t mutex; /* held for some instructions only, never across a system call */
    pthread_cond_t wake;
    uint32_t used; /* where the next entry goes; under the mutex, with the prologue in the image */

    /* The thread's state, under the mutex. */
    pthread_t thread;
    int joinable, running, stopping, kicked;
    int paused;              /* forks under way; under the GIL */
    int64_t interval, delay; /* ns; delay: before the first visit */
    PyObject *on_start;      /* called once, with the GIL, before the first visit */

    /* The file, and what of the image it has: the thread's own while it runs. */
    char *path;
    dev_t device;
    ino_t inode;
    int fd;
    uint32_t published;
    unsigned char prologue[PROLOGUE_SIZE];
    uint64_t scratch[TEXT_WORDS], save_scratch[TEXT_WORDS];

    _Atomic uint64_t visits, writes;
    _Atomic int error; /* errno of the last failure on the file */
} Mirror;

/* The process's one running mirror, a strong reference: what fork looks at. */
extern _Atomic(Mirror *) vmscope_active_mirror;

int64_t vmscope_now(void); /* CLOCK_MONOTONIC, ns */

/* Copies what changed from the slots into the image; true when more than the clock did. */
int vmscope_refresh_image(Mirror *self, uint64_t *scratch);

/* write(2) until all is written; 0, or -1 with errno. */
int vmscope_write_range(int fd, const unsigned char *from, size_t offset, size_t length);

/* Mutex, condition and flags of a mirror without a thread or a file. */
void vmscope_init_thread(Mirror *self);

/* Starts the thread, or keeps one that was told to stop and has not yet; 0, or an errno. */
int vmscope_start_thread(Mirror *self);

/* Asks the thread for a last copy and waits for its end, `timeout` ns at most; true when it has ended. */
int vmscope_stop_thread(Mirror *self, int64_t timeout);

/* With the mutex held: there is something new, make a visit now. */
void vmscope_kick_thread(Mirror *self);

#endif
