/* Allocations as samples: of all bytes that the allocators of objects and of their memory give, some at random.
 *
 * A hook before both allocators counts bytes down, and passes the call on; what is given back does not come here. The
 * distance to the next sample is exponential, so each byte is as likely to be sampled as any other, whatever the rhythm
 * of the program. A sample weighs all bytes since the one before: together they weigh what was allocated. Its mean
 * distance follows what the program allocates, to keep to the rate that is asked for.
 *
 * Memory is given before there is an object in it. So the words where its class may be are set to zero, and looked at
 * at the next allocation of any kind: until then no other allocation gets this memory. It may be given back meanwhile, so it is
 * read under a guard; what is found counts as a class if its own layout puts the word at that very place.
 *
 * All of it may run in the middle of any allocation: no object is made, no reference taken, no Python code run, and no
 * lock waited for. Interpreters with a GIL of their own come here at once: then a count may be lost. */
#define _GNU_SOURCE
#include "flight/recorder.h"

#ifdef HAS_STACKS

#include "signals/guard.h"
#include "stacks/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#define SECOND 1000000000LL    /* ns */
#define WINDOW (SECOND / 4)    /* in which the rate is kept, */
#define LEAST_IN_WINDOW 8      /* or longer: a window has this number of samples */
#define STEP (256 << 10)       /* bytes: so often is looked whether a window is over */
#define FIRST_MEAN (512 << 10) /* bytes from one sample to the next, before the program is known */
#define LEAST_MEAN 4096        /* what allocates less needs no more samples */
#define MOST_MEAN (1LL << 40)
#define UNLIMITED (64 << 10)                                       /* where there is no rate */
#define PLACES 3                                                   /* where a class may stand in new memory: */
#define PLACE(number) ((size_t)(number) * 16 + sizeof(Py_ssize_t)) /* behind as many heads, of 16 bytes each */
#define MOST_BASES 64
#define MOST_CLASS_NAME 512

typedef enum { NO_SAMPLE, UNNAMED, NAMED_CLASS } Progress;

/* A sample on its way. */
typedef struct {
    Progress progress;
    uintptr_t memory;
    size_t size;
    PyInterpreterState *interpreter; /* of the thread, which alone may look at the object */
    int64_t time, weight;
    uint64_t chunk; /* of which these are: */
    uint32_t thread, stack;
    char class_name[MOST_CLASS_NAME]; /* with slashes; empty: it is not known */
} Pending;

/* Under `lock`, which is only tried for within an allocation. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    Recorder *recorder; /* NULL: nothing is sampled */
    int64_t rate;       /* samples a second; 0: as many as there are */
    int stack;
    PyObject *module_key;           /* `__module__` */
    int64_t granted;                /* what `left` began with */
    int64_t distance;               /* bytes to the next sample, */
    int64_t since;                  /* and since the last one */
    int64_t mean;                   /* of distances */
    int64_t window, samples, bytes; /* when it began, and what there was in it */
    uint64_t random;
    Pending pending;
} sampling;

#define IDLE INT64_MAX

static _Atomic int64_t left = IDLE; /* bytes until the hook looks */
static _Atomic unsigned visits;

typedef enum { OBJECTS, MEMORY, DOMAINS } Domain;

static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_OBJ, PYMEM_DOMAIN_MEM};
static PyMemAllocatorEx below[DOMAINS];
static int installed[DOMAINS]; /* once; it may have been taken out by another since */

/* -- how far it is to the next sample --------------------------------------------------------------- */

/* Exponential, with this mean. The logarithm is right to a hundredth. */
static int64_t
exponential(int64_t mean)
{
    uint64_t *random = &sampling.random;
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    int zeros = __builtin_clzll(*random);
    double part = (double)(*random << zeros) / 9223372036854775808.0 - 1; /* 0 to 1 */
    double log2 = part * (1.3465 - 0.3465 * part) - zeros - 1;
    return (int64_t)(-0.6931471805599453 * log2 * (double)mean) + 1;
}

/* What has been counted since it was looked at last. */
static void
settle(void)
{
    int64_t counted =
        (int64_t)((uint64_t)sampling.granted - (uint64_t)atomic_load_explicit(&left, memory_order_relaxed));
    counted = counted < 0 ? 0 : counted; /* another interpreter came between */
    sampling.since += counted;
    sampling.bytes += counted;
    sampling.distance -= counted;
    sampling.granted -= counted;
}

