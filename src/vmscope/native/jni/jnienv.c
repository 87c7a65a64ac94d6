/* The slots of a JNIEnv. */
#include "interface.h"

static int32_t
get_version(void *Py_UNUSED(native))
{
    return 0x000a0000;
}

const void *jni_functions[JNI_SLOTS] = {[4] = get_version};
