/* The mirror: a region's image, and the thread (carrier.c) that keeps it and its file current.
 *
 * The image has two writers that never touch the same bytes: Python appends entries beyond `used`, the
 * thread updates the values of bound slots. `commit` publishes what was appended. */
#define _GNU_SOURCE
#include "mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic(Mirror *) vmscope_active_mirror;

/* -- fork ----------------------------------------------------------------------------------------- */

static PyObject *
before_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    Mirror *self = atomic_load(&vmscope_active_mirror);
    if (self != NULL && !self->paused) {
        self->paused = 1;
        Py_BEGIN_ALLOW_THREADS
        (void)vmscope_stop_thread(self, FORK_TIMEOUT);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static int
resume(void *Py_UNUSED(ignored))
{
    Mirror *self = atomic_load(&vmscope_active_mirror);
    if (self != NULL && self->paused) {
        self->paused = 0;
        (void)vmscope_start_thread(self);
    }
    return 0;
}

/* After this hook os.fork counts the threads, to warn. A pending call of the main thread comes later
 * than that; on any other thread the program has threads of its own and is warned in any case. */
static PyObject *
after_fork_in_parent(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (syscall(SYS_gettid) != getpid() || Py_AddPendingCall(resume, NULL) != 0) {
        resume(NULL);
    }
    Py_RETURN_NONE;
}

static void
forget_file(Mirror *self)
{
    PyMem_RawFree(self->path);
    self->path = NULL;
}

static PyObject *
mirror_after_fork(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Mirror *self = (Mirror *)object;
    vmscope_init_thread(self);
    forget_file(self);
    Py_CLEAR(self->on_start);
    Py_RETURN_NONE;
}

/* -- the Python face ------------------------------------------------------------------------------ */

static PyObject *
mirror_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"capacity", "epoch", NULL};
    Py_ssize_t capacity;
    long long epoch;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nL:Mirror", names, &capacity, &epoch)) {
        return NULL;
    }
    if (capacity < PROLOGUE_SIZE || capacity % 8 != 0 || capacity > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "an image is a multiple of 8 bytes, from 32 on, not %zd", capacity);
        return NULL;
    }
    Mirror *self = (Mirror *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    vmscope_init_thread(self);
    self->capacity = (size_t)capacity;
    self->epoch = epoch;
    self->dirty = PyMem_RawCalloc(self->capacity / PAGE + 1, 1);
    self->first = self->last = PyMem_RawCalloc(1, sizeof *self->first);
    void *image = mmap(NULL, self->capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    self->image = image == MAP_FAILED ? NULL : image;
    if (self->dirty == NULL || self->first == NULL || self->image == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void
mirror_dealloc(PyObject *object)
{
    Mirror *self = (Mirror *)object; /* no thread runs: a running one is `active`, or its mirror leaked */
    size_t count = atomic_load(&self->count), i = 0;
    for (Chunk *chunk = self->first; chunk != NULL;) {
        for (size_t k = 0; k < CHUNK && i < count; k++, i++) {
            Py_DECREF(chunk->bindings[k].slot);
        }
        Chunk *next = chunk->next;
        PyMem_RawFree(chunk);
        chunk = next;
    }
    if (self->image != NULL) {
        munmap(self->image, self->capacity);
    }
    PyMem_RawFree((void *)self->dirty);
    forget_file(self);
    Py_XDECREF(self->on_start);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static int
mirror_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    Mirror *self = (Mirror *)object;
    return PyBuffer_FillInfo(view, object, self->image, (Py_ssize_t)self->capacity, 0, flags);
}

static PyObject *
mirror_bind(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    PyObject *slot;
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(args, "On:bind", &slot, &offset)) {
        return NULL;
    }
    NativeState *state = vmscope_state_of(object);
    if (state == NULL) {
        return NULL;
    }
    int is_text = PyObject_TypeCheck(slot, state->text_slot);
    if (!is_text && !PyObject_TypeCheck(slot, state->long_slot)) {
        return PyErr_Format(PyExc_TypeError, "bind() takes a slot, not %.100s", Py_TYPE(slot)->tp_name);
    }
    size_t size = is_text ? (size_t)((TextSlot *)slot)->capacity + 1 : sizeof(int64_t);
    if (offset < PROLOGUE_SIZE || (size_t)offset + size > self->capacity || (!is_text && offset % 8 != 0)) {
        return PyErr_Format(PyExc_ValueError, "no value of %zu bytes can stand at offset %zd", size, offset);
    }
    size_t count = atomic_load(&self->count);
    if (count != 0 && count % CHUNK == 0) {
        Chunk *chunk = PyMem_RawCalloc(1, sizeof *chunk);
        if (chunk == NULL) {
            return PyErr_NoMemory();
        }
        self->last->next = chunk;
        self->last = chunk;
    }
    Binding *binding = &self->last->bindings[count % CHUNK];
    *binding = (Binding){.slot = Py_NewRef(slot), .offset = (uint32_t)offset, .is_text = is_text};
    binding->sequence = 1; /* no finished text has an odd number: the first visit copies */
    atomic_store_explicit(&self->count, count + 1, memory_order_release);
    Py_RETURN_NONE;
}

static PyObject *
mirror_set_clock(PyObject *object, PyObject *slot)
{
    NativeState *state = vmscope_state_of(object);
    if (state == NULL) {
        return NULL;
    }
    if (!PyObject_TypeCheck(slot, state->long_slot)) {
        return PyErr_Format(PyExc_TypeError, "the clock is a LongSlot, not %.100s", Py_TYPE(slot)->tp_name);
    }
    ((Mirror *)object)->clock = (LongSlot *)slot; /* bound, hence kept */
    Py_RETURN_NONE;
}

static void
put_int32(unsigned char *at, int32_t value)
{
    memcpy(at, &value, sizeof value);
}

static PyObject *
mirror_commit(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    int used, num_entries, overflow;
    if (!PyArg_ParseTuple(args, "iii:commit", &used, &num_entries, &overflow)) {
        return NULL;
    }
    if (used < 0 || (size_t)used > self->capacity || (used != 0 && used < PROLOGUE_SIZE)) {
        return PyErr_Format(PyExc_ValueError, "used is 32 to the capacity, not %d", used);
    }
    pthread_mutex_lock(&self->mutex);
    if ((uint32_t)used != self->used) {
        int64_t stamp = vmscope_now() - self->epoch;
        memcpy(self->image + PROLOGUE_MOD_TIME_STAMP, &stamp, sizeof stamp);
        vmscope_kick_thread(self);
    }
    put_int32(self->image + PROLOGUE_USED, used);
    put_int32(self->image + PROLOGUE_OVERFLOW, overflow);
    put_int32(self->image + PROLOGUE_NUM_ENTRIES, num_entries);
    self->used = (uint32_t)used;
    pthread_mutex_unlock(&self->mutex);
    Py_RETURN_NONE;
}

static PyObject *
mirror_refresh(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Mirror *self = (Mirror *)object;
    vmscope_refresh_image(self, self->save_scratch);
    Py_RETURN_NONE;
}

static PyObject *
mirror_set_file(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    const char *path;
    unsigned long long device, inode;
    if (!PyArg_ParseTuple(args, "yKK:set_file", &path, &device, &inode)) {
        return NULL;
    }
    char *copy = PyMem_RawMalloc(strlen(path) + 1);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    forget_file(self);
    self->path = strcpy(copy, path);
    self->device = (dev_t)device;
    self->inode = (ino_t)inode;
    self->published = self->used;
    memset(self->prologue, 0, sizeof self->prologue); /* so that the first visit writes it */
    Py_RETURN_NONE;
}

static PyObject *
mirror_start(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"interval", "delay", "on_start", NULL};
    Mirror *self = (Mirror *)object;
    long long interval, delay = 0;
    PyObject *on_start = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L|LO:start", names, &interval, &delay, &on_start)) {
        return NULL;
    }
    if (interval <= 0 || delay < 0) {
        PyErr_SetString(PyExc_ValueError, "the interval is more than 0 ns, the delay at least 0");
        return NULL;
    }
    Mirror *none = NULL;
    if (atomic_load(&vmscope_active_mirror) != self) {
        if (!atomic_compare_exchange_strong(&vmscope_active_mirror, &none, self)) {
            PyErr_SetString(PyExc_RuntimeError, "this process has a running mirror");
            return NULL;
        }
        Py_INCREF(self);
    }
    self->interval = interval;
    self->delay = delay;
    Py_XSETREF(self->on_start, on_start == Py_None ? NULL : Py_NewRef(on_start));
    int status = vmscope_start_thread(self);
    if (status != 0) {
        atomic_store(&vmscope_active_mirror, NULL);
        Py_DECREF(self);
        errno = status;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *
mirror_stop(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    long long timeout;
    if (!PyArg_ParseTuple(args, "L:stop", &timeout)) {
        return NULL;
    }
    int ended;
    Py_BEGIN_ALLOW_THREADS
    ended = vmscope_stop_thread(self, timeout);
    Py_END_ALLOW_THREADS
    Mirror *own = self;
    if (atomic_compare_exchange_strong(&vmscope_active_mirror, &own, NULL) && ended) {
        Py_DECREF(self); /* else the thread may still come back to it: never freed */
    }
    return PyBool_FromLong(ended);
}

static PyObject *
mirror_save(PyObject *object, PyObject *path)
{
    Mirror *self = (Mirror *)object;
    const char *name = PyBytes_AsString(path);
    if (name == NULL) {
        return NULL;
    }
    int status = 0;
    Py_BEGIN_ALLOW_THREADS
    vmscope_refresh_image(self, self->save_scratch);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || vmscope_write_range(fd, self->image, 0, self->capacity) < 0) {
        status = errno;
    }
    if (fd >= 0 && close(fd) < 0 && status == 0) {
        status = errno;
    }
    Py_END_ALLOW_THREADS
    if (status != 0) {
        errno = status;
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    }
    Py_RETURN_NONE;
}

static PyObject *
mirror_image(PyObject *object, void *Py_UNUSED(closure))
{
    return PyMemoryView_FromObject(object);
}

static PyObject *
mirror_visits(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(atomic_load(&((Mirror *)object)->visits));
}

static PyObject *
mirror_writes(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(atomic_load(&((Mirror *)object)->writes));
}

static PyObject *
mirror_error(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(atomic_load(&((Mirror *)object)->error));
}

static PyMethodDef mirror_methods[] = {
    {"bind", mirror_bind, METH_VARARGS, "bind(slot, offset): from now on the image shows the slot's value there."},
    {"set_clock", mirror_set_clock, METH_O, "Makes a bound slot show the ns since the epoch, at each visit."},
    {"commit", mirror_commit, METH_VARARGS, "commit(used, num_entries, overflow): publishes what was appended."},
    {"refresh", mirror_refresh, METH_NOARGS, "Copies the slots into the image now."},
    {"set_file", mirror_set_file, METH_VARARGS,
     "set_file(path, device, inode): the file, which holds the image as it is now, that the thread will write."},
    {"start", (PyCFunction)(void (*)(void))mirror_start, METH_VARARGS | METH_KEYWORDS,
     "start(interval, delay=0, on_start=None): starts the thread; times in ns."},
    {"stop", mirror_stop, METH_VARARGS, "stop(timeout): a last copy, then the end; False if it did not end in time."},
    {"save", mirror_save, METH_O, "Writes the whole image, brought up to date, to a file (OSError)."},
    {"after_fork", mirror_after_fork, METH_NOARGS, "In a forked child: forgets the parent's thread and file."},
    {NULL},
};

static PyGetSetDef mirror_getset[] = {
    {"image", mirror_image, NULL, "The image, a writable memoryview of `capacity` bytes.", NULL},
    {"visits", mirror_visits, NULL, "How many visits were made.", NULL},
    {"writes", mirror_writes, NULL, "How many of them had a file to write.", NULL},
    {"error", mirror_error, NULL, "The errno of the last failure on the file; 0: none.", NULL},
    {NULL},
};

static PyType_Slot mirror_type_slots[] = {
    {Py_tp_doc, "Mirror(capacity, epoch)\n--\n\nA region's image, and the thread that keeps it and its file current."},
    {Py_tp_new, mirror_new},
    {Py_tp_dealloc, mirror_dealloc},
    {Py_tp_methods, mirror_methods},
    {Py_tp_getset, mirror_getset},
    {Py_bf_getbuffer, mirror_getbuffer},
    {0, NULL},
};

static PyType_Spec mirror_spec = {"vmscope.native.Mirror", sizeof(Mirror), 0, Py_TPFLAGS_DEFAULT, mirror_type_slots};

static PyMethodDef fork_hooks[] = {
    {"before_fork", before_fork, METH_NOARGS, "For os.register_at_fork: stops the running mirror."},
    {"after_fork_in_parent", after_fork_in_parent, METH_NOARGS, "Starts it again once os.fork has returned."},
    {NULL},
};

int
vmscope_add_mirror(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &mirror_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    Py_DECREF(type);
    return PyModule_AddFunctions(module, fork_hooks);
}