static void
grant(void)
{
    int at_once = sampling.distance <= 0 || sampling.pending.progress != NO_SAMPLE;
    sampling.granted = at_once ? -1 : sampling.distance < STEP ? sampling.distance : STEP;
    atomic_store_explicit(&left, sampling.granted, memory_order_relaxed);
}

static void
set_mean(int64_t mean)
{
    mean = mean < LEAST_MEAN ? LEAST_MEAN : mean > MOST_MEAN ? MOST_MEAN : mean;
    if (sampling.distance > 0) { /* what is left of an exponential distance is one too */
        sampling.distance = (int64_t)((double)sampling.distance * (double)mean / (double)sampling.mean) + 1;
    }
    sampling.mean = mean;
}

static int64_t
window_length(void)
{
    int64_t needed = LEAST_IN_WINDOW * SECOND / sampling.rate;
    return needed > WINDOW ? needed : WINDOW;
}

/* The mean follows what was allocated in the window that is over. */
static void
end_window(int64_t now)
{
    int64_t lasted = now - sampling.window;
    if (sampling.rate == 0 || lasted < window_length()) {
        return;
    }
    double mean = (double)sampling.bytes * (double)SECOND / ((double)lasted * (double)sampling.rate);
    if (lasted < 4 * window_length()) {
        mean = (mean + (double)sampling.mean) / 2;
    }
    set_mean(mean > (double)MOST_MEAN ? MOST_MEAN : (int64_t)mean);
    sampling.window = now;
    sampling.samples = sampling.bytes = 0;
}

/* A burst does not exceed the rate by much: beyond it the samples of a window become rarer and rarer. */
static void
next_distance(void)
{
    sampling.samples++;
    if (sampling.rate != 0) {
        int64_t quota = sampling.rate * window_length() / SECOND, beyond = sampling.samples - quota;
        if (beyond >= 0 && beyond % (quota / 4 + 1) == 0) {
            set_mean(2 * sampling.mean);
        }
    }
    sampling.distance = exponential(sampling.mean);
    sampling.since = 0;
}

/* -- the class of an object, read as memory ---------------------------------------------------------- */

static uintptr_t
word_at(uintptr_t address, size_t offset)
{
    uintptr_t word = 0;
    return vmscope_load(address + offset, &word) ? word : 0;
}

/* Whether it derives from `root`, by its bases. */
static int
derives(uintptr_t type, const PyTypeObject *root)
{
    for (int i = 0; i < MOST_BASES && type != 0 && type < UINTPTR_MAX >> 16; i++) {
        if (type == (uintptr_t)root) {
            return 1;
        }
        type = word_at(type, offsetof(PyTypeObject, tp_base));
    }
    return 0;
}

/* What stands before an object of a class with these flags. */
static size_t
heads_of(uintptr_t flags)
{
#if PY_VERSION_HEX >= 0x030C0000
    const uintptr_t managed = Py_TPFLAGS_MANAGED_DICT | Py_TPFLAGS_MANAGED_WEAKREF;
#else
    const uintptr_t managed = Py_TPFLAGS_MANAGED_DICT;
#endif
    return ((flags & Py_TPFLAGS_HAVE_GC) != 0) + ((flags & managed) != 0);
}

static int
is_class(uintptr_t word, size_t heads)
{
    if (word == 0 || (uint32_t)word_at(word, 0) == 0 || !derives(word, &PyBaseObject_Type) ||
        !derives(word_at(word, offsetof(PyObject, ob_type)), &PyType_Type)) {
        return 0;
    }
    uintptr_t flags = word_at(word, offsetof(PyTypeObject, tp_flags));
    return (flags & Py_TPFLAGS_READY) && heads_of(flags) == heads;
}

/* 0 where there is none. */
static uintptr_t
find_class(uintptr_t memory, size_t size)
{
    sigset_t mask;
    Guard guard;
    uintptr_t volatile found = 0;
    vmscope_guard_enter(GUARD_MEMORY, &mask);
    if (sigsetjmp(guard.jump, 0) == 0) {
        vmscope_guard_set(&guard, 0, UINTPTR_MAX);
        for (size_t i = 0; i < PLACES && found == 0 && PLACE(i) + sizeof(uintptr_t) <= size; i++) {
            uintptr_t word = word_at(memory, PLACE(i));
            found = is_class(word, i) ? word : 0;
        }
    }
    vmscope_guard_clear();
    vmscope_guard_leave(GUARD_MEMORY, &mask);
    return found;
}

