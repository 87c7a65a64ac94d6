/* Writing a file in the HPROF format. It knows no Python. */
#include "native.h"

#ifndef Py_GIL_DISABLED
#include "heap/hprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HEADER 9 /* of a record: tag, time, length */

int
vmscope_hprof_open(Hprof *out, int fd)
{
    static const char version[] = "JAVA PROFILE 1.0.2"; /* with its NUL */
    *out = (Hprof){.fd = fd, .segment = HPROF_NONE, .bytes = malloc(HPROF_ROOM)};
    if (out->bytes == NULL) {
        return -1;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    vmscope_hprof_bytes(out, version, sizeof version);
    vmscope_hprof_put(out, sizeof(uint64_t), 4); /* the size of an id */
    vmscope_hprof_put(out, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, 8);
    return 0;
}

static void
store(uint8_t *at, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(at, &value, sizeof value);
}

/* The length of the open segment is known now. */
static void
end_segment(Hprof *out)
{
    if (out->segment != HPROF_NONE) {
        store(out->bytes + out->segment + HEADER - 4, (uint32_t)(out->used - out->segment - HEADER));
        out->segment = HPROF_NONE;
    }
}

void
vmscope_hprof_flush(Hprof *out)
{
    size_t done = 0;
    while (out->error == 0 && done < out->used) {
        ssize_t count = write(out->fd, out->bytes + done, out->used - done);
        if (count >= 0) {
            done += (size_t)count;
        } else if (errno != EINTR) {
            out->error = errno;
        }
    }
    out->written += done;
    out->used = 0;
}

static void
put_header(Hprof *out, int tag, uint32_t length)
{
    vmscope_hprof_put(out, (uint64_t)tag, 1);
    vmscope_hprof_put(out, 0, 4);
    vmscope_hprof_put(out, length, 4);
}

void
vmscope_hprof_record(Hprof *out, int tag, uint32_t length)
{
    end_segment(out);
    put_header(out, tag, length);
}

void
vmscope_hprof_part(Hprof *out, int tag, size_t length)
{
    if (out->used + HEADER + length > HPROF_ROOM) {
        end_segment(out);
        vmscope_hprof_flush(out);
    }
    if (out->segment == HPROF_NONE) {
        size_t start = out->used;
        put_header(out, HPROF_SEGMENT, (uint32_t)length);
        if (HEADER + length <= HPROF_ROOM) { /* else it is a segment by itself, and goes out in pieces */
            out->segment = start;
        }
    }
    vmscope_hprof_put(out, (uint64_t)tag, 1);
}

void
vmscope_hprof_bytes(Hprof *out, const void *bytes, size_t length)
{
    while (length > 0) {
        if (out->used == HPROF_ROOM) {
            vmscope_hprof_flush(out);
        }
        size_t part = length < HPROF_ROOM - out->used ? length : HPROF_ROOM - out->used;
        memcpy(out->bytes + out->used, bytes, part);
        out->used += part;
        bytes = (const char *)bytes + part;
        length -= part;
    }
}

int
vmscope_hprof_close(Hprof *out)
{
    vmscope_hprof_record(out, HPROF_END, 0);
    vmscope_hprof_flush(out);
    free(out->bytes);
    out->bytes = NULL;
    return out->error == 0 ? 0 : -1;
}

#endif
