/* Mapping: another process's file, mapped read-only, read in whole words.
 *
 * The file belongs to another process, which may truncate it at any moment; a load from a page that is
 * gone raises SIGBUS. So every load runs under a guard (guard.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "compat.h"

#include "native.h"
#include "signals/guard.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORD 8
#define GIL_FREE_BYTES (1 << 20) /* below this a copy takes less time than giving the GIL away and back */

/* -- loads -------------------------------------------------------------------------------------- */

static inline uint64_t
load(const char *at)
{
    return __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);
}

/* Copies `count` bytes of one word, from its byte `skip` on. */
static inline void
copy_part(char *to, const char *from, size_t skip, size_t count)
{
    uint64_t word = load(from);
    memcpy(to, (const char *)&word + skip, count);
}

/* Copies [offset, offset + length), every word with one load. */
static __attribute__((noinline)) void
copy_words(char *to, const char *base, size_t offset, size_t length)
{
    size_t skip = offset & (WORD - 1);
    const char *from = base + (offset - skip);
    if (skip > 0 && length > 0) {
        size_t part = WORD - skip < length ? WORD - skip : length;
        copy_part(to, from, skip, part);
        from += WORD;
        to += part;
        length -= part;
    }
    for (; length >= WORD; length -= WORD) {
        uint64_t word = load(from);
        memcpy(to, &word, WORD);
        from += WORD;
        to += WORD;
    }
    if (length > 0) {
        copy_part(to, from, 0, length);
    }
}

typedef struct {
    const char *at;
    size_t count;
    size_t width; /* 4 or 8 bytes each */
} Offsets;

static inline uint64_t
offset_at(const Offsets *offsets, size_t i)
{
    if (offsets->width == sizeof(int32_t)) {
        int32_t narrow;
        memcpy(&narrow, offsets->at + i * sizeof narrow, sizeof narrow);
        return (uint64_t)(int64_t)narrow; /* a negative one becomes huge, hence out of range */
    }
    uint64_t offset;
    memcpy(&offset, offsets->at + i * sizeof offset, sizeof offset);
    return offset;
}

/* Loads the word at each offset. False: one is not a multiple of a word or lies outside. */
static __attribute__((noinline)) bool
gather_words(char *to, const char *base, size_t size, Offsets offsets)
{
    for (size_t i = 0; i < offsets.count; i++) {
        uint64_t offset = offset_at(&offsets, i);
        if (size < WORD || offset > size - WORD || (offset & (WORD - 1)) != 0) {
            return false;
        }
        uint64_t word = load(base + offset);
        memcpy(to + i * WORD, &word, WORD);
    }
    return true;
}

typedef enum { DONE, FAULT, RANGE } Outcome;

static Outcome
guarded_copy(char *to, const char *base, size_t mapped, size_t offset, size_t length)
{
    Guard guard;
    if (sigsetjmp(guard.jump, 0) != 0) {
        vmscope_guard_clear();
        return FAULT;
    }
    vmscope_guard_set(&guard, (uintptr_t)base, (uintptr_t)base + mapped - 1);
    copy_words(to, base, offset, length);
    vmscope_guard_clear();
    return DONE;
}

typedef struct {
    char *to;
    Offsets offsets;
} Words;

/* Words of one mapping, those of a later set never older than those of an earlier one. */
static Outcome
guarded_gather(const char *base, size_t mapped, size_t size, const Words *sets, size_t count)
{
    Guard guard;
    if (sigsetjmp(guard.jump, 0) != 0) {
        vmscope_guard_clear();
        return FAULT;
    }
    vmscope_guard_set(&guard, (uintptr_t)base, (uintptr_t)base + mapped - 1);
    bool inside = true;
    for (size_t i = 0; inside && i < count; i++) {
        inside = gather_words(sets[i].to, base, size, sets[i].offsets);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    }
    vmscope_guard_clear();
    return inside ? DONE : RANGE;
}

