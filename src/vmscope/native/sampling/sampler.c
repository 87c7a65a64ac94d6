/* The sampler: a thread that looks at the process now and then and sets the counters that nothing else feeds.
 *
 * What the kernel and malloc tell is read without the GIL; the rest in one short visit under it. While the
 * program uses no CPU there is nothing to see, and nothing is read but what a sample before had to put off. */
#define _GNU_SOURCE
#include "attributes.h"
#include "sampling/proc_stats.h"
#include "stacks/stack_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MS 1000000                 /* ns */
#define IDLE_INTERVAL (500 * MS)   /* two looks a second at the CPU clock while the program stands still */
#define IDLE_CPU 50000             /* ns of the program's CPU that are not worth a visit */
#define SLOW_PERIOD (250 * MS)     /* what takes longer the more there is: four times a second at most, */
#define SLOW_FACTOR 200            /* and a pause of this many times its CPU time, hence 0.5 % of a core */
#define CROWD 100                  /* threads: more */
#define CROWD_PERIOD (5000LL * MS) /* are counted so often at most */
#define NO_COLLECTION 2147480333   /* a threshold that keeps the collector off: no number of a program's */
#define SMOOTHING 0.125            /* weight of a visit in the contention estimate */

#ifndef Py_GIL_DISABLED /* there it has other counts */
#define HAS_LONG_LIVED 1
#define SEARCHED 16384 /* bytes of the interpreter's state; they begin at 7,600 at most */
#endif

/* Each field of a sample: its name in the catalogue's `feed`. */
#define PROCESS_FIELDS(X)                                                                                              \
    X(CPU_USER, "cpu.user")                                                                                            \
    X(CPU_SYSTEM, "cpu.system")                                                                                        \
    X(FAULTS_MINOR, "faults.minor")                                                                                    \
    X(FAULTS_MAJOR, "faults.major")                                                                                    \
    X(SWITCHES_VOLUNTARY, "switches.voluntary")                                                                        \
    X(SWITCHES_INVOLUNTARY, "switches.involuntary")                                                                    \
    X(RSS_PEAK, "memory.peak")                                                                                         \
    X(RSS, "memory.resident")                                                                                          \
    X(SIZE, "memory.virtual")                                                                                          \
    X(FILES, "files.open")                                                                                             \
    X(FILES_LIMIT, "files.limit")
#define VISIT_FIELDS(X)                                                                                                \
    X(GC_COUNT_0, "gc.count.0")                                                                                        \
    X(GC_COUNT_1, "gc.count.1")                                                                                        \
    X(GC_COUNT_2, "gc.count.2")                                                                                        \
    X(GC_THRESHOLD_0, "gc.threshold.0")                                                                                \
    X(GC_THRESHOLD_1, "gc.threshold.1")                                                                                \
    X(GC_THRESHOLD_2, "gc.threshold.2")                                                                                \
    X(GC_ENABLED, "gc.enabled")                                                                                        \
    X(GC_GARBAGE, "gc.garbage")                                                                                        \
    X(THREADS_LIVE, "threads.live")                                                                                    \
    X(THREADS_PEAK, "threads.peak")                                                                                    \
    X(THREADS_DAEMON, "threads.daemon")                                                                                \
    X(THREADS_STARTED, "threads.started")                                                                              \
    X(GIL_ENABLED, "gil.enabled")                                                                                      \
    X(GIL_INTERVAL, "gil.interval")                                                                                    \
    X(GIL_WAITS, "gil.waits")                                                                                          \
    X(GIL_WAITED, "gil.waited")                                                                                        \
    X(GIL_LONGEST, "gil.longest")                                                                                      \
    X(GIL_WAITING, "gil.waiting")                                                                                      \
    X(GIL_CONTENTION, "gil.contention")                                                                                \
    X(MODULES, "modules")                                                                                              \
    X(MODULES_LOADED, "modules.loaded")                                                                                \
    X(MODULES_UNLOADED, "modules.unloaded")                                                                            \
    X(TRACED, "traced")                                                                                                \
    X(TRACED_PEAK, "traced.peak")                                                                                      \
    X(VISITS, "visits")                                                                                                \
    X(VISIT_TIME, "visit.time")                                                                                        \
    X(VISIT_LONGEST, "visit.longest")                                                                                  \
    X(OWN_CPU, "own.cpu")
