/* Mutated regions through the native walk: fuzz_walk SEED FIRST COUNT FILE...
 *
 * Mutant N depends on the seed, N and the files only; check_walk.c says what is looked at. On a finding the number
 * of the mutant is printed: run it alone as FIRST.
 */
#include <sanitizer/common_interface_defs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_walk.h"

#define MAX_FILES 256
#define MAX_SIZE (1 << 17)

typedef struct {
    unsigned char *data;
    int64_t size;
} Bytes;

static Bytes files[MAX_FILES];
static int file_count;
static unsigned long long current;

/* -- chance ---------------------------------------------------------------------------------------- */

static uint64_t chance;

static uint64_t
next_random(void)
{
    uint64_t z = chance += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int64_t
below(int64_t limit)
{
    return limit <= 0 ? 0 : (int64_t)(next_random() % (uint64_t)limit);
}

/* -- mutation -------------------------------------------------------------------------------------- */

static void
put32(Bytes *region, int64_t offset, int64_t value, bool big)
{
    for (int i = 0; i < 4; i++) {
        if (offset + i >= 0 && offset + i < region->size) {
            region->data[offset + i] = (unsigned char)((uint64_t)value >> (big ? 24 - 8 * i : 8 * i));
        }
    }
}

static int64_t
get32(const Bytes *region, int64_t offset, bool big)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        value |= (uint32_t)region->data[offset + i] << (big ? 24 - 8 * i : 8 * i);
    }
    return (int32_t)value;
}

static bool
is_big(const Bytes *region)
{
    return region_is_big(region->data, region->size);
}

/* A number that checks tend to get wrong. */
static int64_t
edge(int64_t size)
{
    const int64_t edges[] = {0,
                             1,
                             -1,
                             4,
                             8,
                             16,
                             20,
                             24,
                             32,
                             40,
                             INT32_MAX,
                             INT32_MIN,
                             size,
                             size - 4,
                             size - 8,
                             size - 20,
                             size - 32,
                             size + 4,
                             INT32_MAX - 3,
                             -size,
                             INT32_MIN + 20};
    int64_t value = edges[below(sizeof edges / sizeof *edges)];
    return below(3) == 0 ? value + below(9) - 4 : below(4) == 0 ? below(2 * size + 1) - size / 2 : value;
}

/* Where some entry starts, as the walk sees it; 32 where there is none. */
static int64_t
some_entry(const Bytes *region)
{
    Walk walk;
    WalkEntry entry;
    int64_t found = 32, want = below(256);
    walk_init(&walk, region->data, (size_t)region->size, 32, is_big(region));
    for (int64_t i = 0; i <= want && walk_next(&walk, &entry) == WALK_ENTRY; i++) {
        found = entry.offset;
    }
    return found;
}

/* Every text from here on becomes as long as can be. */
static void
stretch(Bytes *region, bool big)
{
    Walk walk;
    WalkEntry entry;
    walk_init(&walk, region->data, (size_t)region->size, some_entry(region), big);
    while (walk_next(&walk, &entry) == WALK_ENTRY) {
        if (entry.vector_length != 0) {
            put32(region, entry.offset + 8, region->size - entry.value + (below(32) == 0), big);
        }
    }
}

/* A value before its entry: that takes two offsets that agree. */
static void
set_back(Bytes *region, bool big)
{
    int64_t at = some_entry(region), back = below(region->size + 64);
    put32(region, at + 4, -back - below(64), big);
    put32(region, at + 16, -back, big);
}

/* The region ends with an entry whose value may not fit. */
static void
cut(Bytes *region, bool big)
{
    int64_t at = some_entry(region), length = at + 4 <= region->size ? get32(region, at, big) : 0;
    if (length > 0 && length <= region->size - at) {
        region->size = at + length;
        put32(region, at + 16, length - below(12), big);
    }
}

