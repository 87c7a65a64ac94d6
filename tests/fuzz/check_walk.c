#include "check_walk.h"

#include <stdlib.h>
#include <string.h>

bool
region_is_big(const unsigned char *data, int64_t size)
{
    return size > 4 && data[4] == 0;
}

int64_t
region_begin(const unsigned char *data, int64_t size, int64_t otherwise)
{
    if (size < 28) {
        return otherwise;
    }
    uint32_t begin = 0;
    for (int i = 0; i < 4; i++) {
        begin |= (uint32_t)data[24 + i] << (region_is_big(data, size) ? 24 - 8 * i : 8 * i);
    }
    return (int32_t)begin;
}

static volatile uint64_t sink;

/* The bytes that it touches are added to `work`. */
static const char *
check_entry(const Walk *walk, const WalkEntry *entry, int64_t *work)
{
    const unsigned char *data = walk->data;
    if (walk->next <= entry->offset || walk->next > walk->size) {
        return "no step forward";
    }
    for (int64_t i = 0; i < entry->name_length; i++) {
        if (data[entry->name + i] == 0) {
            return "a NUL in a name";
        }
    }
    *work += entry->name_length + 1 + entry->vector_length;
    if (entry->vector_length == 0) {
        sink += (uint64_t)walk_long(walk, entry);
        return entry->data_type == 'J' ? NULL : "a scalar that is no J";
    }
    int64_t length = walk_text_length(walk, entry);
    if (length < 0 || length > entry->vector_length) {
        return "a text longer than its vector";
    }
    sink += data[entry->value + entry->vector_length - 1];
    if (length == 0) {
        return NULL;
    }
    unsigned char *copy = malloc((size_t)length);
    if (copy == NULL) {
        return "no memory";
    }
    memcpy(copy, data + entry->value, (size_t)length);
    int64_t squeezed = walk_squeeze(copy, length);
    free(copy);
    return squeezed >= 0 && squeezed <= length ? NULL : "a text that grew";
}

static const char *
check_all(Walk *walk, Walked *walked)
{
    const char *wrong = NULL;
    WalkEntry entry;
    WalkStatus status;
    int64_t entries = 0, work = 0;
    while ((status = walk_next(walk, &entry)) == WALK_ENTRY) {
        wrong = check_entry(walk, &entry, &work);
        entries++;
        if (wrong != NULL) {
            return wrong;
        }
        if (entries > walk->size / 16 + 3) {
            return "more entries than can stand in the region";
        }
        if (work > (WALK_FOREIGN + 2) * walk->size) {
            return "work beyond the budget";
        }
        walked->texts += entry.vector_length != 0;
    }
    /* an error's name may be cut short, but it must be there */
    for (int64_t i = 0; i < entry.name_length; i++) {
        sink += walk->data[entry.name + i];
    }
    int64_t there = walk->next;
    if (walk_next(walk, &entry) != status || walk->next != there) {
        return "an end or an error that does not last";
    }
    walked->ends[status]++;
    walked->entries += (unsigned long long)entries;
    return NULL;
}

const char *
check_walk(const unsigned char *data, int64_t size, int64_t begin, bool big, Walked *walked)
{
    unsigned char *copy = malloc(size > 0 ? (size_t)size : 0);
    if (copy == NULL && size > 0) {
        return "no memory";
    }
    if (size > 0) {
        memcpy(copy, data, (size_t)size);
    }
    Walk walk;
    walk_init(&walk, copy, (size_t)size, begin, big);
    const char *wrong = check_all(&walk, walked);
    free(copy);
    return wrong;
}