#ifdef HAS_POOLS
#define POOL_FIELDS(X)                                                                                                 \
    X(POOL_BYTES, "pools.bytes")                                                                                       \
    X(POOL_CAPACITY, "pools.capacity") X(POOL_BLOCKS, "pools.blocks") X(POOL_ARENAS, "pools.arenas")
#else
#define POOL_FIELDS(X)
#endif
#ifdef HAS_MALLINFO
#define MALLOC_FIELDS(X)                                                                                               \
    X(MALLOC_USED, "malloc.used") X(MALLOC_CAPACITY, "malloc.capacity") X(MALLOC_MAPPED, "malloc.mapped")
#else
#define MALLOC_FIELDS(X)
#endif
#ifdef HAS_LONG_LIVED
#define OBJECT_FIELDS(X) X(GC_OBJECTS, "gc.objects")
#else
#define OBJECT_FIELDS(X)
#endif
#define FIELDS(X) PROCESS_FIELDS(X) VISIT_FIELDS(X) POOL_FIELDS(X) MALLOC_FIELDS(X) OBJECT_FIELDS(X)

#define IDENTIFIER(identifier, name) identifier,
#define NAME(identifier, name) name,
enum { FIELDS(IDENTIFIER) FIELD_COUNT };
static const char *const field_names[] = {FIELDS(NAME)};

/* What is looked up at each visit, made once. */
enum { THREADING, ACTIVE, DAEMONIC, TRACEMALLOC, GET_TRACED, NAME_COUNT };

static const char *const looked_up[] = {"threading", "_active", "_daemonic", "_tracemalloc", "get_traced_memory"};

typedef struct {
    PyObject_HEAD Thread thread;
    int64_t interval, delay; /* ns */
    PyInterpreterState *interpreter;
    LongSlot *slots[FIELD_COUNT];
    PyObject *get_count, *get_threshold, *garbage, *get_interval, *is_gil_enabled, *count_threads;
    PyObject *names[NAME_COUNT];
    const Py_ssize_t *long_lived; /* objects that outlived a full collection, and those that came to them since */

    pthread_mutex_t reading; /* of what needs no GIL, by the thread or by sample() */
    int64_t cpu;             /* the program's, at the last visit */
    int64_t slow_due;        /* when what takes longer is to be read next */
    int slow_owed;           /* there was something to see since it was read */
#ifdef HAS_MALLINFO
    Malloc malloc;
#endif

    pthread_mutex_t visiting; /* never waited for; only without a GIL is it ever taken */
    int64_t peak, modules, loaded, unloaded, waits, waited, longest_wait, visits, visit_time, longest_visit;
    int64_t switch_interval;
    int64_t live, started, running, active; /* threads, as last counted; by which a change is seen */
    _Atomic int64_t crowd_due;              /* when to count many, and daemons, again */
    _Atomic int crowd_owed;                 /* there was a change since they were counted */
    double contended, observed;             /* smoothed: the waits beyond a switch interval, and all there was */
} Sampler;

/* In a forked child: thread states of the parent's time. */
static _Atomic int64_t states_before;

static void
put(Sampler *self, int field, int64_t value)
{
    if (self->slots[field] != NULL) {
        atomic_store_explicit(&self->slots[field]->value, value, memory_order_relaxed);
    }
}

/* -- without the GIL ------------------------------------------------------------------------------ */

