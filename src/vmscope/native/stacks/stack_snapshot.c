/* What every thread executes, as of one moment: taken in one go, in which nothing is made that Python knows, and shown
 * thread by thread afterwards.
 *
 * One that was taken with the GIL keeps the code objects, and what is wanted of frames' variables. That is said beforehand,
 * by code and offset. A slot below co_nlocalsplus is a variable; one above it stands on the frame's stack, and whoever
 * asks has it from the exception table, which promises that there is something at this offset: so far a handler would
 * unwind it. Of what stands there only objects of wanted types are kept, and the bound methods of such, as the objects
 * that they are bound to: `__exit__`, while a `with` block runs.
 *
 * One that was taken without it (thread_dump.c) has names alone. What has been wanted of a frame since is right where the
 * frame, and all below it, are still at the same instruction. */
#include "stacks/racy_snapshot.h"
#include "stacks/thread_dump.h"

#ifdef HAS_STACKS

#define GLOBALS (-1) /* the slot of a frame's globals */
#define MOST_SLOTS 32
#define FRAMES 16 /* of one thread, and objects kept of it: so much room is made beforehand */

typedef struct {
    PyObject *code; /* NULL: free */
    int offset;
    char innermost;
    int count;
    int slots[MOST_SLOTS];
} Want;

typedef struct {
    PyObject_HEAD PyObject *kinds;
    Snapshot *snapshot;
    OsThreads os_threads; /* of one that was taken without the GIL */
    size_t held;          /* frames whose code objects are references: the first ones */
    int named;            /* all frames are */
    Want *wants;
    size_t want_size, want_count; /* a power of two, at most half of it in use */
    uint32_t *begins;             /* of each held frame: where its objects begin among the kept */
    size_t begin_size;
    PyObject **kept;
    size_t kept_size, kept_count;
} StackSnapshot;

/* Room for this many; 0 where there is none. */
static int
reserve(void *array, size_t *size, size_t wanted, size_t each)
{
    if (wanted <= *size) {
        return 1;
    }
    size_t larger = 2 * *size < wanted ? wanted + 256 : 2 * *size;
    void *moved = PyMem_RawRealloc(*(void **)array, larger * each);
    if (moved == NULL) {
        return 0;
    }
    *(void **)array = moved;
    *size = larger;
    return 1;
}

static Want *
place(Want *wants, size_t size, PyObject *code, int offset, int innermost)
{
    size_t at = (((uintptr_t)code >> 4) * 31 + (size_t)offset * 2 + (size_t)innermost) * 0x9E3779B97F4A7C15ull >> 20;
    for (;; at++) {
        Want *want = &wants[at & (size - 1)];
        if (want->code == NULL || (want->code == code && want->offset == offset && want->innermost == innermost)) {
            return want;
        }
    }
}

/* Where this one stands, or would; NULL without memory. */
static Want *
wanted(Want **wants, size_t *size, size_t count, PyObject *code, int offset, int innermost)
{
    if (2 * (count + 1) > *size) {
        size_t larger = *size ? 2 * *size : 64;
        Want *moved = PyMem_Calloc(larger, sizeof *moved);
        if (moved == NULL) {
            return NULL;
        }
        for (size_t i = 0; i < *size; i++) {
            if ((*wants)[i].code != NULL) {
                *place(moved, larger, (*wants)[i].code, (*wants)[i].offset, (*wants)[i].innermost) = (*wants)[i];
            }
        }
        PyMem_Free(*wants);
        *wants = moved;
        *size = larger;
    }
    return place(*wants, *size, code, offset, innermost);
}

static PyObject *
wanted_object(StackSnapshot *self, PyObject *object)
{
    PyObject *bound = object == NULL              ? NULL
                      : PyCFunction_Check(object) ? PyCFunction_GET_SELF(object)
                      : PyMethod_Check(object)    ? PyMethod_GET_SELF(object)
                                                  : object;
    for (Py_ssize_t i = 0; bound != NULL && i < PyTuple_GET_SIZE(self->kinds); i++) {
        if (PyType_IsSubtype(Py_TYPE(bound), (PyTypeObject *)PyTuple_GET_ITEM(self->kinds, i))) {
            return bound;
        }
    }
    return NULL;
}

