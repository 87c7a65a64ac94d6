/* The functions that agents call most, and without the GIL: memory, phase, storage, versions, times, capabilities. */
#include "general.h"

#include <time.h>
#include <unistd.h>

#define CHECK(slot)                                                                                                    \
    do {                                                                                                               \
        int error = jni_enter(environment, slot, 0);                                                                   \
        if (error != ERROR_NONE) {                                                                                     \
            return error;                                                                                              \
        }                                                                                                              \
    } while (0)

#define POINTER(pointer)                                                                                               \
    do {                                                                                                               \
        if ((pointer) == NULL) {                                                                                       \
            return ERROR_NULL_POINTER;                                                                                 \
        }                                                                                                              \
    } while (0)

int32_t
jni_allocate(Environment *environment, int64_t size, unsigned char **memory)
{
    CHECK(46);
    if (size < 0) {
        return ERROR_ILLEGAL_ARGUMENT;
    }
    POINTER(memory);
    if (size == 0) {
        *memory = NULL;
        return ERROR_NONE;
    }
    *memory = malloc((size_t)size);
    return *memory == NULL ? ERROR_OUT_OF_MEMORY : ERROR_NONE;
}

int32_t
jni_deallocate(Environment *environment, unsigned char *memory)
{
    CHECK(47);
    free(memory);
    return ERROR_NONE;
}

int32_t
jni_get_phase(Environment *environment, int32_t *phase)
{
    CHECK(133);
    POINTER(phase);
    *phase = atomic_load_explicit(&environment->phase, memory_order_relaxed);
    return ERROR_NONE;
}

int32_t
jni_get_storage(Environment *environment, void **data)
{
    CHECK(147);
    POINTER(data);
    *data = atomic_load_explicit(&environment->storage, memory_order_relaxed);
    return ERROR_NONE;
}

int32_t
jni_set_storage(Environment *environment, const void *data)
{
    CHECK(148);
    atomic_store_explicit(&environment->storage, (void *)data, memory_order_relaxed);
    return ERROR_NONE;
}