static int64_t
nanoseconds(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

/* CPU that the program has used, vmscope's threads not counted. */
static int64_t
program_cpu(void)
{
    return vmscope_clock(CLOCK_PROCESS_CPUTIME_ID) - vmscope_own_cpu();
}

#ifdef HAS_MALLINFO
static void
read_malloc(Sampler *self)
{
    if (vmscope_read_malloc(&self->malloc) == 0) {
        put(self, MALLOC_USED, self->malloc.used);
        put(self, MALLOC_CAPACITY, self->malloc.capacity);
        put(self, MALLOC_MAPPED, self->malloc.mapped);
    }
}
#endif

/* What takes longer the larger the process is. */
static void
read_slow(Sampler *self, Thread *thread)
{
    int64_t start = vmscope_clock(CLOCK_THREAD_CPUTIME_ID);
    int64_t files = vmscope_count_files(thread == NULL);
    if (files >= 0) {
        put(self, FILES, files);
    }
    int64_t peak = vmscope_read_peak();
    if (peak >= 0) {
        put(self, RSS_PEAK, peak);
    }
#ifdef HAS_POOLS
    Pools pools;
    if (vmscope_count_pools(&pools, thread) == 0) {
        put(self, POOL_BYTES, pools.bytes);
        put(self, POOL_CAPACITY, pools.capacity);
        put(self, POOL_BLOCKS, pools.blocks);
        put(self, POOL_ARENAS, pools.arenas);
    }
#endif
#ifdef HAS_MALLINFO
    self->malloc.due = thread == NULL ? 0 : self->malloc.due;
    read_malloc(self);
#endif
    int64_t pause = (vmscope_clock(CLOCK_THREAD_CPUTIME_ID) - start) * SLOW_FACTOR;
    self->slow_due = vmscope_now() + (pause > SLOW_PERIOD ? pause : SLOW_PERIOD);
    self->slow_owed = 0;
}

/* While the program stands still: what the last samples put off, once, so that no value stays behind for good. */
static void
read_owed(Sampler *self)
{
    pthread_mutex_lock(&self->reading);
    if (self->slow_owed && vmscope_now() >= self->slow_due) {
        read_slow(self, &self->thread);
        put(self, OWN_CPU, vmscope_own_cpu());
    }
#ifdef HAS_MALLINFO
    if (self->malloc.owed) {
        read_malloc(self);
    }
#endif
    pthread_mutex_unlock(&self->reading);
}

/* `thread` is NULL when the program itself asks: then all is read. */
static void
read_process(Sampler *self, Thread *thread)
{
    struct rusage usage;
    struct rlimit limit;
    Memory memory;
    pthread_mutex_lock(&self->reading);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        put(self, CPU_USER, nanoseconds(usage.ru_utime));
        put(self, CPU_SYSTEM, nanoseconds(usage.ru_stime));
        put(self, FAULTS_MINOR, usage.ru_minflt);
        put(self, FAULTS_MAJOR, usage.ru_majflt);
        put(self, SWITCHES_VOLUNTARY, usage.ru_nvcsw);
        put(self, SWITCHES_INVOLUNTARY, usage.ru_nivcsw);
    }
    if (vmscope_read_memory(&memory) == 0) {
        put(self, RSS, memory.resident);
        put(self, SIZE, memory.size);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        put(self, FILES_LIMIT, limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur);
    }
    self->slow_owed = 1;
    if (thread == NULL || vmscope_now() >= self->slow_due) {
        read_slow(self, thread);
    }
    put(self, OWN_CPU, vmscope_own_cpu());
    pthread_mutex_unlock(&self->reading);
}

/* -- under the GIL: nothing here runs a line of Python -------------------------------------------- */

/* The first `count` ints of the tuple that a builtin function returns. */
static void
put_ints(Sampler *self, PyObject *function, int field, Py_ssize_t count)
{
    PyObject *tuple = PyObject_CallNoArgs(function);
    for (Py_ssize_t i = 0; tuple != NULL && PyTuple_Check(tuple) && i < count && i < PyTuple_GET_SIZE(tuple); i++) {
        int64_t value = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (value != NO_COLLECTION) { /* else the program's own threshold, seen before, is back in a moment */
            put(self, field + (int)i, value);
        }
    }
    Py_XDECREF(tuple);
    PyErr_Clear();
}