/* Text that is there already: nothing is encoded for it. */
static const char *
text_at_hand(PyObject *string)
{
    return string != NULL && PyUnicode_Check(string) && PyUnicode_IS_COMPACT_ASCII(string)
               ? (const char *)PyUnicode_1BYTE_DATA(string)
               : NULL;
}

static void
append(char *to, const char *text)
{
    size_t length = strlen(to), count = strlen(text), room = MOST_CLASS_NAME - 1 - length;
    count = count < room ? count : room;
    for (size_t i = 0; i < count; i++) {
        to[length + i] = text[i] == '.' ? '/' : text[i];
    }
    to[length + count] = '\0';
}

/* `module/Class`, without the module where it is built in. */
static void
name_class(const PyTypeObject *type, char *to)
{
    const char *name = NULL, *module = NULL;
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        name = text_at_hand(((const PyHeapTypeObject *)type)->ht_qualname);
        module =
            type->tp_dict == NULL ? NULL : text_at_hand(PyDict_GetItemWithError(type->tp_dict, sampling.module_key));
    }
    to[0] = '\0';
    if (name != NULL && module != NULL && strcmp(module, "builtins") != 0) {
        append(to, module);
        append(to, ".");
    }
    append(to, name != NULL ? name : type->tp_name);
}

/* -- samples ---------------------------------------------------------------------------------------- */

static void
look_at_object(Pending *pending)
{
    uintptr_t found = find_class(pending->memory, pending->size);
    pending->class_name[0] = '\0';
    if (found != 0) {
        name_class((const PyTypeObject *)found, pending->class_name);
    }
    pending->progress = NAMED_CLASS;
}

/* Writes it, unless that has to wait. */
static void
put_pending(Recorder *recorder, Pending *pending)
{
    if (pthread_mutex_trylock(&recorder->mutex) != 0) { /* this very thread may have it, for an event of its own */
        return;
    }
    Bytes *events = &recorder->chunk.events;
    pending->progress = NO_SAMPLE;
    if (pending->chunk != recorder->chunk_number) { /* of which it is no longer known: the next one weighs more */
        sampling.since += pending->weight;
    } else if (recorder->recording && recorder->types[OF_ALLOCATION_SAMPLE] != 0) {
        size_t length = strlen(pending->class_name);
        uint32_t class = length == 0 ? 0 : vmscope_chunk_class(&recorder->chunk, pending->class_name, length);
        size_t at = begin_event(events, recorder->types[OF_ALLOCATION_SAMPLE]);
        put_number(events, (uint64_t)pending->time);
        put_number(events, pending->thread);
        put_number(events, pending->stack);
        put_number(events, class);
        put_number(events, (uint64_t)pending->weight);
        end_event(events, at);
    }
    pthread_mutex_unlock(&recorder->mutex);
}

/* The running thread's, with both locks. 0: it runs vmscope's own code, which is not the program's. */
static int
take_stack(Recorder *recorder, PyThreadState *state, Pending *pending)
{
    Snapshot *snapshot = recorder->current.snapshot;
    int main = state->interp == PyInterpreterState_Main(); /* those of others have the same numbers */
    pending->chunk = recorder->chunk_number;
    pending->stack = 0;
    pending->thread =
        !main ? 0
              : vmscope_chunk_thread(&recorder->chunk, state->id, state->thread_id, (int64_t)state->native_thread_id);
    if (vmscope_copy_snapshot(snapshot, state->interp, recorder->depth, state->id) && snapshot->thread_count != 0 &&
        vmscope_name_snapshot(snapshot)) {
        pending->stack = vmscope_flight_stack(recorder, &recorder->current, &snapshot->threads[0]);
        if (pending->stack == 0 && snapshot->threads[0].count != 0) {
            return 0;
        }
    }
    pending->stack = sampling.stack ? pending->stack : 0;
    return 1;
}

