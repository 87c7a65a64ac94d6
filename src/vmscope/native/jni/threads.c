/* What each OS thread has as its JNIEnv, and the frames of its local references. */
#include "interface.h"

#include <pthread.h>

#define NATIVE_MAGIC UINT64_C(0x766d73636f70654e)

static _Thread_local __attribute__((tls_model("initial-exec"))) Native *here;
static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int have_key;
static _Atomic uint16_t last_number;

/* At the thread's end. Python's objects need the GIL, which a thread that ends cannot wait for: what it still refers to
 * was its frames' and went with them, unless the agent ended its thread within a call. That is kept. */
static void
native_free(void *pointer)
{
    Native *native = pointer;
    here = NULL;
    if (native->count == 0 && native->pending == NULL) {
        free(native->locals);
        free(native->serials);
        free(native->frames);
        free(native);
    }
}

static void
make_key(void)
{
    have_key = pthread_key_create(&ending, native_free) == 0;
}

static __attribute__((cold, noinline)) Native *
native_new(void)
{
    pthread_once(&once, make_key);
    Native *native = calloc(1, sizeof *native);
    if (native == NULL || !have_key || pthread_setspecific(ending, native) != 0) {
        free(native);
        return NULL;
    }
    native->functions = jni_functions;
    native->magic = NATIVE_MAGIC;
    native->number = atomic_fetch_add(&last_number, 1) + 1;
    return here = native;
}

Native *
jni_native(void)
{
    return here != NULL ? here : native_new();
}

int
jni_attached(void)
{
    return (here == NULL || !here->without_python) && Py_IsInitialized() && PyGILState_GetThisThreadState() != NULL;
}

int
jni_push_frame(Native *native)
{
    if (native->depth == native->room) {
        uint32_t room = native->room ? 2 * native->room : 16;
        uint32_t *frames = realloc(native->frames, room * sizeof *frames);
        if (frames == NULL) {
            return -1;
        }
        native->frames = frames;
        native->room = room;
    }
    native->frames[native->depth++] = native->count;
    return 0;
}

void
jni_pop_frame(Native *native)
{
    uint32_t begin = native->frames[--native->depth];
    while (native->count > begin) {
        uint32_t place = --native->count;
        PyObject *object = native->locals[place];
        native->serials[place]++;
        native->locals[place] = NULL;
        Py_XDECREF(object); /* may run code that makes references, above this place, and drops them */
    }
}