static int
keep(StackSnapshot *self, const SnapshotFrame *row, const Want *want)
{
    const _PyInterpreterFrame *frame = (const _PyInterpreterFrame *)row->frame;
    if (!reserve(&self->kept, &self->kept_size, self->kept_count + (size_t)want->count, sizeof *self->kept)) {
        return 0;
    }
    for (int i = 0; i < want->count; i++) {
        int slot = want->slots[i];
        PyObject *object = frame->f_globals;
        if (slot != GLOBALS) {
            uintptr_t word;
            memcpy(&word, &frame->localsplus[slot], sizeof word);
            object = IS_OBJECT(word) ? (PyObject *)(word & ~TAG_BITS) : NULL;
        }
        if (slot >= ((const PyCodeObject *)row->code)->co_nlocalsplus) {
            object = wanted_object(self, object);
        }
        self->kept[self->kept_count++] = Py_XNewRef(object);
    }
    return 1;
}

static void
forget(StackSnapshot *self)
{
    while (self->held > 0) {
        Py_DECREF((PyObject *)self->snapshot->frames[--self->held].code);
    }
    while (self->kept_count > 0) {
        Py_XDECREF(self->kept[--self->kept_count]);
    }
    self->snapshot->thread_count = self->snapshot->frame_count = 0;
    self->named = 0;
}

static PyObject *
snapshot_clear(StackSnapshot *self, PyObject *Py_UNUSED(ignored))
{
    forget(self);
    Py_RETURN_NONE;
}

static PyObject *
snapshot_take(StackSnapshot *self, PyObject *argument)
{
    Py_ssize_t limit = PyLong_AsSsize_t(argument);
    if (limit == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Snapshot *snapshot = self->snapshot;
    forget(self);
    if (!vmscope_copy_snapshot(snapshot, PyInterpreterState_Get(), limit < 0 ? 0 : (size_t)limit, 0) ||
        !reserve(&self->begins, &self->begin_size, snapshot->frame_count + 1, sizeof *self->begins)) {
        snapshot->thread_count = snapshot->frame_count = 0;
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        const SnapshotThread *thread = &snapshot->threads[i];
        for (size_t j = 0; j < thread->count; j++) {
            const SnapshotFrame *row = &snapshot->frames[thread->begin + j];
            Py_INCREF((PyObject *)row->code);
            self->begins[self->held++] = (uint32_t)self->kept_count;
            if (self->want_count != 0) {
                const Want *want = place(self->wants, self->want_size, (PyObject *)row->code, row->offset, j == 0);
                if (want->code != NULL && !keep(self, row, want)) {
                    forget(self);
                    return PyErr_NoMemory();
                }
            }
        }
    }
    self->begins[self->held] = (uint32_t)self->kept_count;
    Py_RETURN_NONE;
}

static PyObject *
snapshot_reserve(StackSnapshot *self, PyObject *Py_UNUSED(ignored))
{
    size_t count = 16;
    int there;
    for (PyThreadState *state = vmscope_first_state(PyInterpreterState_Get()); state != NULL; state = state->next) {
        count++;
    }
    Py_BEGIN_ALLOW_THREADS
    there = vmscope_reserve_snapshot(self->snapshot, count, count * FRAMES) &&
            reserve(&self->begins, &self->begin_size, count * FRAMES, sizeof *self->begins) &&
            reserve(&self->kept, &self->kept_size, count * FRAMES, sizeof *self->kept);
    if (there) {
        memset(self->begins, 0, self->begin_size * sizeof *self->begins); /* the pages are there */
        memset(self->kept + self->kept_count, 0, (self->kept_size - self->kept_count) * sizeof *self->kept);
    }
    Py_END_ALLOW_THREADS
    return there ? PyLong_FromSize_t(count) : PyErr_NoMemory();
}

static PyObject *
snapshot_want(StackSnapshot *self, PyObject *args)
{
    PyObject *code, *slots;
    int offset, innermost;
    if (!PyArg_ParseTuple(args, "O!ipO!", &PyCode_Type, &code, &offset, &innermost, &PyTuple_Type, &slots)) {
        return NULL;
    }
    Want want = {code, offset, (char)innermost, (int)PyTuple_GET_SIZE(slots), {0}};
    if (want.count > MOST_SLOTS) {
        return PyErr_Format(PyExc_ValueError, "more than %d slots", MOST_SLOTS);
    }
    for (int i = 0; i < want.count; i++) {
        long slot = PyLong_AsLong(PyTuple_GET_ITEM(slots, i));
        if (slot == -1 && PyErr_Occurred()) {
            return NULL;
        }
        if (slot < GLOBALS || slot >= ((PyCodeObject *)code)->co_nlocalsplus + ((PyCodeObject *)code)->co_stacksize) {
            return PyErr_Format(PyExc_ValueError, "the frame has no slot %ld", slot);
        }
        want.slots[i] = (int)slot;
    }
    Want *where = wanted(&self->wants, &self->want_size, self->want_count, code, offset, innermost);
    if (where == NULL) {
        return PyErr_NoMemory();
    }
    if (where->code == NULL) {
        Py_INCREF(code);
        self->want_count++;
    }
    *where = want;
    Py_RETURN_NONE;
}

static PyObject *
snapshot_instructions(StackSnapshot *self, PyObject *Py_UNUSED(ignored))
{
    const Snapshot *snapshot = self->snapshot;
    Want *seen = NULL;
    size_t size = 0, count = 0;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < snapshot->thread_count; i++) {
        for (size_t j = 0; list != NULL && j < snapshot->threads[i].count; j++) {
            size_t at = snapshot->threads[i].begin + j;
            const SnapshotFrame *row = &snapshot->frames[at];
            PyObject *code = (PyObject *)row->code;
            Want *where = at < self->held ? wanted(&seen, &size, count, code, row->offset, j == 0) : NULL;
            if (at >= self->held) {
                break; /* it has no code objects */
            }
            if (where == NULL) {
                PyErr_NoMemory();
                Py_CLEAR(list);
            } else if (where->code == NULL) {
                *where = (Want){.code = code, .offset = row->offset, .innermost = j == 0};
                count++;
                PyObject *found = Py_BuildValue("OiO", code, row->offset, j == 0 ? Py_True : Py_False);
                if (found == NULL || PyList_Append(list, found) < 0) {
                    Py_CLEAR(list);
                }
                Py_XDECREF(found);
            }
        }
    }
    PyMem_Free(seen);
    return list;
}

