#include "region/walk.h"

#include <string.h>

#define HEADER_SIZE 20

/* The type codes that there are, as bits: all lie between '@' and '`'. */
#define TYPE_BIT(code) (UINT32_C(1) << ((code) & 31))
#define TYPES                                                                                                          \
    (TYPE_BIT('B') | TYPE_BIT('Z') | TYPE_BIT('J') | TYPE_BIT('I') | TYPE_BIT('S') | TYPE_BIT('C') | TYPE_BIT('D') |   \
     TYPE_BIT('F') | TYPE_BIT('V') | TYPE_BIT('L') | TYPE_BIT('['))

static int32_t
load32(const Walk *walk, int64_t offset)
{
    uint32_t w;
    memcpy(&w, walk->data + offset, sizeof w);
    if (walk->swap) {
        w = w << 24 | (w & 0xff00) << 8 | (w >> 8 & 0xff00) | w >> 24;
    }
    return (int32_t)w;
}

static int64_t
load64(const Walk *walk, int64_t offset)
{
    uint64_t w; /* one load, so that a value that is being written comes whole */
    memcpy(&w, walk->data + offset, sizeof w);
    if (walk->swap) {
        w = (w & 0x00ff00ff00ff00ff) << 8 | (w >> 8 & 0x00ff00ff00ff00ff);
        w = (w & 0x0000ffff0000ffff) << 16 | (w >> 16 & 0x0000ffff0000ffff);
        w = w << 32 | w >> 32;
    }
    return (int64_t)w;
}

void
walk_init(Walk *walk, const unsigned char *data, size_t size, int64_t offset, bool big)
{
    const uint16_t probe = 1;
    bool big_host = *(const unsigned char *)&probe == 0;
    *walk = (Walk){
        .data = data,
        .size = (int64_t)size,
        .swap = big != big_host,
        .next = offset,
        .budget = WALK_FOREIGN * (int64_t)(size < WALK_FOREIGN_SIZE ? size : WALK_FOREIGN_SIZE),
        .left = WALK_MOST,
    };
}

/* Not inlined: most walks fail nowhere, and its many calls would fill walk_next with what they store. */
static __attribute__((noinline, cold)) WalkStatus
fail(Walk *walk, WalkStatus status, int64_t value, int64_t offset)
{
    walk->error_value = value;
    walk->error_offset = offset;
    return status;
}

/* The name is what stands from `first` to a NUL, within `room` bytes; false when neither ends it in time. */
static bool
find_name(const Walk *walk, int64_t first, int32_t room, WalkEntry *entry)
{
    if (room < 0 || first >= walk->size) {
        return false;
    }
    int64_t left = walk->size - first;
    const unsigned char *name = walk->data + first;
    const unsigned char *nul = memchr(name, 0, (size_t)(room < left ? room : left));
    if (nul == NULL && room >= left) {
        return false;
    }
    entry->name = first;
    entry->name_length = nul != NULL ? nul - name : room;
    return true;
}

/* The value of an entry of this length; WALK_ENTRY when it is one. */
static WalkStatus
check_value(Walk *walk, const WalkEntry *entry, int32_t data_offset, int32_t length)
{
    int64_t start = entry->offset, room = walk->size - entry->value;
    int32_t vector_length = entry->vector_length;
    if (entry->value < 0) {
        return fail(walk, WALK_DATA_BEFORE, data_offset, start + 16);
    }
    if (vector_length == 0) {
        if (entry->data_type != 'J') {
            return fail(walk, WALK_SCALAR_TYPE, entry->data_type, start + 12);
        }
        return room < 8 ? fail(walk, WALK_SCALAR_END, data_offset, start + 16) : WALK_ENTRY;
    }
    if (entry->data_type != 'B') {
        return fail(walk, WALK_VECTOR_TYPE, entry->data_type, start + 12);
    }
    if (entry->units != 5) {
        return fail(walk, WALK_VECTOR_UNITS, entry->units, start + 14);
    }
    if (vector_length < 0 || vector_length > room) {
        return fail(walk, WALK_VECTOR_LENGTH, vector_length, start + 8);
    }
    if (entry->variability == 2) {
        return fail(walk, WALK_VECTOR_VARIABILITY, entry->variability, start + 15);
    }
    if (data_offset < 0 || vector_length > length - data_offset) {
        walk->budget -= vector_length;
    }
    return WALK_ENTRY;
}

