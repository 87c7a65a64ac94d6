/* Raw monitors: the functions of a jvmtiEnv on them, by slot. */
#ifndef VMSCOPE_JNI_RAW_MONITORS_H
#define VMSCOPE_JNI_RAW_MONITORS_H

#include "jni/interface.h"

int32_t jni_create_raw_monitor(Environment *environment, const char *name, void **id);  /* 31 */
int32_t jni_destroy_raw_monitor(Environment *environment, const void *id);              /* 32 */
int32_t jni_raw_monitor_enter(Environment *environment, const void *id);                /* 33 */
int32_t jni_raw_monitor_exit(Environment *environment, const void *id);                 /* 34 */
int32_t jni_raw_monitor_wait(Environment *environment, const void *id, int64_t millis); /* 35 */
int32_t jni_raw_monitor_notify(Environment *environment, const void *id);               /* 36 */
int32_t jni_raw_monitor_notify_all(Environment *environment, const void *id);           /* 37 */

#endif