/* -- the type ----------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD char *base;
    size_t size;   /* what the caller asked for */
    size_t mapped; /* up to where it may grow, as the file does; at least the same, up to the next page */
    long users;    /* atomic: 1 while open, and 1 for each read that is running; at 0 it is unmapped */
    int closed;    /* atomic */
} Mapping;

static bool
mapping_acquire(Mapping *self)
{
    long users = __atomic_load_n(&self->users, __ATOMIC_RELAXED);
    while (users > 0 && !__atomic_load_n(&self->closed, __ATOMIC_RELAXED)) {
        if (__atomic_compare_exchange_n(&self->users, &users, users + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return true;
        }
    }
    PyErr_SetString(PyExc_ValueError, "the mapping is closed");
    return false;
}

static void
mapping_release(Mapping *self)
{
    if (__atomic_sub_fetch(&self->users, 1, __ATOMIC_ACQ_REL) == 0 && self->base != NULL) {
        munmap(self->base, self->mapped);
        self->base = NULL;
    }
}

static void
raise_fault(void)
{
    PyObject *arguments = Py_BuildValue("is", EIO, "the mapped file has lost its pages: it was truncated");
    if (arguments != NULL) {
        PyErr_SetObject(PyExc_OSError, arguments);
        Py_DECREF(arguments);
    }
}

static PyObject *
mapping_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fd", "size", "reach", NULL};
    int fd;
    Py_ssize_t size, reach = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "in|n:Mapping", names, &fd, &size, &reach)) {
        return NULL;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size <= 0 || size > PY_SSIZE_T_MAX - (Py_ssize_t)page) {
        return PyErr_Format(PyExc_ValueError, "cannot map %zd bytes", size);
    }
    Mapping *self = (Mapping *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->size = (size_t)size;
    self->mapped = ((size_t)(reach > size && reach < INT32_MAX ? reach : size) + page - 1) & ~(page - 1);
    void *base = mmap(NULL, self->mapped, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    self->base = base;
    self->users = 1;
    return (PyObject *)self;
}

typedef struct {
    char *to;
    size_t offset, length;
} Part;

static bool copy_parts(Mapping *self, const Part *parts, Py_ssize_t count);

/* The last byte is all that is looked at: what a file lacks before it reads as zeros. */
static PyObject *
mapping_grow(Mapping *self, PyObject *arg)
{
    Py_ssize_t size = PyLong_AsSsize_t(arg);
    if (size == -1 && PyErr_Occurred()) {
        return NULL;
    }
    char last;
    if (size <= 0 || (size_t)size > self->mapped) {
        Py_RETURN_FALSE;
    }
    if ((size_t)size > self->size) {
        if (!copy_parts(self, &(Part){&last, (size_t)size - 1, 1}, 1)) {
            if (!PyErr_ExceptionMatches(PyExc_OSError)) {
                return NULL;
            }
            PyErr_Clear();
            Py_RETURN_FALSE;
        }
        self->size = (size_t)size;
    }
    Py_RETURN_TRUE;
}

static PyObject *
mapping_close(Mapping *self, PyObject *Py_UNUSED(ignored))
{
    if (!__atomic_exchange_n(&self->closed, 1, __ATOMIC_ACQ_REL)) {
        mapping_release(self);
    }
    Py_RETURN_NONE;
}

static void
mapping_dealloc(Mapping *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->base != NULL && !self->closed) {
        mapping_release(self);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* The bytes that a part is to be copied into; NULL with an exception set. */
static PyObject *
part_bytes(const Mapping *self, Py_ssize_t offset, Py_ssize_t length, Part *part)
{
    if (offset < 0 || length < 0 || (size_t)offset > self->size || (size_t)length > self->size - (size_t)offset) {
        return PyErr_Format(PyExc_ValueError, "%zd bytes at %zd lie outside a mapping of %zu", length, offset,
                            self->size);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, length);
    if (bytes != NULL) {
        *part = (Part){PyBytes_AS_STRING(bytes), (size_t)offset, (size_t)length};
    }
    return bytes;
}

/* Copies parts, one after the other, under one guard. False with an exception set. */
static bool
copy_parts(Mapping *self, const Part *parts, Py_ssize_t count)
{
    if (!mapping_acquire(self)) {
        return false;
    }
    bool large = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        large = large || parts[i].length >= GIL_FREE_BYTES;
    }
    PyThreadState *released = large ? PyEval_SaveThread() : NULL;
    sigset_t mask;
    Outcome outcome = DONE;
    vmscope_guard_enter(GUARD_FILES, &mask);
    for (Py_ssize_t i = 0; i < count && outcome == DONE; i++) {
        outcome = guarded_copy(parts[i].to, self->base, self->mapped, parts[i].offset, parts[i].length);
        __atomic_thread_fence(__ATOMIC_ACQUIRE); /* no load of the next part comes before this one's */
    }
    vmscope_guard_leave(GUARD_FILES, &mask);
    mapping_release(self);
    if (released != NULL) {
        PyEval_RestoreThread(released);
    }
    if (outcome != DONE) {
        raise_fault();
    }
    return outcome == DONE;
}

static PyObject *
mapping_read(Mapping *self, PyObject *args)
{
    Py_ssize_t offset, length;
    Part part;
    if (!PyArg_ParseTuple(args, "nn:read", &offset, &length)) {
        return NULL;
    }
    PyObject *bytes = part_bytes(self, offset, length, &part);
    if (bytes != NULL && !copy_parts(self, &part, 1)) {
        Py_CLEAR(bytes);
    }
    return bytes;
}

static PyObject *
mapping_read_in_order(Mapping *self, PyObject *const *ranges, Py_ssize_t count)
{
    PyObject *result = PyTuple_New(count);
    Part *parts = PyMem_New(Part, (size_t)count);
    if (parts == NULL) {
        PyErr_NoMemory();
    }
    bool made = result != NULL && parts != NULL;
    for (Py_ssize_t i = 0; made && i < count; i++) {
        Py_ssize_t offset, length;
        if (!PyTuple_Check(ranges[i])) {
            PyErr_SetString(PyExc_TypeError, "a range is a tuple (offset, length)");
            made = false;
        } else if (!PyArg_ParseTuple(ranges[i], "nn:read_in_order", &offset, &length)) {
            made = false;
        } else {
            PyObject *bytes = part_bytes(self, offset, length, &parts[i]);
            PyTuple_SET_ITEM(result, i, bytes);
            made = bytes != NULL;
        }
    }
    if (!made || !copy_parts(self, parts, count)) {
        Py_CLEAR(result);
    }
    PyMem_Free(parts);
    return result;
}

/* Takes `source` as a row of integers of 4 or 8 bytes. */
static bool
offsets_buffer(PyObject *source, Py_buffer *view, Offsets *offsets)
{
    if (PyObject_GetBuffer(source, view, PyBUF_ND | PyBUF_FORMAT) < 0) {
        return false;
    }
    if (view->itemsize != sizeof(int32_t) && view->itemsize != sizeof(int64_t)) {
        PyErr_Format(PyExc_TypeError, "offsets must be integers of 4 or 8 bytes, not %zd", view->itemsize);
        PyBuffer_Release(view);
        return false;
    }
    offsets->at = view->buf;
    offsets->width = (size_t)view->itemsize;
    offsets->count = (size_t)view->len / offsets->width;
    return true;
}

static void
raise_range(const Mapping *self)
{
    PyErr_Format(PyExc_ValueError, "an offset is not a multiple of 8 or lies outside a mapping of %zu", self->size);
}

static PyObject *
mapping_gather(Mapping *self, PyObject *args)
{
    PyObject *source;
    Py_buffer view, out;
    Offsets offsets;
    if (!PyArg_ParseTuple(args, "Ow*:gather", &source, &out)) {
        return NULL;
    }
    if (!offsets_buffer(source, &view, &offsets)) {
        PyBuffer_Release(&out);
        return NULL;
    }
    PyObject *result = NULL;
    if ((size_t)out.len != offsets.count * WORD) {
        PyErr_Format(PyExc_ValueError, "%zu values need %zu bytes, the buffer has %zd", offsets.count,
                     offsets.count * WORD, out.len);
    } else if (mapping_acquire(self)) {
        sigset_t mask;
        vmscope_guard_enter(GUARD_FILES, &mask);
        Outcome outcome = guarded_gather(self->base, self->mapped, self->size, &(Words){out.buf, offsets}, 1);
        vmscope_guard_leave(GUARD_FILES, &mask);
        mapping_release(self);
        if (outcome == RANGE) {
            raise_range(self);
        } else if (outcome == FAULT) {
            raise_fault();
        } else {
            result = Py_NewRef(Py_None);
        }
    }
    PyBuffer_Release(&view);
    PyBuffer_Release(&out);
    return result;
}

/* -- many mappings at once ---------------------------------------------------------------------- */

/* What is left of a buffer that jobs are written into, one after the other. */
typedef struct {
    char *to;
    size_t room;
} Left;

static bool
take_room(Left *left, Words *words)
{
    words->to = left->to;
    if (words->offsets.count > left->room / WORD) {
        PyErr_SetString(PyExc_ValueError, "the buffer is too small for these values");
        return false;
    }
    if (words->offsets.count > 0) { /* a buffer without bytes may be NULL, to which nothing may be added */
        left->to += words->offsets.count * WORD;
        left->room -= words->offsets.count * WORD;
    }
    return true;
}

/* One job of gather_all, and the words that are watched: 0, 1 where its file was truncated, -1 with an exception set. */
static int
gather_job(PyTypeObject *type, PyObject *job, Left *out, const Offsets *watched, Left *seen)
{
    if (!PyTuple_Check(job) || PyTuple_GET_SIZE(job) != 2 || !PyObject_TypeCheck(PyTuple_GET_ITEM(job, 0), type)) {
        PyErr_SetString(PyExc_TypeError, "a job is a tuple (Mapping, offsets)");
        return -1;
    }
    Mapping *mapping = (Mapping *)PyTuple_GET_ITEM(job, 0);
    Py_buffer view;
    Words sets[2] = {{NULL, {NULL, 0, 0}}, {NULL, *watched}};
    if (!offsets_buffer(PyTuple_GET_ITEM(job, 1), &view, &sets[0].offsets)) {
        return -1;
    }
    int result = -1;
    if (take_room(out, &sets[0]) && take_room(seen, &sets[1]) && mapping_acquire(mapping)) {
        Outcome outcome = guarded_gather(mapping->base, mapping->mapped, mapping->size, sets, 2);
        mapping_release(mapping);
        if (outcome == RANGE) {
            raise_range(mapping);
        } else {
            result = outcome == FAULT;
        }
        for (int i = 0; result == 1 && i < 2; i++) {
            if (sets[i].offsets.count > 0) {
                memset(sets[i].to, 0, sets[i].offsets.count * WORD);
            }
        }
    }
    PyBuffer_Release(&view);
    return result;
}

/* All jobs, under one guard: the indexes of those whose file was truncated. */
static PyObject *
gather_jobs(PyTypeObject *type, PyObject *jobs, Left *out, const Offsets *watched, Left *seen)
{
    PyObject *lost = PyList_New(0);
    sigset_t mask;
    vmscope_guard_enter(GUARD_FILES, &mask);
    for (Py_ssize_t i = 0; lost != NULL && i < PyTuple_GET_SIZE(jobs); i++) {
        int result = gather_job(type, PyTuple_GET_ITEM(jobs, i), out, watched, seen);
        PyObject *index = result > 0 ? PyLong_FromSsize_t(i) : NULL;
        if (result < 0 || (result > 0 && (index == NULL || PyList_Append(lost, index) < 0))) {
            Py_CLEAR(lost);
        }
        Py_XDECREF(index);
    }
    vmscope_guard_leave(GUARD_FILES, &mask);
    if (lost != NULL && (out->room != 0 || seen->room != 0)) {
        PyErr_Format(PyExc_ValueError, "the buffer has room for %zu more values than there are",
                     (out->room != 0 ? out->room : seen->room) / WORD);
        Py_CLEAR(lost);
    }
    return lost;
}

static PyObject *
mapping_gather_all(PyTypeObject *type, PyObject *args)
{
    PyObject *source, *watching = NULL;
    Py_buffer out, view = {.obj = NULL}, seen = {.obj = NULL};
    if (!PyArg_ParseTuple(args, "Ow*|Ow*:gather_all", &source, &out, &watching, &seen)) {
        return NULL;
    }
    Offsets watched = {NULL, 0, sizeof(int64_t)};
    PyObject *lost = NULL, *jobs = PySequence_Tuple(source);
    if (jobs != NULL && (watching == NULL || offsets_buffer(watching, &view, &watched))) {
        lost =
            gather_jobs(type, jobs, &(Left){out.buf, (size_t)out.len}, &watched, &(Left){seen.buf, (size_t)seen.len});
    }
    Py_XDECREF(jobs);
    PyBuffer_Release(&out);
    PyBuffer_Release(&view);
    PyBuffer_Release(&seen);
    return lost;
}

static PyObject *
mapping_size(Mapping *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(self->size);
}

static PyObject *
mapping_closed(Mapping *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(__atomic_load_n(&self->closed, __ATOMIC_RELAXED));
}

static PyMethodDef mapping_methods[] = {
    {"grow", (PyCFunction)mapping_grow, METH_O,
     "grow(size): looks at so much of the file, which has become larger. False where it has not, or beyond `reach`."},
    {"read", (PyCFunction)mapping_read, METH_VARARGS,
     "read(offset, length) -> bytes\n\nA copy made in whole aligned words of 8 bytes. OSError when the file was "
     "truncated,\nValueError outside the mapping or after close."},
    {"read_in_order", (PyCFunction)(void (*)(void))mapping_read_in_order, METH_FASTCALL,
     "read_in_order(*ranges) -> tuple of bytes\n\nread of each (offset, length), one after the other: what a later one "
     "gives is never older\nthan what an earlier one does. One guard for all. Errors as read, of the whole call."},
    {"gather", (PyCFunction)mapping_gather, METH_VARARGS,
     "gather(offsets, out)\n\nLoads the aligned word at each of `offsets` (a buffer of int32 or int64) into `out`,\na "
     "writable buffer of as many int64, in native byte order. Errors as read."},
    {"gather_all", (PyCFunction)mapping_gather_all, METH_VARARGS | METH_CLASS,
     "gather_all(jobs, out, watched=(), seen=()) -> list of int\n\ngather for a sequence of (Mapping, offsets), one "
     "after another into `out`; after each the words at `watched` of the\nsame mapping, into `seen`. The result holds "
     "the index of each job whose file was truncated; its values are then 0."},
    {"close", (PyCFunction)mapping_close, METH_NOARGS, "Unmaps, once the reads that are running have ended."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef mapping_getset[] = {
    {"size", (getter)mapping_size, NULL, "How many bytes are looked at.", NULL},
    {"closed", (getter)mapping_closed, NULL, "True after close.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot mapping_slots[] = {
    {Py_tp_new, mapping_new},
    {Py_tp_dealloc, mapping_dealloc},
    {Py_tp_methods, mapping_methods},
    {Py_tp_getset, mapping_getset},
    {Py_tp_doc,
     "Mapping(fd, size, reach=size)\n--\n\nA file of another process, mapped read-only; the descriptor may be "
     "closed."},
    {0, NULL},
};

static PyType_Spec mapping_spec = {
    .name = "vmscope.native._native.Mapping",
    .basicsize = sizeof(Mapping),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = mapping_slots,
};

int
vmscope_add_mapping(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &mapping_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    int added = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return added;
}