/* What a dict has under a name, a new reference; NULL, without an exception, where it has nothing. */
static PyObject *
item(PyObject *dict, PyObject *name)
{
#ifdef Py_GIL_DISABLED
    PyObject *found = NULL;
    (void)PyDict_GetItemRef(dict, name, &found);
#else
    PyObject *found = Py_XNewRef(PyDict_GetItemWithError(dict, name));
#endif
    PyErr_Clear();
    return found;
}

/* A module's variable, if it is loaded; a new reference. */
static PyObject *
loaded(PyObject *modules, PyObject *module, PyObject *variable)
{
    PyObject *found = item(modules, module);
    PyObject *value = found != NULL && PyModule_Check(found) ? item(PyModule_GetDict(found), variable) : NULL;
    Py_XDECREF(found);
    return value;
}

static int64_t
count_daemons(PyObject *active, PyObject *name)
{
    int64_t count = 0;
    PyObject *threads = active != NULL ? PyDict_Values(active) : NULL;
    for (Py_ssize_t i = 0; threads != NULL && i < PyList_GET_SIZE(threads); i++) {
        PyObject *daemon = PyObject_GenericGetAttr(PyList_GET_ITEM(threads, i), name); /* no __getattribute__ */
        count += daemon == Py_True;
        Py_XDECREF(daemon);
    }
    Py_XDECREF(threads);
    PyErr_Clear();
    return count;
}

/* Threads that _thread started and that run. */
static int64_t
count_running(Sampler *self)
{
    PyObject *count = PyObject_CallNoArgs(self->count_threads);
    int64_t running = count == NULL ? 0 : PyLong_AsLongLong(count);
    Py_XDECREF(count);
    PyErr_Clear();
    return running;
}

/* The program's threads; this one of vmscope's is not among them. */
static int64_t
count_live(Sampler *self)
{
#ifdef Py_GIL_DISABLED        /* the list of thread states changes while it is walked */
    return self->running + 1; /* the main one, which no thread started */
#else
    int64_t live = -1 - atomic_load(&vmscope_states_in_use);
    for (PyThreadState *state = vmscope_first_state(self->interpreter); state != NULL;
         state = vmscope_next_state(state)) {
        live++;
    }
    return live;
#endif
}

/* To count many takes long, and to ask each whether it is a daemon, which it stays; so that is not done at each visit. */
static void
count_threads(Sampler *self, PyObject *active)
{
    int64_t now = vmscope_now();
    if (self->live > CROWD && now < self->crowd_due) {
        return;
    }
    self->live = count_live(self);
    self->peak = self->live > self->peak ? self->live : self->peak;
    put(self, THREADS_LIVE, self->live);
    put(self, THREADS_PEAK, self->peak);
    if (self->crowd_owed || now >= self->crowd_due) {
        self->crowd_due = now + CROWD_PERIOD;
        self->crowd_owed = 0;
        put(self, THREADS_DAEMON, count_daemons(active, self->names[DAEMONIC]));
    }
}

/* `own` is a thread state of vmscope's, and the last one that was made: its number is how many there ever were. */
static void
read_threads(Sampler *self, PyObject *modules, PyThreadState *own)
{
    int64_t started = (int64_t)PyThreadState_GetID(own) - atomic_load(&vmscope_own_states);
    put(self, THREADS_STARTED, started - atomic_load(&states_before));
    PyObject *found = loaded(modules, self->names[THREADING], self->names[ACTIVE]);
    PyObject *active = found != NULL && PyDict_CheckExact(found) ? found : NULL;
    int64_t running = count_running(self), known = active != NULL ? PyDict_Size(active) : 0;
    if (started != self->started || running != self->running || known != self->active) {
        self->crowd_owed = 1;
    }
    self->started = started;
    self->running = running;
    self->active = known;
    count_threads(self, active);
    Py_XDECREF(found);
}