/* The thread that allocates; NULL where it is not one of Python's. */
static PyThreadState *
running_thread(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    PyThreadState *state = _PyThreadState_UncheckedGet();
    return state != NULL && state->thread_id == PyThread_get_thread_ident() ? state : NULL;
#endif
}

/* Before an allocation: whether it is to be sampled. */
static int
visit(void)
{
    atomic_fetch_add_explicit(&visits, 1, memory_order_relaxed);
    PyThreadState *state = running_thread();
    if (state == NULL || pthread_mutex_trylock(&lock) != 0) {
        return 0;
    }
    int due = 0, error = errno;
    if (sampling.recorder != NULL) {
        Pending *pending = &sampling.pending;
        settle();
        if (pending->progress == UNNAMED && pending->interpreter == state->interp) {
            look_at_object(pending);
        }
        if (pending->progress == NAMED_CLASS) {
            put_pending(sampling.recorder, pending);
        }
        end_window(vmscope_now());
        due = sampling.distance <= 0 && pending->progress == NO_SAMPLE;
        grant();
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return due;
}

/* After it: what was given is the sample. `fresh`: nothing stands in it yet. */
static void *
take(Domain domain, void *memory, size_t size, int fresh)
{
    PyThreadState *state = running_thread();
    if (memory == NULL || state == NULL || pthread_mutex_trylock(&lock) != 0) {
        return memory;
    }
    int error = errno;
    Recorder *recorder = sampling.recorder;
    Pending *pending = &sampling.pending;
    if (recorder != NULL && pending->progress == NO_SAMPLE && pthread_mutex_trylock(&recorder->mutex) == 0) {
        settle();
        pending->weight = sampling.since;
        next_distance();
        if (take_stack(recorder, state, pending)) {
            pending->time = vmscope_now();
            pending->memory = (uintptr_t)memory;
            pending->size = size;
            pending->interpreter = state->interp;
            pending->class_name[0] = '\0';
            pending->progress = domain == OBJECTS ? UNNAMED : NAMED_CLASS; /* in the other there are no objects */
            for (size_t i = 0; fresh && i < PLACES && PLACE(i) + sizeof(uintptr_t) <= size; i++) {
                memset((char *)memory + PLACE(i), 0, sizeof(uintptr_t));
            }
        }
        pthread_mutex_unlock(&recorder->mutex);
        grant();
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return memory;
}

/* -- the hooks -------------------------------------------------------------------------------------- */

/* Counts; whether it is time to look. */
static inline int
count(size_t size)
{
    int64_t rest = (int64_t)((uint64_t)atomic_load_explicit(&left, memory_order_relaxed) - size);
    atomic_store_explicit(&left, rest, memory_order_relaxed);
    return __builtin_expect(rest < 0, 0);
}

static __attribute__((noinline)) void *
visited_malloc(Domain domain, size_t size)
{
    int due = visit();
    void *memory = below[domain].malloc(below[domain].ctx, size);
    return due ? take(domain, memory, size, 1) : memory;
}

static __attribute__((noinline)) void *
visited_calloc(Domain domain, size_t number, size_t size)
{
    int due = visit();
    void *memory = below[domain].calloc(below[domain].ctx, number, size);
    return due ? take(domain, memory, number * size, 1) : memory;
}

static inline void *
counted_malloc(Domain domain, size_t size)
{
    return count(size) ? visited_malloc(domain, size) : below[domain].malloc(below[domain].ctx, size);
}

static inline void *
counted_calloc(Domain domain, size_t number, size_t size)
{
    return count(number * size) ? visited_calloc(domain, number, size)
                                : below[domain].calloc(below[domain].ctx, number, size);
}

/* What grows or shrinks where it is has been counted before. */
static inline void *
counted_realloc(Domain domain, void *memory, size_t size)
{
    if (atomic_load_explicit(&left, memory_order_relaxed) < 0) { /* the one that is to be looked at may move */
        (void)visit();
    }
    uintptr_t before = (uintptr_t)memory;
    void *moved = below[domain].realloc(below[domain].ctx, memory, size);
    return (uintptr_t)moved != before && moved != NULL && count(size) && visit()
               ? take(domain, moved, size, before == 0)
               : moved;
}

#define HOOKS(domain, name)                                                                                            \
    static void *name##_malloc(void *Py_UNUSED(context), size_t size)                                                  \
    {                                                                                                                  \
        return counted_malloc(domain, size);                                                                           \
    }                                                                                                                  \
    static void *name##_calloc(void *Py_UNUSED(context), size_t number, size_t size)                                   \
    {                                                                                                                  \
        return counted_calloc(domain, number, size);                                                                   \
    }                                                                                                                  \
    static void *name##_realloc(void *Py_UNUSED(context), void *memory, size_t size)                                   \
    {                                                                                                                  \
        return counted_realloc(domain, memory, size);                                                                  \
    }

HOOKS(OBJECTS, objects)
HOOKS(MEMORY, memory)

static const PyMemAllocatorEx hooks[] = {
    {.malloc = objects_malloc, .calloc = objects_calloc, .realloc = objects_realloc},
    {.malloc = memory_malloc, .calloc = memory_calloc, .realloc = memory_realloc},
};

/* With the lock, so that it stays a visit: whether the hook is called. */
static int
is_heard(Domain domain)
{
    unsigned before = atomic_load(&visits);
    atomic_store(&left, -1);
    if (domain == OBJECTS) {
        PyObject_Free(PyObject_Malloc(1));
    } else {
        PyMem_Free(PyMem_Malloc(1));
    }
    return atomic_load(&visits) != before;
}

/* Where it is not, or not any more: whoever was below, and left, has taken it out. */
static void
install(Domain domain)
{
    PyMemAllocatorEx hook = hooks[domain];
    if (!installed[domain] || !is_heard(domain)) {
        PyMem_GetAllocator(domains[domain], &below[domain]);
        hook.ctx = below[domain].ctx;
        hook.free = below[domain].free; /* is called at once, and costs nothing */
        PyMem_SetAllocator(domains[domain], &hook);
        installed[domain] = 1;
    }
}

static void
take_out(Domain domain)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(domains[domain], &now);
    if (installed[domain] && now.malloc == hooks[domain].malloc) { /* else another's stands above, and calls it */
        PyMem_SetAllocator(domains[domain], &below[domain]);
        installed[domain] = 0;
    }
}

/* -- on and off ------------------------------------------------------------------------------------- */

static void
switch_off(void)
{
    sampling.recorder = NULL;
    sampling.pending.progress = NO_SAMPLE;
    atomic_store(&left, IDLE);
}

void
vmscope_flight_stop_allocations(Recorder *self)
{
    if (sampling.recorder != self) {
        return;
    }
    (void)visit(); /* the last one is written */
    pthread_mutex_lock(&lock);
    switch_off();
    pthread_mutex_unlock(&lock);
    take_out(OBJECTS);
    take_out(MEMORY);
}

void
vmscope_flight_forked_allocations(Recorder *self)
{
    pthread_mutex_init(&lock, NULL);
    if (sampling.recorder == self) {
        switch_off();
    }
}

static void
begin(Recorder *self, int64_t rate)
{
    sampling.recorder = self;
    sampling.rate = rate;
    sampling.mean = rate == 0 ? UNLIMITED : FIRST_MEAN;
    sampling.window = vmscope_now();
    sampling.samples = sampling.bytes = sampling.since = 0;
    sampling.random ^= (uint64_t)sampling.window | 1;
    sampling.random = sampling.random == 0 ? 1 : sampling.random; /* where it would stay */
    sampling.distance = exponential(sampling.mean);
    sampling.pending.progress = NO_SAMPLE;
}

PyObject *
vmscope_flight_sample_allocations(PyObject *object, PyObject *args)
{
    Recorder *self = (Recorder *)object;
    long long rate;
    int stack;
    if (!PyArg_ParseTuple(args, "Lp:sample_allocations", &rate, &stack)) {
        return NULL;
    }
    if (rate < 0) {
        vmscope_flight_stop_allocations(self);
        Py_RETURN_NONE;
    }
    if (sampling.module_key == NULL && (sampling.module_key = PyUnicode_InternFromString("__module__")) == NULL) {
        return NULL;
    }
    (void)PyObject_Hash(sampling.module_key);
    pthread_mutex_lock(&lock);
    if (sampling.recorder != NULL) {
        settle();
    }
    if (sampling.recorder != self || sampling.rate != rate) {
        begin(self, rate);
    }
    sampling.stack = stack;
    install(OBJECTS);
    install(MEMORY);
    grant();
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

#endif
