/* The functions of a jvmtiEnv that are wholly in C, by slot. */
#ifndef VMSCOPE_JNI_GENERAL_H
#define VMSCOPE_JNI_GENERAL_H

#include "interface.h"

int32_t jni_allocate(Environment *environment, int64_t size, unsigned char **memory);      /* 46 */
int32_t jni_deallocate(Environment *environment, unsigned char *memory);                   /* 47 */
int32_t jni_get_phase(Environment *environment, int32_t *phase);                           /* 133 */
int32_t jni_get_storage(Environment *environment, void **data);                            /* 147 */
int32_t jni_set_storage(Environment *environment, const void *data);                       /* 148 */

#endif
