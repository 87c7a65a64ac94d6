/* The functions of a jvmtiEnv that are wholly in C, by slot. */
#ifndef VMSCOPE_JNI_GENERAL_H
#define VMSCOPE_JNI_GENERAL_H

#include "jvmti/raw_monitors.h"

#define JVMTI_ERRORS 117 /* one more than the last */

extern const int32_t jvmti_version_number;
extern const char *const jvmti_error_names[JVMTI_ERRORS]; /* NULL for a number that no error has */

typedef struct {
    int64_t max_value;
    uint8_t may_skip_forward, may_skip_backward;
    int32_t kind;
    int64_t reserved[2];
} TimerInfo;

int32_t jni_allocate(Environment *environment, int64_t size, unsigned char **memory); /* 46 */
int32_t jni_deallocate(Environment *environment, unsigned char *memory);              /* 47 */
int32_t jni_get_version_number(Environment *environment, int32_t *version);           /* 88 */
int32_t jni_get_capabilities(Environment *environment, void *capabilities);           /* 89 */
int32_t jni_set_function_table(Environment *environment, const void *const *table);   /* 120 */
int32_t jni_get_function_table(Environment *environment, void ***table);              /* 121 */
int32_t jni_get_error_name(Environment *environment, int32_t error, char **name);     /* 128 */
int32_t jni_get_jlocation_format(Environment *environment, int32_t *format);          /* 129 */
int32_t jni_get_phase(Environment *environment, int32_t *phase);                      /* 133 */
int32_t jni_get_current_cpu_timer_info(Environment *environment, TimerInfo *info);    /* 134 */
int32_t jni_get_current_cpu_time(Environment *environment, int64_t *nanoseconds);     /* 135 */
int32_t jni_get_timer_info(Environment *environment, TimerInfo *info);                /* 138 */
int32_t jni_get_time(Environment *environment, int64_t *nanoseconds);                 /* 139 */
int32_t jni_get_storage(Environment *environment, void **data);                       /* 147 */
int32_t jni_set_storage(Environment *environment, const void *data);                  /* 148 */

#endif
