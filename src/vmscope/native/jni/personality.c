/* What the unwinder asks of a frame that has to be cleaned up: as the compiler's own, which is found when it is asked.
 *
 * A thread that CPython ends unwinds its frames, and ours keep it (jni_stay). That is rare, and linking with the library
 * that has the function took each start a tenth of a millisecond. Whoever unwinds has loaded it. */
#include "jni/interface.h"

#if defined(__linux__) && defined(__GLIBC__) && !defined(__ARM_EABI_UNWINDER__)

#include <dlfcn.h>
#include <unwind.h>

typedef _Unwind_Reason_Code (*Personality)(int, _Unwind_Action, _Unwind_Exception_Class, struct _Unwind_Exception *,
                                           struct _Unwind_Context *);

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                         struct _Unwind_Exception *exception, struct _Unwind_Context *context);

_Unwind_Reason_Code
__gcc_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                     struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    void *library = dlopen("libgcc_s.so.1", RTLD_LAZY);
    void *found = library == NULL ? NULL : dlsym(library, "__gcc_personality_v0");
    Personality real;
    memcpy(&real, &found, sizeof real);
    return real == NULL ? _URC_CONTINUE_UNWIND : real(version, actions, class, exception, context);
}

#endif
