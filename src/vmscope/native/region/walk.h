/* The walk along a v2.0 region's entries: no Python in it, so that it can be fuzzed by itself.
 *
 * The checks and their order are those of the JDK's own reader, so that both read the same regions and
 * refuse the same ones. That reader lets a name or a text run out of its entry, over others; so that no
 * region costs more than a few times its size, such bytes have a budget here: WALK_FOREIGN times the size, of
 * WALK_FOREIGN_SIZE at most. The number of entries is bounded too, as each becomes an object in its reader.
 *
 * Every field is loaded once and then checked: the bytes may be changing meanwhile.
 */
#ifndef VMSCOPE_WALK_H
#define VMSCOPE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_FOREIGN 8
#define WALK_FOREIGN_SIZE (1 << 20)
#define WALK_MOST (1 << 18) /* entries: ten times what the largest region of a JVM has room for */

typedef enum {
    WALK_ENTRY, /* `entry` was filled */
    WALK_END,   /* a zero length or the end of the bytes; `next` stays there */
    /* structure errors */
    WALK_MISALIGNED,
    WALK_OUTSIDE,
    WALK_HEADER,
    WALK_LENGTH,
    WALK_TYPE,
    WALK_NAME_OFFSET,
    WALK_DATA_OFFSET,
    WALK_NAME,
    WALK_DATA_BEFORE,
    WALK_SCALAR_END,
    WALK_VECTOR_LENGTH,
    WALK_BUDGET,
    WALK_NUMBER,
    /* data errors */
    WALK_VARIABILITY,
    WALK_UNITS,
    WALK_VECTOR_VARIABILITY,
    /* type errors */
    WALK_SCALAR_TYPE,
    WALK_VECTOR_TYPE,
    WALK_VECTOR_UNITS,
} WalkStatus;

typedef struct {
    const unsigned char *data;
    int64_t size;
    bool swap;
    int64_t next;   /* where the next entry starts */
    int64_t budget; /* bytes that names and texts may still take from outside their entries */
    int64_t left;   /* entries that may still come */
    /* after an error: what was found where */
    int64_t error_value;
    int64_t error_offset;
} Walk;

/* Offsets are from the start of the bytes; what they point at lies within them. */
typedef struct {
    int64_t offset;
    int64_t name;
    int64_t name_length; /* without a NUL */
    int64_t value;
    int32_t vector_length; /* 0: `value` is 8 bytes */
    signed char data_type;
    signed char flags;
    signed char units;
    signed char variability;
} WalkEntry;

void walk_init(Walk *walk, const unsigned char *data, size_t size, int64_t offset, bool big);

/* One entry further. After an error `entry` has the name where it could be read (length 0 else). */
WalkStatus walk_next(Walk *walk, WalkEntry *entry);

int64_t walk_long(const Walk *walk, const WalkEntry *entry);

/* How many bytes of the entry's vector are text: "" for one byte, else up to a NUL or all of them. */
int64_t walk_text_length(const Walk *walk, const WalkEntry *entry);

/* Java takes the two or three bytes of a surrogate for one malformed character, Python's UTF-8 each byte
 * for one: leaves one byte of each, which is just as malformed. Returns the new length. */
int64_t walk_squeeze(unsigned char *text, int64_t length);

#endif