static void
read_modules(Sampler *self, PyObject *modules)
{
    int64_t now = PyDict_Size(modules), grown = now - self->modules;
    self->loaded += grown > 0 ? grown : 0;
    self->unloaded -= grown < 0 ? grown : 0;
    self->modules = now;
    put(self, MODULES, now);
    put(self, MODULES_LOADED, self->loaded);
    put(self, MODULES_UNLOADED, self->unloaded);
}

static void
read_switch_interval(Sampler *self)
{
    PyObject *seconds = PyObject_CallNoArgs(self->get_interval);
    if (seconds != NULL) {
        self->switch_interval = (int64_t)(PyFloat_AsDouble(seconds) * 1e9 + 0.5);
        put(self, GIL_INTERVAL, self->switch_interval);
        Py_DECREF(seconds);
    }
    PyErr_Clear();
}

static void
read_interpreter(Sampler *self, PyThreadState *own)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
#ifndef Py_GIL_DISABLED
    int collecting = PyGC_Disable(); /* a collection would run the program's finalizers here */
#else
    int collecting = PyGC_IsEnabled();
#endif
    put_ints(self, self->get_count, GC_COUNT_0, 3);
    put_ints(self, self->get_threshold, GC_THRESHOLD_0, 3);
    put(self, GC_ENABLED, collecting);
    put(self, GC_GARBAGE, PyList_GET_SIZE(self->garbage));
#ifdef HAS_LONG_LIVED
    if (self->long_lived != NULL) {
        put(self, GC_OBJECTS, self->long_lived[0] + self->long_lived[1]);
    }
#endif
    read_threads(self, modules, own);
    read_modules(self, modules);
    read_switch_interval(self);
    PyObject *get_traced_memory = loaded(modules, self->names[TRACEMALLOC], self->names[GET_TRACED]);
    if (get_traced_memory != NULL) {
        put_ints(self, get_traced_memory, TRACED, 2);
        Py_DECREF(get_traced_memory);
    }
    PyObject *enabled = self->is_gil_enabled == NULL ? NULL : PyObject_CallNoArgs(self->is_gil_enabled);
    put(self, GIL_ENABLED, enabled != Py_False);
    Py_XDECREF(enabled);
#ifndef Py_GIL_DISABLED
    if (collecting) {
        PyGC_Enable();
    }
#endif
}

/* -- while the sampler waits for the GIL ---------------------------------------------------------- */

/* Who waits, and since when; NULL: none. The mirror's thread shows it, and has `use` while it does. */
static struct {
    pthread_mutex_t mutex, use; /* `mutex` is held for some instructions only */
    Sampler *sampler;
    int64_t since, due; /* due: when what needs no GIL is to be read in its place */
} waiting = {.mutex = PTHREAD_MUTEX_INITIALIZER, .use = PTHREAD_MUTEX_INITIALIZER};

static void
set_waiting(Sampler *self, int64_t since)
{
    pthread_mutex_lock(&waiting.mutex);
    waiting.sampler = self;
    waiting.since = since;
    waiting.due = since + (self == NULL ? 0 : self->interval);
    pthread_mutex_unlock(&waiting.mutex);
}

/* As put_wait will have it in the end, if that were now. */
static void
show_wait(Sampler *self, int64_t wait)
{
    put(self, GIL_WAITING, wait);
    put(self, GIL_WAITS, self->waits + (wait > 0 && wait >= self->switch_interval / 2));
    put(self, GIL_WAITED, self->waited + wait);
    put(self, GIL_LONGEST, wait > self->longest_wait ? wait : self->longest_wait);
}

/* Of two threads that want the GIL one waits for a switch interval at least; what is beyond that is the others'. */
static void
put_wait(Sampler *self, int64_t wait)
{
    int64_t excess = wait - self->switch_interval;
    self->contended += SMOOTHING * ((excess > 0 ? (double)excess : 0.0) - self->contended);
    self->observed += SMOOTHING * ((double)(excess > 0 ? wait : self->switch_interval) - self->observed);
    self->waits += wait >= self->switch_interval / 2;
    self->waited += wait;
    self->longest_wait = wait > self->longest_wait ? wait : self->longest_wait;
    show_wait(self, 0);
    put(self, GIL_CONTENTION, self->observed > 0 ? (int64_t)(100 * self->contended / self->observed + 0.5) : 0);
}