static PyObject *
snapshot_threads(StackSnapshot *self, PyObject *Py_UNUSED(ignored))
{
    const Snapshot *snapshot = self->snapshot;
    PyObject *list = PyList_New((Py_ssize_t)snapshot->thread_count);
    for (size_t i = 0; list != NULL && i < snapshot->thread_count; i++) {
        const SnapshotThread *thread = &snapshot->threads[snapshot->thread_count - 1 - i]; /* the newest comes first */
        PyObject *row =
            Py_BuildValue("KkkOO", (unsigned long long)thread->state.id, thread->state.ident, thread->state.native_id,
                          thread->cut ? Py_True : Py_False, thread->lost ? Py_True : Py_False);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static const SnapshotThread *
thread_at(const StackSnapshot *self, Py_ssize_t at)
{
    if (at < 0 || (size_t)at >= self->snapshot->thread_count) {
        PyErr_SetString(PyExc_IndexError, "there is no such thread in the snapshot");
        return NULL;
    }
    return &self->snapshot->threads[self->snapshot->thread_count - 1 - (size_t)at];
}

/* Only then the frames get their names: 0 with an exception. */
static int
name_frames(StackSnapshot *self)
{
    if (!self->named && !vmscope_name_snapshot(self->snapshot)) {
        PyErr_NoMemory();
        return 0;
    }
    self->named = 1;
    return 1;
}

static PyObject *
snapshot_frames(StackSnapshot *self, PyObject *argument)
{
    Py_ssize_t at = PyLong_AsSsize_t(argument);
    const SnapshotThread *thread = at == -1 && PyErr_Occurred() ? NULL : thread_at(self, at);
    if (thread != NULL && !name_frames(self)) {
        return NULL;
    }
    PyObject *list = thread == NULL ? NULL : PyList_New((Py_ssize_t)thread->count);
    for (size_t i = 0; list != NULL && i < thread->count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(self->snapshot->frames[thread->begin + i].place);
        if (number == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, number);
        }
    }
    return list;
}

static PyObject *
text(const char *bytes)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes), "surrogatepass");
}

