/* Takes snapshots of all threads of a hostile program, as fast as it can, and tells which frames it saw above which. */
#include "stacks/racy_snapshot.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct {
    long callee, caller; /* places; -1: of the outermost frame */
    long count;
} Edge;

static Edge *edges;
static size_t mask;

static void
note(long callee, long caller)
{
    for (size_t at = (size_t)callee * 31 + (size_t)caller * 0x9E3779B9u;; at++) {
        Edge *edge = &edges[at & mask];
        if (edge->count == 0 || (edge->callee == callee && edge->caller == caller)) {
            *edge = (Edge){callee, caller, edge->count + 1};
            return;
        }
    }
}

/* What a thread was seen to do last: one that gets no processor is told once, however often it is looked at. */
typedef struct {
    uint64_t state, hash;
} Seen;

static Seen seen[1 << 12];

static int
is_new(const SnapshotThread *thread, const SnapshotFrame *frames)
{
    uint64_t hash = thread->count * 2 + 1;
    for (size_t i = 0; i < thread->count; i++) {
        hash = (hash ^ frames[i].frame ^ (uint64_t)frames[i].place << 32) * 0x9E3779B97F4A7C15ull;
    }
    Seen *last = &seen[thread->state.id % (sizeof seen / sizeof *seen)];
    if (last->state == thread->state.id && last->hash == hash) {
        return 0;
    }
    *last = (Seen){thread->state.id, hash};
    return 1;
}

/* The main interpreter's threads and those of the newest one in turn. */
static int
hammer(Snapshot *snapshot, long rounds, long limit, long *stacks, long *lost)
{
    for (long round = 0; round < rounds; round++) {
        if (!vmscope_take_snapshot(snapshot, round % 2 ? PyInterpreterState_Head() : PyInterpreterState_Main(),
                                   (size_t)limit)) {
            return 0;
        }
        for (size_t i = 0; i < snapshot->thread_count; i++) {
            const SnapshotThread *thread = &snapshot->threads[i];
            const SnapshotFrame *frames = &snapshot->frames[thread->begin];
            if (!is_new(thread, frames)) {
                continue;
            }
            *lost += thread->lost;
            *stacks += thread->count > 0;
            for (size_t j = 0; j < thread->count; j++) {
                if (j + 1 < thread->count || !thread->cut) {
                    note(frames[j].place, j + 1 < thread->count ? (long)frames[j + 1].place : -1);
                }
            }
        }
    }
    return 1;
}

static PyObject *
place(const Names *names, long at)
{
    if (at < 0) {
        return Py_NewRef(Py_None);
    }
    const char *qualname = vmscope_qualname(names, (uint32_t)at), *filename = vmscope_filename(names, (uint32_t)at);
    return Py_BuildValue("NNi", PyUnicode_DecodeUTF8(qualname, (Py_ssize_t)strlen(qualname), "surrogatepass"),
                         PyUnicode_DecodeUTF8(filename, (Py_ssize_t)strlen(filename), "surrogatepass"),
                         names->places[at].line);
}

static PyObject *
told(const Snapshot *snapshot, long stacks, long lost)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i <= mask; i++) {
        if (edges[i].count > 0) {
            PyObject *row = Py_BuildValue("NNl", place(&snapshot->names, edges[i].callee),
                                          place(&snapshot->names, edges[i].caller), edges[i].count);
            if (row == NULL || PyList_Append(list, row) < 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(row);
        }
    }
    return Py_BuildValue("N{sl sl sl sl sl sl}", list, "stacks", stacks, "lost", lost, "reads", (long)snapshot->reads,
                         "torn", (long)snapshot->torn, "faults", (long)snapshot->faults, "codes",
                         (long)snapshot->names.code_count);
}

/* run(rounds, limit): ([(callee, caller, how often)], counts), each frame (qualname, filename, line), without the GIL. */
static PyObject *
run(PyObject *Py_UNUSED(module), PyObject *args)
{
    long rounds, limit, stacks = 0, lost = 0;
    if (!PyArg_ParseTuple(args, "ll", &rounds, &limit)) {
        return NULL;
    }
    mask = (1 << 20) - 1;
    edges = calloc(mask + 1, sizeof *edges);
    Snapshot *snapshot = vmscope_new_snapshot();
    if (edges == NULL || snapshot == NULL) {
        return PyErr_NoMemory();
    }
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = hammer(snapshot, rounds, limit, &stacks, &lost);
    Py_END_ALLOW_THREADS
    PyObject *result = done ? told(snapshot, stacks, lost) : PyErr_NoMemory();
    vmscope_free_snapshot(snapshot);
    free(edges);
    return result;
}

/* name(code, offsets): what a frame of this code is called at each instruction: (qualname, filename, line). */
static PyObject *
name(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *offsets, *list = PyList_New(0);
    Names names = {0};
    if (list == NULL || !PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &PyTuple_Type, &offsets)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(offsets); i++) {
        Frame frame = {.code = (uintptr_t)code, .owner = FRAME_OWNED_BY_GENERATOR};
        frame.instruction = frame.code + CODE_SIZE + (uintptr_t)PyLong_AsSsize_t(PyTuple_GET_ITEM(offsets, i));
        uint32_t at = 0;
        int fresh;
        if (!vmscope_reserve_names(&names) || vmscope_name_frame(&names, &frame, &at, &fresh) != NAMED) {
            PyErr_SetString(PyExc_ValueError, "it has no name");
            return NULL;
        }
        PyObject *row = place(&names, at);
        if (row == NULL || PyList_Append(list, row) < 0) {
            return NULL;
        }
        Py_DECREF(row);
    }
    vmscope_free_names(&names);
    return list;
}

static char *page;

static void
open_page(int signum, siginfo_t *info, void *context)
{
    (void)signum, (void)info, (void)context;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

/* repair(times): so many faults that a handler of the program's own puts right, as one of a Java VM in it does. */
static PyObject *
repair(PyObject *Py_UNUSED(module), PyObject *argument)
{
    struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    long times = PyLong_AsLong(argument);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
    Py_BEGIN_ALLOW_THREADS
    for (long i = 0; i < times; i++) {
        mprotect(page, 4096, PROT_NONE);
        *(volatile char *)page = 1;
    }
    Py_END_ALLOW_THREADS
    munmap(page, 4096);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"run", run, METH_VARARGS, NULL},
                                  {"name", name, METH_VARARGS, NULL},
                                  {"repair", repair, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "hammer", .m_size = -1,
                                        .m_methods = functions};

PyMODINIT_FUNC
PyInit_hammer(void)
{
    return PyModule_Create(&definition);
}