void
vmscope_sampler_show_wait(void)
{
    pthread_mutex_lock(&waiting.use);
    pthread_mutex_lock(&waiting.mutex);
    Sampler *self = waiting.sampler;
    int64_t now = vmscope_now();
    int due = self != NULL && now >= waiting.due;
    if (self != NULL) {
        show_wait(self, now - waiting.since);
    }
    if (due) {
        waiting.due = now + self->interval;
    }
    pthread_mutex_unlock(&waiting.mutex);
    if (due) {
        read_process(self, &self->thread);
    }
    pthread_mutex_unlock(&waiting.use);
}

/* Whether a thread keeps the GIL; asked while the program uses no CPU: then it is in a call that waits. */
static int
is_gil_kept(void)
{
#ifdef HAS_STACKS
    return vmscope_see_gil().holder != 0;
#else
    return 0;
#endif
}

static void
visit(Sampler *self)
{
    PyThreadState *state = PyThreadState_New(self->interpreter);
    if (state == NULL) {
        return;
    }
    atomic_fetch_add(&vmscope_own_states, 1);
    int64_t asked = vmscope_now();
    set_waiting(self, asked);
    PyEval_RestoreThread(state);
    set_waiting(NULL, 0);
    int64_t start = vmscope_now(); /* after all times that have been shown */
    /* A stop may have come while this waited; its caller has the GIL no more only because it joins. */
    int reads = !vmscope_thread_is_stopping(&self->thread) && pthread_mutex_trylock(&self->visiting) == 0;
    if (reads) {
        read_interpreter(self, state);
    }
    put_wait(self, start - asked);
    if (reads) {
        int64_t spent = vmscope_now() - start;
        self->visit_time += spent;
        self->longest_visit = spent > self->longest_visit ? spent : self->longest_visit;
        put(self, VISITS, ++self->visits);
        put(self, VISIT_TIME, self->visit_time);
        put(self, VISIT_LONGEST, self->longest_visit);
        pthread_mutex_unlock(&self->visiting);
    }
    PyThreadState_Clear(state);
    PyThreadState_DeleteCurrent();
}

/* -- the thread ----------------------------------------------------------------------------------- */

static void
sampler_body(PyObject *object)
{
    Sampler *self = (Sampler *)object;
    vmscope_thread_unshare_files();
    int64_t pause = self->delay, idle = self->interval > IDLE_INTERVAL ? self->interval : IDLE_INTERVAL;
    do {
        while (!vmscope_thread_wait(&self->thread, pause)) {
            int64_t cpu = program_cpu();
            if (cpu - self->cpu >= IDLE_CPU) {
                self->cpu = cpu;
                read_process(self, &self->thread);
                visit(self);
                pause = self->interval;
            } else {
                self->contended = self->observed = 0;
                put(self, GIL_CONTENTION, 0);
                read_owed(self);
                int kept = is_gil_kept();
                if (kept || (self->crowd_owed && vmscope_now() >= self->crowd_due)) {
                    visit(self);
                }
                pause = kept ? self->interval : pause * 2 < idle ? pause * 2 : idle;
            }
        }
    } while (!vmscope_thread_leave(&self->thread));
}

/* -- the Python face ------------------------------------------------------------------------------ */

static PyObject *
attribute(const char *module, const char *name)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *found = imported == NULL ? NULL : vmscope_attribute(imported, name);
    Py_XDECREF(imported);
    return found;
}

#ifdef HAS_LONG_LIVED
/* The collector counts them for itself alone. Its counts stand in the interpreter's state, after the
 * pointers to gc.garbage and gc.callbacks, by which they are found; NULL where they are not, or not kept. */
