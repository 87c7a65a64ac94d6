"""Where everything stands in a region: offsets, sizes and `struct` formats, beside the C structs.

Numbers are in the byte order that the prologue names, except the magic, whose four bytes are
always the same. A format here lacks the order: put `order(big)` before it.
"""

from __future__ import annotations

MAGIC = b"\xca\xfe\xc0\xc0"

BIG_ENDIAN = 0
LITTLE_ENDIAN = 1

# -- what all versions have in common -------------------------------------------------------------

MAGIC_OFFSET = 0
BYTE_ORDER_OFFSET = 4
MAJOR_OFFSET = 5
MINOR_OFFSET = 6
IDENTITY_SIZE = 7  # magic, byte order and version: enough to know what the rest means

# -- version 2.0 (every JVM since JDK 5) ----------------------------------------------------------
#
# struct prologue {                  // offset
#     uint8_t magic[4];              //  0
#     int8_t  byte_order;            //  4   0 big, 1 little
#     int8_t  major;                 //  5   2
#     int8_t  minor;                 //  6   0
#     int8_t  accessible;            //  7   1 once the start-up counters are all there
#     int32_t used;                  //  8   bytes in use, prologue included; 0 before the first entry
#     int32_t overflow;              // 12   bytes that found no room
#     int64_t mod_time_stamp;        // 16   ticks at the last added entry
#     int32_t entry_offset;          // 24   where the first entry is: 32
#     int32_t num_entries;           // 28
# };
#
# struct entry {                     // offset in the entry, which is 8-aligned
#     int32_t entry_length;          //  0   all of it with padding, a multiple of 8; 0: no more entries
#     int32_t name_offset;           //  4   20
#     int32_t vector_length;         //  8   0 for a scalar
#     int8_t  data_type;             // 12   ASCII: 'J' or 'B'
#     int8_t  flags;                 // 13   1: supported
#     int8_t  units;                 // 14
#     int8_t  variability;           // 15
#     int32_t data_offset;           // 16   a multiple of the element's size
#     char    name[];                // 20   ends with a NUL, then padding, then the data
# };

PROLOGUE_SIZE = 32
PROLOGUE = "4sbbbbiiqii"

ACCESSIBLE_OFFSET = 7
USED_OFFSET = 8
OVERFLOW_OFFSET = 12
MOD_TIME_STAMP_OFFSET = 16
ENTRY_OFFSET_OFFSET = 24
NUM_ENTRIES_OFFSET = 28

ENTRY_HEADER_SIZE = 20
ENTRY_HEADER = "iiibbbbi"
ENTRY_ALIGNMENT = 8

ENTRY_LENGTH_OFFSET = 0
NAME_OFFSET_OFFSET = 4
VECTOR_LENGTH_OFFSET = 8
DATA_TYPE_OFFSET = 12
FLAGS_OFFSET = 13
UNITS_OFFSET = 14
VARIABILITY_OFFSET = 15
DATA_OFFSET_OFFSET = 16

# -- version 1.0 (JDK 1.4) ------------------------------------------------------------------------
#
# struct prologue_v1 {               // offset
#     uint8_t magic[4];              //  0
#     int8_t  byte_order;            //  4
#     int8_t  major;                 //  5   1
#     int8_t  minor;                 //  6   0
#     int8_t  reserved;              //  7
#     int32_t used;                  //  8
#     int32_t overflow;              // 12
#     int64_t mod_time_stamp;        // 16
# };
#
# struct entry_v1 {                  // offset in the entry
#     int32_t entry_length;          //  0
#     int32_t name_length;           //  4   with its NUL
#     int32_t vector_length;         //  8
#     int8_t  data_type;             // 12
#     int8_t  flags;                 // 13
#     int8_t  units;                 // 14
#     int8_t  variability;           // 15
#     char    name[];                // 16   a string's data right after it, a scalar's in the last 8 bytes
# };

V1_PROLOGUE_SIZE = 24
V1_PROLOGUE = "4sbbbbiiq"

V1_ENTRY_HEADER_SIZE = 16
V1_ENTRY_HEADER = "iiibbbb"
V1_NAME_LENGTH_OFFSET = 4


def order(big: bool) -> str:
    """The `struct` prefix of a byte order; offsets above hold only with one of these (no padding)."""
    return ">" if big else "<"
