/* A file in the HPROF 1.0.2 format, as it is being written: records, and segments of a heap dump. */
#ifndef VMSCOPE_HPROF_H
#define VMSCOPE_HPROF_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int fd;
    uint8_t *bytes; /* HPROF_ROOM of them */
    size_t used;
    size_t segment;   /* where the one that is open begins in `bytes`; HPROF_NONE for none */
    uint64_t written; /* to the file */
    int error;        /* errno of what failed first; nothing is written after that */
} Hprof;

#define HPROF_ROOM ((size_t)1 << 20)
#define HPROF_NONE SIZE_MAX

enum { /* records */
       HPROF_UTF8 = 0x01,
       HPROF_LOAD_CLASS = 0x02,
       HPROF_FRAME = 0x04,
       HPROF_TRACE = 0x05,
       HPROF_SEGMENT = 0x1C,
       HPROF_END = 0x2C,
};

enum { /* records within a segment */
       HPROF_JNI_GLOBAL = 0x01,
       HPROF_JAVA_FRAME = 0x03,
       HPROF_STICKY_CLASS = 0x05,
       HPROF_THREAD = 0x08,
       HPROF_CLASS = 0x20,
       HPROF_INSTANCE = 0x21,
       HPROF_OBJECTS = 0x22,
       HPROF_PRIMITIVES = 0x23,
};

enum { /* types of fields and elements */
       HPROF_OBJECT = 2,
       HPROF_DOUBLE = 7,
       HPROF_BYTE = 8,
       HPROF_INT = 10,
       HPROF_LONG = 11,
};

int vmscope_hprof_open(Hprof *out, int fd); /* 0, or -1 when there is no memory */
int vmscope_hprof_close(Hprof *out);        /* ends the dump; 0, or -1 with `error` */
void vmscope_hprof_flush(Hprof *out);

/* A record of its own, whose body of `length` bytes follows. */
void vmscope_hprof_record(Hprof *out, int tag, uint32_t length);

/* A record of a segment, of `length` bytes, its tag included. */
void vmscope_hprof_part(Hprof *out, int tag, size_t length);

static inline void
vmscope_hprof_put(Hprof *out, uint64_t value, unsigned size)
{
    if (out->used + size > HPROF_ROOM) {
        vmscope_hprof_flush(out);
    }
    uint8_t *at = out->bytes + out->used;
    for (unsigned i = 0; i < size; i++) {
        at[i] = (uint8_t)(value >> 8 * (size - 1 - i));
    }
    out->used += size;
}

static inline void
vmscope_hprof_id(Hprof *out, uint64_t id)
{
    if (out->used + sizeof id > HPROF_ROOM) {
        vmscope_hprof_flush(out);
    }
    id = __builtin_bswap64(id);
    __builtin_memcpy(out->bytes + out->used, &id, sizeof id);
    out->used += sizeof id;
}

void vmscope_hprof_bytes(Hprof *out, const void *bytes, size_t length);

#endif