static const Py_ssize_t *
find_long_lived(PyInterpreterState *interpreter, PyObject *garbage)
{
    PyObject *callbacks = attribute("gc", "callbacks");
    const Py_ssize_t *found = NULL;
    PyObject *const *words = (PyObject *const *)interpreter; /* of 100,000 bytes and more */
    size_t behind = vmscope_old_objects();
    for (size_t i = 0; callbacks != NULL && behind != 0 && i < SEARCHED / sizeof *words && found == NULL; i++) {
        if (words[i] == garbage && words[i + 1] == callbacks) {
            found = (const Py_ssize_t *)(words + i + 1 + behind);
        }
    }
    Py_XDECREF(callbacks);
    PyErr_Clear();
    return found;
}
#endif

static int
take_slots(Sampler *self, PyObject *slots, NativeState *state)
{
    PyObject *name, *slot;
    Py_ssize_t position = 0;
    while (PyDict_Next(slots, &position, &name, &slot)) {
        int field = 0;
        while (field < FIELD_COUNT &&
               !(PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, field_names[field]) == 0)) {
            field++;
        }
        if (field == FIELD_COUNT) {
            PyErr_Format(PyExc_ValueError, "a sample has no field %R", name);
            return -1;
        }
        if (!PyObject_TypeCheck(slot, state->long_slot)) {
            PyErr_Format(PyExc_TypeError, "a field's slot is a LongSlot, not %.100s", Py_TYPE(slot)->tp_name);
            return -1;
        }
        Py_XSETREF(self->slots[field], (LongSlot *)Py_NewRef(slot));
    }
    return 0;
}