static void
mutate(Bytes *region)
{
    static const unsigned char codes[] = "BZJISCDFVL[\0\1\2\3\4\5\6\7\x7f\x80\xff";
    static const int64_t fields[] = {0, 4, 8, 16};
    bool big = is_big(region);
    int64_t size = region->size, at, length;
    switch (below(15)) {
    case 0: /* a bit */
        if (size > 0) {
            region->data[below(size)] ^= (unsigned char)(1 << below(8));
        }
        break;
    case 1: /* a byte */
        if (size > 0) {
            region->data[below(size)] = (unsigned char)next_random();
        }
        break;
    case 2: /* a word anywhere */
        put32(region, below(size) & ~3, edge(size), big);
        break;
    case 3: /* the size */
        region->size = below(size + 1);
        break;
    case 4: /* the size, right behind an entry or within its header */
        at = some_entry(region) + below(64);
        region->size = at < size ? at : size;
        break;
    case 5: /* bytes over others */
        length = below(size < 512 ? size : 512);
        memmove(region->data + below(size - length), region->data + below(size - length), (size_t)length);
        break;
    case 6: /* a part of another file */ {
        const Bytes *other = &files[below(file_count)];
        length = below(other->size < size ? other->size : size);
        at = below(size - length) & ~7;
        memcpy(region->data + at, other->data + (below(other->size - length) & ~7), (size_t)length);
        break;
    }
    case 7: /* the first entry's place, or the byte order */
        if (below(2) == 0) {
            put32(region, 24, below(2) == 0 ? some_entry(region) : edge(size), big);
        } else if (size > 4) {
            region->data[4] ^= 1;
        }
        break;
    case 8: /* no NULs for a while: names and texts without an end */
        at = below(size);
        length = below(size - at < 256 ? size - at : 256);
        if (below(2) == 0) {
            memset(region->data + at, 'x', (size_t)length);
        } else { /* half a surrogate */
            for (int64_t i = 0; i < length; i++) {
                region->data[at + i] = (unsigned char)"\xed\xa0\x80"[below(3)];
            }
        }
        break;
    case 9: /* a code of an entry */
        at = some_entry(region) + 12 + below(4);
        if (at < size) {
            region->data[at] = codes[below(sizeof codes)];
        }
        break;
    case 10:
        stretch(region, big);
        break;
    case 11:
        set_back(region, big);
        break;
    case 12:
        cut(region, big);
        break;
    default: /* a number of an entry */
        put32(region, some_entry(region) + fields[below(4)], edge(below(2) == 0 ? size : 128), big);
    }
}

/* -- the walk -------------------------------------------------------------------------------------- */

static Walked walked;

static void
try(const Bytes *region)
{
    int64_t begin = region_begin(region->data, region->size, below(64) - 16);
    const char *wrong = check_walk(region->data, region->size, begin, is_big(region), &walked);
    if (wrong != NULL) {
        fprintf(stderr, "mutant %llu: %s\n", current, wrong);
        abort();
    }
}

static void
on_death(void)
{
    fprintf(stderr, "mutant %llu\n", current);
}

static void
load(const char *path)
{
    FILE *file = fopen(path, "rb");
    unsigned char *data = malloc(MAX_SIZE);
    if (file == NULL || data == NULL || file_count == MAX_FILES) {
        fprintf(stderr, "cannot load %s\n", path);
        exit(2);
    }
    size_t size = fread(data, 1, MAX_SIZE, file);
    fclose(file);
    files[file_count++] = (Bytes){data, (int64_t)size};
}

int
main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: fuzz_walk SEED FIRST COUNT FILE...\n");
        return 2;
    }
    unsigned long long seed = strtoull(argv[1], NULL, 0), first = strtoull(argv[2], NULL, 0);
    unsigned long long count = strtoull(argv[3], NULL, 0);
    for (int i = 4; i < argc; i++) {
        load(argv[i]);
    }
    __sanitizer_set_death_callback(on_death);
    Bytes region = {malloc(MAX_SIZE), 0};
    for (current = first; current < first + count; current++) {
        chance = seed * UINT64_C(0xd1342543de82ef95) + current;
        const Bytes *file = &files[below(file_count)];
        region.size = file->size;
        if (region.size >= 32 && below(4) != 0) { /* most often without the empty part */
            int64_t used = get32(file, 8, is_big(file)) + below(3) * 8;
            region.size = used > 32 && used < region.size ? used : region.size;
        }
        memcpy(region.data, file->data, (size_t)region.size);
        for (int64_t i = below(5); i >= 0; i--) {
            mutate(&region);
        }
        try(&region);
    }
    printf("mutants %llu entries %llu texts %llu\n", count, walked.entries, walked.texts);
    for (int i = 0; i < STATUSES; i++) {
        printf("status %d %llu\n", i, walked.ends[i]);
    }
    free(region.data);
    for (int i = 0; i < file_count; i++) {
        free(files[i].data);
    }
    return 0;
}
