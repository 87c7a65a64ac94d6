/* Growing arrays of bytes, and what a flight recording's numbers and strings are in them. Nothing here knows Python. */
#ifndef VMSCOPE_FLIGHT_BYTES_H
#define VMSCOPE_FLIGHT_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned char *data;
    size_t size, room;
    int failed; /* there was no memory: what was put since is missing */
} Bytes;

/* Room for `count` more; 0 without memory. */
static inline int
bytes_reserve(Bytes *self, size_t count)
{
    if (self->room - self->size >= count) {
        return 1;
    }
    size_t room = 2 * self->room + count + 256;
    unsigned char *moved = realloc(self->data, room);
    if (moved == NULL) {
        self->failed = 1;
        return 0;
    }
    self->data = moved;
    self->room = room;
    return 1;
}

static inline void
bytes_free(Bytes *self)
{
    free(self->data);
    memset(self, 0, sizeof *self);
}

static inline void
put_bytes(Bytes *self, const void *from, size_t count)
{
    if (count > 0 && bytes_reserve(self, count)) {
        memcpy(self->data + self->size, from, count);
        self->size += count;
    }
}

#define LONGEST_NUMBER 9 /* bytes */

/* Seven bits a byte, the lowest first; the ninth byte has eight. */
static inline void
put_number(Bytes *self, uint64_t value)
{
    if (!bytes_reserve(self, LONGEST_NUMBER)) {
        return;
    }
    for (int i = 0; i < LONGEST_NUMBER - 1 && value > 127; i++) {
        self->data[self->size++] = (unsigned char)(value | 128);
        value >>= 7;
    }
    self->data[self->size++] = (unsigned char)value;
}

static inline void
put_byte(Bytes *self, unsigned char value)
{
    put_bytes(self, &value, 1);
}

enum { STRING_NULL = 0, STRING_EMPTY = 1, STRING_UTF8 = 3 };

static inline void
put_string(Bytes *self, const char *text, size_t length)
{
    if (text == NULL) {
        put_byte(self, STRING_NULL);
    } else if (length == 0) {
        put_byte(self, STRING_EMPTY);
    } else {
        put_byte(self, STRING_UTF8);
        put_number(self, length);
        put_bytes(self, text, length);
    }
}

/* 4 and 8 bytes, the highest first. */
static inline void
put_word(Bytes *self, uint64_t value, int size)
{
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
        put_byte(self, (unsigned char)(value >> shift));
    }
}

/* Begins an event: where its size will stand, in one byte as of most. */
static inline size_t
begin_event(Bytes *self, uint64_t type)
{
    size_t at = self->size;
    put_byte(self, 0);
    put_number(self, type);
    return at;
}

#define LONG_SIZE 4 /* bytes of the size of an event that is longer than 127 */

/* An event that found no memory, or has 2^28 bytes, is taken back; then 0. */
static inline int
end_event(Bytes *self, size_t at)
{
    size_t size = self->size - at;
    if (size > 127 && bytes_reserve(self, LONG_SIZE - 1)) {
        memmove(self->data + at + LONG_SIZE, self->data + at + 1, size - 1);
        self->size += LONG_SIZE - 1;
        size += LONG_SIZE - 1;
        for (int i = 0; i < LONG_SIZE - 1; i++) {
            self->data[at + (size_t)i] = (unsigned char)(size >> 7 * i | 128);
        }
        self->data[at + LONG_SIZE - 1] = (unsigned char)(size >> 7 * (LONG_SIZE - 1) & 127);
    } else if (!self->failed) {
        self->data[at] = (unsigned char)size;
    }
    if (self->failed || size >= (size_t)1 << 28) {
        self->size = at;
        self->failed = 0;
        return 0;
    }
    return 1;
}

#endif