static PyObject *
sampler_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"slots", NULL};
    PyObject *slots;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Sampler", names, &PyDict_Type, &slots)) {
        return NULL;
    }
    Sampler *self = (Sampler *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    vmscope_thread_init(&self->thread, (PyObject *)self, SAMPLER_THREAD, sampler_body);
    pthread_mutex_init(&self->reading, NULL);
    pthread_mutex_init(&self->visiting, NULL);
    self->interpreter = PyInterpreterState_Get();
    self->is_gil_enabled = Py_XNewRef(PySys_GetObject("_is_gil_enabled")); /* 3.13 */
    NativeState *state = vmscope_state_of((PyObject *)self);
    if (state == NULL || take_slots(self, slots, state) < 0 ||
        (self->get_count = attribute("gc", "get_count")) == NULL ||
        (self->get_threshold = attribute("gc", "get_threshold")) == NULL ||
        (self->garbage = attribute("gc", "garbage")) == NULL ||
        (self->get_interval = attribute("sys", "getswitchinterval")) == NULL ||
        (self->count_threads = attribute("_thread", "_count")) == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    for (int i = 0; i < NAME_COUNT; i++) {
        self->names[i] = PyUnicode_InternFromString(looked_up[i]);
        if (self->names[i] == NULL) {
            Py_DECREF(self);
            return NULL;
        }
    }
    if (!PyList_Check(self->garbage)) {
        Py_DECREF(self);
        PyErr_SetString(PyExc_TypeError, "gc.garbage is not a list");
        return NULL;
    }
#ifdef HAS_LONG_LIVED
    self->long_lived = find_long_lived(self->interpreter, self->garbage);
#endif
    return (PyObject *)self;
}

static void
sampler_dealloc(PyObject *object)
{
    Sampler *self = (Sampler *)object; /* no thread runs: a running one is active, or its sampler leaked */
    pthread_mutex_lock(&waiting.use);  /* the mirror's may just be showing that one's last wait */
    pthread_mutex_unlock(&waiting.use);
    for (int i = 0; i < FIELD_COUNT; i++) {
        Py_XDECREF(self->slots[i]);
    }
    for (int i = 0; i < NAME_COUNT; i++) {
        Py_XDECREF(self->names[i]);
    }
    Py_XDECREF(self->get_count);
    Py_XDECREF(self->get_threshold);
    Py_XDECREF(self->garbage);
    Py_XDECREF(self->get_interval);
    Py_XDECREF(self->is_gil_enabled);
    Py_XDECREF(self->count_threads);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
sampler_start(PyObject *object, PyObject *args)
{
    Sampler *self = (Sampler *)object;
    long long interval, delay;
    if (!PyArg_ParseTuple(args, "LL:start", &interval, &delay)) {
        return NULL;
    }
    if (interval <= 0 || delay < 0) {
        PyErr_SetString(PyExc_ValueError, "the interval is more than 0 ns, the delay at least 0");
        return NULL;
    }
    self->interval = interval;
    self->delay = delay;
    if (vmscope_thread_start(&self->thread) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
sampler_stop(PyObject *object, PyObject *args)
{
    long long timeout;
    if (!PyArg_ParseTuple(args, "L:stop", &timeout)) {
        return NULL;
    }
    return PyBool_FromLong(vmscope_thread_stop(&((Sampler *)object)->thread, timeout));
}

static PyObject *
sampler_sample(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Sampler *self = (Sampler *)object;
    Py_BEGIN_ALLOW_THREADS
    read_process(self, NULL);
    Py_END_ALLOW_THREADS
    PyThreadState *state = PyThreadState_New(self->interpreter);
    if (state == NULL) {
        return PyErr_NoMemory();
    }
    atomic_fetch_add(&vmscope_own_states, 1);
    if (pthread_mutex_trylock(&self->visiting) == 0) {
        read_interpreter(self, state);
        pthread_mutex_unlock(&self->visiting);
    }
    PyThreadState_Clear(state);
    PyThreadState_Delete(state);
    Py_RETURN_NONE;
}

static PyMethodDef sampler_methods[] = {
    {"start", sampler_start, METH_VARARGS, "start(interval, delay): starts the thread; times in ns."},
    {"stop", sampler_stop, METH_VARARGS, "stop(timeout): ends it; False if it did not end in time."},
    {"sample", sampler_sample, METH_NOARGS, "Takes a sample now, here: all fields but the waits and the visits."},
    {NULL},
};

static PyType_Slot sampler_type_slots[] = {
    {Py_tp_doc,
     "Sampler(slots)\n--\n\nA thread that sets the slot of each field (SAMPLED has the names) now and then."},
    {Py_tp_new, sampler_new},
    {Py_tp_dealloc, sampler_dealloc},
    {Py_tp_methods, sampler_methods},
    {0, NULL},
};

static PyType_Spec sampler_spec = {"vmscope.native.Sampler", sizeof(Sampler), 0, Py_TPFLAGS_DEFAULT,
                                   sampler_type_slots};

/* In a forked child, under the GIL: it has one thread, and has started that one. */
void
vmscope_sampler_after_fork(void)
{
    pthread_mutex_init(&waiting.mutex, NULL);
    pthread_mutex_init(&waiting.use, NULL);
    waiting.sampler = NULL;
    PyThreadState *state = PyThreadState_New(PyInterpreterState_Get());
    if (state != NULL) {
        atomic_fetch_add(&vmscope_own_states, 1);
        atomic_store(&states_before, (int64_t)PyThreadState_GetID(state) - atomic_load(&vmscope_own_states) - 1);
        PyThreadState_Clear(state);
        PyThreadState_Delete(state);
    }
}

int
vmscope_add_sampler(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &sampler_spec, NULL);
    int count = FIELD_COUNT;
#ifdef HAS_LONG_LIVED
    count -= vmscope_old_objects() == 0; /* it is the last one */
#endif
    PyObject *names = type == NULL ? NULL : PyTuple_New(count);
    for (int i = 0; names != NULL && i < count; i++) {
        PyObject *name = PyUnicode_InternFromString(field_names[i]);
        if (name == NULL) {
            Py_CLEAR(names);
        } else {
            PyTuple_SET_ITEM(names, i, name);
        }
    }
    int status = names == NULL ? -1 : PyModule_AddObjectRef(module, "SAMPLED", names);
    Py_XDECREF(names);
    Py_XDECREF(type);
    return status < 0 ? -1 : PyModule_AddIntMacro(module, NO_COLLECTION);
}