static PyObject *
snapshot_places(StackSnapshot *self, PyObject *Py_UNUSED(ignored))
{
    const Names *names = &self->snapshot->names;
    PyObject *list = name_frames(self) ? PyList_New((Py_ssize_t)names->place_count) : NULL;
    for (size_t i = 0; list != NULL && i < names->place_count; i++) {
        uint32_t number = (uint32_t)i;
        PyObject *qualname = text(vmscope_qualname(names, number)), *filename = text(vmscope_filename(names, number));
        PyObject *row = qualname == NULL || filename == NULL
                            ? NULL
                            : Py_BuildValue("OOi", qualname, filename, names->places[i].line);
        Py_XDECREF(qualname);
        Py_XDECREF(filename);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

/* One frame with what was kept of it, at this depth of another snapshot's stack. */
static PyObject *
kept_row(StackSnapshot *self, size_t at, size_t depth)
{
    const SnapshotFrame *frame = &self->snapshot->frames[at];
    uint32_t begin = self->begins[at], end = self->begins[at + 1];
    PyObject *kept = PyTuple_New((Py_ssize_t)(end - begin));
    for (uint32_t i = begin; kept != NULL && i < end; i++) {
        PyTuple_SET_ITEM(kept, i - begin, Py_NewRef(self->kept[i] != NULL ? self->kept[i] : Py_None));
    }
    return kept == NULL ? NULL : Py_BuildValue("nOiN", (Py_ssize_t)depth, (PyObject *)frame->code, frame->offset, kept);
}

static PyObject *
snapshot_kept(StackSnapshot *self, PyObject *args)
{
    StackSnapshot *other;
    Py_ssize_t at, there;
    if (!PyArg_ParseTuple(args, "nO!n:kept", &at, Py_TYPE(self), &other, &there)) {
        return NULL;
    }
    const SnapshotThread *own = thread_at(self, at), *its = own == NULL ? NULL : thread_at(other, there);
    PyObject *list = its == NULL ? NULL : PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    size_t i = own->begin + own->count <= self->held ? own->count : 0, j = its->count;
    while (i > 0 && j > 0) { /* from the outermost frame on */
        const SnapshotFrame *one = &self->snapshot->frames[own->begin + i - 1];
        const SnapshotFrame *same = &other->snapshot->frames[its->begin + j - 1];
        if (one->frame != same->frame || one->code != same->code || one->offset != same->offset) {
            break;
        }
        i--;
        j--;
    }
    for (size_t k = i; list != NULL && j < its->count && k < own->count; k++) {
        size_t row = own->begin + k;
        if (k > 0 && self->begins[row] == self->begins[row + 1]) {
            continue;
        }
        PyObject *found = kept_row(self, row, j + (k - i));
        if (found == NULL || PyList_Append(list, found) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(found);
    }
    return list;
}

static PyObject *
snapshot_os_threads(StackSnapshot *self, PyObject *Py_UNUSED(ignored))
{
    if (self->os_threads.rows == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *list = PyList_New((Py_ssize_t)self->os_threads.count);
    for (size_t i = 0; list != NULL && i < self->os_threads.count; i++) {
        const OsThread *task = &self->os_threads.rows[i];
        PyObject *row = Py_BuildValue("lyyL", task->id, task->stat, task->call, (long long)task->cpu);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

/* It owns the snapshot, also where it cannot be made. */
static PyObject *
make_snapshot(PyTypeObject *type, Snapshot *snapshot, PyObject *kinds)
{
    StackSnapshot *self = (StackSnapshot *)type->tp_alloc(type, 0);
    if (self == NULL) {
        vmscope_free_snapshot(snapshot);
        return NULL;
    }
    self->snapshot = snapshot;
    if ((self->kinds = kinds != NULL ? Py_NewRef(kinds) : PyTuple_New(0)) == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyObject *
snapshot_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kinds", NULL};
    PyObject *kinds = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O!", names, &PyTuple_Type, &kinds)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; kinds != NULL && i < PyTuple_GET_SIZE(kinds); i++) {
        if (!PyType_Check(PyTuple_GET_ITEM(kinds, i))) {
            PyErr_SetString(PyExc_TypeError, "a kind is a type");
            return NULL;
        }
    }
    Snapshot *snapshot = vmscope_new_snapshot();
    return snapshot == NULL ? PyErr_NoMemory() : make_snapshot(type, snapshot, kinds);
}

static void
snapshot_dealloc(StackSnapshot *self)
{
    PyTypeObject *type = Py_TYPE(self);
    forget(self);
    for (size_t i = 0; i < self->want_size; i++) {
        Py_XDECREF(self->wants[i].code);
    }
    PyMem_Free(self->wants);
    PyMem_RawFree(self->begins);
    PyMem_RawFree(self->kept);
    vmscope_free_snapshot(self->snapshot);
    vmscope_free_os_threads(&self->os_threads);
    Py_XDECREF(self->kinds);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *
vmscope_stack_snapshot_of(PyTypeObject *type, ThreadDump *dump)
{
    PyObject *snapshot = make_snapshot(type, dump->snapshot, NULL);
    dump->snapshot = NULL;
    if (snapshot != NULL) {
        ((StackSnapshot *)snapshot)->named = 1;
        ((StackSnapshot *)snapshot)->os_threads = dump->os_threads;
        dump->os_threads = (OsThreads){NULL, 0};
    }
    vmscope_free_dump(dump);
    return snapshot;
}

static PyMethodDef snapshot_methods[] = {
    {"want", (PyCFunction)snapshot_want, METH_VARARGS,
     "want(code, offset, innermost, slots, /)\n--\n\nKeep these slots of each frame that is there; -1: its globals."},
    {"reserve", (PyCFunction)snapshot_reserve, METH_NOARGS,
     "reserve()\n--\n\nMakes room for the threads that there are, without the GIL; for how many."},
    {"take", (PyCFunction)snapshot_take, METH_O,
     "take(limit, /)\n--\n\nAll threads, in one go; of each this many frames at most."},
    {"clear", (PyCFunction)snapshot_clear, METH_NOARGS, "clear()\n--\n\nForgets it, but not what is wanted."},
    {"instructions", (PyCFunction)snapshot_instructions, METH_NOARGS,
     "instructions()\n--\n\n(code, offset, innermost) of all frames, each once; of a snapshot that was taken here."},
    {"threads", (PyCFunction)snapshot_threads, METH_NOARGS,
     "threads()\n--\n\n(state, ident, native_id, cut, lost) of each thread, the oldest first: whether it has more "
     "frames, "
     "and whether they could not be read."},
    {"frames", (PyCFunction)snapshot_frames, METH_O,
     "frames(at, /)\n--\n\nThe numbers of one thread's frames among the places, the innermost first."},
    {"places", (PyCFunction)snapshot_places, METH_NOARGS, "places()\n--\n\n(qualname, filename, line) of all frames."},
    {"kept", (PyCFunction)snapshot_kept, METH_VARARGS,
     "kept(at, other, there, /)\n--\n\n(depth, code, offset, what was kept) of those frames of one thread which are "
     "the same "
     "as in another snapshot, with their depth there: of the innermost, and of those that something was wanted of."},
    {"os_threads", (PyCFunction)snapshot_os_threads, METH_NOARGS,
     "os_threads()\n--\n\n(id, stat, syscall, CPU time in ns) of each native thread as of the same moment, as "
     "`read_os_threads` "
     "has "
     "them; None: it was taken here."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot snapshot_slots[] = {
    {Py_tp_new, snapshot_new},
    {Py_tp_dealloc, snapshot_dealloc},
    {Py_tp_methods, snapshot_methods},
    {Py_tp_doc, "StackSnapshot(kinds=())\n--\n\nWhat every thread executes, as of one moment."},
    {0, NULL},
};

static PyType_Spec snapshot_spec = {
    .name = "vmscope.native._native.StackSnapshot",
    .basicsize = sizeof(StackSnapshot),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = snapshot_slots,
};

int
vmscope_add_stack_snapshot(PyObject *module)
{
    NativeState *state = vmscope_state(module);
    state->snapshot = vmscope_add_type(module, &snapshot_spec, NULL);
    return state->snapshot == NULL ? -1 : 0;
}

#else

PyObject *
vmscope_stack_snapshot_of(PyTypeObject *type, ThreadDump *dump)
{
    (void)type;
    vmscope_free_dump(dump);
    return Py_NewRef(Py_None);
}

int
vmscope_add_stack_snapshot(PyObject *module)
{
    (void)module; /* the twin asks the interpreter */
    return 0;
}

#endif
