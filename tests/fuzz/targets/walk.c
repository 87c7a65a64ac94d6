/* The walk along any bytes; check_walk.c says what is looked at. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "check_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Walked walked;
    int64_t begin = region_begin(data, (int64_t)size, size > 0 ? data[0] - 16 : 0);
    const char *wrong = check_walk(data, (int64_t)size, begin, region_is_big(data, (int64_t)size), &walked);
    if (wrong != NULL) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}
