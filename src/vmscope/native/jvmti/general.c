/* The functions that agents call most, and without the GIL: memory, phase, storage, versions, times, capabilities. As in
 * a JVM, those for memory, storage and time may be called from threads that the VM does not know. */
#include "jvmti/general.h"

#include <time.h>

#define CAPABILITY_BYTES 6 /* 45 bits */
#define JNI_10_SLOTS 234

enum { FORMAT_OTHER = 0, TIMER_TOTAL_CPU = 31, TIMER_ELAPSED = 32 };

#define CHECK(slot, needs)                                                                                             \
    do {                                                                                                               \
        int error = jni_enter(environment, slot, needs);                                                               \
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
    CHECK(46, NO_THREAD);
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
    CHECK(47, NO_THREAD);
    free(memory);
    return ERROR_NONE;
}

int32_t
jni_get_version_number(Environment *environment, int32_t *version)
{
    CHECK(88, THREAD);
    POINTER(version);
    *version = jvmti_version_number;
    return ERROR_NONE;
}

/* The bytes behind those that have bits stay as they are. */
int32_t
jni_get_capabilities(Environment *environment, void *capabilities)
{
    CHECK(89, THREAD);
    POINTER(capabilities);
    uint64_t held = atomic_load_explicit(&environment->held, memory_order_relaxed);
    memcpy(capabilities, &held, CAPABILITY_BYTES); /* little-endian, as the ABI's bit fields are */
    return ERROR_NONE;
}

/* The table is copied into the one that all threads use, except what came after the version of GetVersion: an
 * agent's own table may end there. */
int32_t
jni_set_function_table(Environment *environment, const void *const *table)
{
    CHECK(120, THREAD);
    POINTER(table);
    for (size_t i = 0; i < JNI_10_SLOTS; i++) {
        __atomic_store_n(&jni_functions[i], table[i], __ATOMIC_RELAXED);
    }
    return ERROR_NONE;
}

int32_t
jni_get_function_table(Environment *environment, void ***table)
{
    CHECK(121, THREAD);
    POINTER(table);
    void **copy = malloc(sizeof jni_functions);
    if (copy == NULL) {
        return ERROR_OUT_OF_MEMORY;
    }
    memcpy(copy, jni_functions, sizeof jni_functions);
    *table = copy;
    return ERROR_NONE;
}

int32_t
jni_get_error_name(Environment *environment, int32_t error, char **name)
{
    CHECK(128, THREAD);
    POINTER(name);
    if (error < 0 || error >= JVMTI_ERRORS || jvmti_error_names[error] == NULL) {
        return ERROR_ILLEGAL_ARGUMENT;
    }
    *name = strdup(jvmti_error_names[error]);
    return *name == NULL ? ERROR_OUT_OF_MEMORY : ERROR_NONE;
}

int32_t
jni_get_jlocation_format(Environment *environment, int32_t *format)
{
    CHECK(129, THREAD);
    POINTER(format);
    *format = FORMAT_OTHER;
    return ERROR_NONE;
}

static int64_t
now(clockid_t clock)
{
    struct timespec found;
    clock_gettime(clock, &found);
    return found.tv_sec * INT64_C(1000000000) + found.tv_nsec;
}

int32_t
jni_get_current_cpu_timer_info(Environment *environment, TimerInfo *info)
{
    CHECK(134, THREAD_OR_CALLBACK);
    POINTER(info);
    *info = (TimerInfo){.max_value = INT64_MAX, .kind = TIMER_TOTAL_CPU};
    return ERROR_NONE;
}

int32_t
jni_get_current_cpu_time(Environment *environment, int64_t *nanoseconds)
{
    CHECK(135, THREAD_OR_CALLBACK);
    POINTER(nanoseconds);
    *nanoseconds = now(CLOCK_THREAD_CPUTIME_ID); /* time.thread_time_ns's */
    return ERROR_NONE;
}

int32_t
jni_get_timer_info(Environment *environment, TimerInfo *info)
{
    CHECK(138, NO_THREAD);
    POINTER(info);
    *info = (TimerInfo){.max_value = INT64_MAX, .kind = TIMER_ELAPSED};
    return ERROR_NONE;
}

int32_t
jni_get_time(Environment *environment, int64_t *nanoseconds)
{
    CHECK(139, NO_THREAD);
    POINTER(nanoseconds);
    *nanoseconds = now(CLOCK_MONOTONIC); /* time.perf_counter_ns's */
    return ERROR_NONE;
}

int32_t
jni_get_phase(Environment *environment, int32_t *phase)
{
    CHECK(133, THREAD);
    POINTER(phase);
    *phase = atomic_load_explicit(&environment->phase, memory_order_relaxed);
    return ERROR_NONE;
}

int32_t
jni_get_storage(Environment *environment, void **data)
{
    CHECK(147, NO_THREAD);
    POINTER(data);
    *data = atomic_load_explicit(&environment->storage, memory_order_relaxed);
    return ERROR_NONE;
}

int32_t
jni_set_storage(Environment *environment, const void *data)
{
    CHECK(148, NO_THREAD);
    atomic_store_explicit(&environment->storage, (void *)data, memory_order_relaxed);
    return ERROR_NONE;
}
