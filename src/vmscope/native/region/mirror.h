/* The mirror's state, and what its thread (mirror_thread.c) offers to its Python face (mirror.c). */
#ifndef VMSCOPE_MIRROR_H
#define VMSCOPE_MIRROR_H

#include "threads/thread.h"

#include <signal.h>
#include <sys/types.h>

/* wire/layout.py has the whole prologue */
#define PROLOGUE_SIZE 32
#define PROLOGUE_USED 8
#define PROLOGUE_OVERFLOW 12
#define PROLOGUE_MOD_TIME_STAMP 16
#define PROLOGUE_NUM_ENTRIES 28

#define ENTRY_HEADER 20
#define MAX_GROWTHS 99

#define PAGE 4096
#define CHUNK 128
#define IDLE_INTERVAL 500000000 /* ns: two visits a second while nothing changes */
#define TEXT_WORDS (VMSCOPE_MAX_TEXT / 8 + 1)

typedef struct {
    PyObject *slot;         /* a strong reference, kept until the mirror goes */
    _Atomic int64_t *value; /* in the slot; NULL: it is a text */
    uint32_t offset;
    uint32_t sequence; /* of the text that the image has */
} Binding;

typedef struct Chunk {
    Binding bindings[CHUNK];
    struct Chunk *next;
} Chunk;

typedef struct {
    PyObject_HEAD unsigned char *image;
    size_t capacity; /* under the thread's mutex, as it grows: up to `limit`, which is reserved from the start */
    size_t limit;
    int growths;
    int64_t epoch;   /* CLOCK_MONOTONIC ns from which the clock and the time stamps count */
    LongSlot *clock; /* a bound slot that shows the ns since then, even numbers only */
    uint32_t clock_offset;
    _Atomic int texts; /* some were copied into the image since the file was last written */

    /* Append-only, so that it is walked without a lock; `count` is written last. */
    Chunk *first, *last;
    _Atomic size_t count;
    _Atomic unsigned char *dirty; /* a byte for each page of the image that the file lacks */

    Thread thread;    /* its error is the last one on the file */
    uint32_t used;    /* where the next entry goes; under the thread's mutex, with the prologue in the image */
    int64_t interval; /* ns */

    /* The file, and what of the image it has: the thread's own while it runs. */
    char *path;
    dev_t device;
    ino_t inode;
    int fd;
    int direct;       /* the image is the file itself, mapped: nothing is written to it */
    dev_t tmp_device; /* the folder that the file's folder is in, as the thread found it */
    ino_t tmp_inode;
    int64_t names_at;   /* CLOCK_MONOTONIC, ns, at which the names are looked at again */
    nlink_t links;      /* that the file had when it was opened; a file system may not count them */
    int lost, reported; /* it was removed or cut short; `on_loss` was called */
    PyObject *on_loss;  /* or NULL */
    size_t extent;      /* of the file */
    uint32_t published;
    unsigned char prologue[PROLOGUE_SIZE];
    uint64_t scratch[TEXT_WORDS], save_scratch[TEXT_WORDS];

    _Atomic uint64_t visits, writes;
} Mirror;

/* Copies what changed from the slots into the image; true when more than the clock did. */
int vmscope_refresh_image(Mirror *self, uint64_t *scratch);

/* write(2) until all is written; 0, or -1 with errno. */
int vmscope_write_range(int fd, const unsigned char *from, size_t offset, size_t length);

/* Writes the image to a file of its own, async-signal-safely: 0, or an errno. */
int vmscope_save_image(Mirror *self, const char *path);

/* What the mirror's thread does, until it has to stop. */
void vmscope_mirror_body(PyObject *mirror);

#endif