WalkStatus
walk_next(Walk *walk, WalkEntry *entry)
{
    int64_t start = walk->next, limit = walk->size;
    *entry = (WalkEntry){.offset = start};
    if (start & 3) {
        return fail(walk, WALK_MISALIGNED, start, start);
    }
    if (start < 0 || start > limit) {
        return fail(walk, WALK_OUTSIDE, start, start);
    }
    int64_t left = limit - start;
    if (left == 0) {
        return WALK_END;
    }
    if (left < 4) {
        return fail(walk, WALK_HEADER, limit, start);
    }
    int32_t length = load32(walk, start);
    if (length < 0 || length > left) {
        return fail(walk, WALK_LENGTH, length, start);
    }
    if (length == 0) {
        return WALK_END;
    }
    if (left < HEADER_SIZE) {
        return fail(walk, WALK_HEADER, limit, start);
    }
    if (walk->left == 0) {
        return fail(walk, WALK_NUMBER, WALK_MOST, start);
    }

    int32_t name_offset = load32(walk, start + 4);
    int32_t vector_length = load32(walk, start + 8);
    signed char data_type = (signed char)walk->data[start + 12];
    signed char flags = (signed char)walk->data[start + 13];
    signed char units = (signed char)walk->data[start + 14];
    signed char variability = (signed char)walk->data[start + 15];
    int32_t data_offset = load32(walk, start + 16);
    int32_t room = (int32_t)((uint32_t)data_offset - (uint32_t)name_offset); /* wraps, as in Java */
    bool named = find_name(walk, start + HEADER_SIZE, room, entry);

    if (data_type >> 5 != 2 || (TYPES & TYPE_BIT(data_type)) == 0) {
        return fail(walk, WALK_TYPE, data_type, start + 12);
    }
    if (name_offset > length) {
        return fail(walk, WALK_NAME_OFFSET, name_offset, start + 4);
    }
    if (data_offset > length) {
        return fail(walk, WALK_DATA_OFFSET, data_offset, start + 16);
    }
    if (variability < 1 || variability > 3) {
        return fail(walk, WALK_VARIABILITY, variability, start + 15);
    }
    if (units < 1 || units > 6) {
        return fail(walk, WALK_UNITS, units, start + 14);
    }
    if (!named) {
        return fail(walk, WALK_NAME, name_offset, start + 4);
    }
    entry->value = start + data_offset;
    entry->vector_length = vector_length;
    entry->data_type = data_type;
    entry->flags = flags;
    entry->units = units;
    entry->variability = variability;
    WalkStatus status = check_value(walk, entry, data_offset, length);
    if (status != WALK_ENTRY) {
        return status;
    }
    if (entry->name_length > length - HEADER_SIZE) {
        walk->budget -= entry->name_length;
    }
    if (walk->budget < 0) {
        return fail(walk, WALK_BUDGET, length, start);
    }

    walk->next = start + length;
    walk->left--;
    return WALK_ENTRY;
}

int64_t
walk_long(const Walk *walk, const WalkEntry *entry)
{
    return load64(walk, entry->value);
}

int64_t
walk_text_length(const Walk *walk, const WalkEntry *entry)
{
    if (entry->vector_length <= 1) {
        return 0;
    }
    const unsigned char *text = walk->data + entry->value;
    const unsigned char *nul = memchr(text, 0, (size_t)entry->vector_length);
    return nul != NULL ? nul - text : entry->vector_length;
}

int64_t
walk_squeeze(unsigned char *text, int64_t length)
{
    unsigned char *from = memchr(text, 0xed, (size_t)length);
    if (from == NULL) {
        return length;
    }
    unsigned char *to = from;
    const unsigned char *end = text + length;
    while (from < end) {
        if (from[0] == 0xed && end - from > 1 && from[1] >= 0xa0 && from[1] <= 0xbf) {
            from += end - from > 2 && from[2] >= 0x80 && from[2] <= 0xbf ? 3 : 2;
            *to++ = 0xff;
        } else {
            *to++ = *from++;
        }
    }
    return to - text;
}
