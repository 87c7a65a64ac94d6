/* The mirror: a region's image, and the thread (mirror_thread.c) that keeps it and its file current.
 *
 * The image has two writers that never touch the same bytes: `append` adds entries beyond `used`, the
 * thread updates the values of bound slots. */
#define _GNU_SOURCE
#include "region/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The mirror whose image is a file of this process; its pages are put in the image's place, and so nothing moves. */
static _Atomic(Mirror *) direct;

static void *
place_private_image(void *where, size_t capacity)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (where == NULL ? 0 : MAP_FIXED);
    return mmap(where, capacity, PROT_READ | PROT_WRITE, flags, -1, 0);
}

/* In a forked child the file is the parent's, whatever the child still does with its copy of the mirror. */
static void
leave_direct_image(void)
{
    Mirror *self = atomic_exchange(&direct, NULL);
    if (self != NULL) {
        (void)place_private_image(self->image, self->capacity);
        self->direct = 0;
    }
}

static void
forget_file(Mirror *self)
{
    PyMem_RawFree(self->path);
    self->path = NULL;
}

/* -- the Python face ------------------------------------------------------------------------------ */

static PyObject *
mirror_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"capacity", "epoch", "limit", NULL};
    Py_ssize_t capacity, limit = 0;
    long long epoch;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nL|n:Mirror", names, &capacity, &epoch, &limit)) {
        return NULL;
    }
    limit = limit > capacity ? limit : capacity;
    if (capacity < PROLOGUE_SIZE || capacity % 8 != 0 || limit % 8 != 0 || limit > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "an image is a multiple of 8 bytes, from 32 on, not %zd", capacity);
        return NULL;
    }
    Mirror *self = (Mirror *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    vmscope_thread_init(&self->thread, (PyObject *)self, MIRROR_THREAD, vmscope_mirror_body);
    self->fd = -1;
    self->capacity = (size_t)capacity;
    self->used = PROLOGUE_SIZE;
    self->epoch = epoch;
    self->limit = (size_t)limit;
    self->dirty = PyMem_RawCalloc(self->limit / PAGE + 1, 1);
    self->first = self->last = PyMem_RawCalloc(1, sizeof *self->first);
    void *image = place_private_image(NULL, self->limit);
    if (image == MAP_FAILED) { /* no room to grow into */
        self->limit = self->capacity;
        image = place_private_image(NULL, self->limit);
    }
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
    if (self->direct) {
        atomic_store(&direct, NULL);
    }
    for (Chunk *chunk = self->first; chunk != NULL;) {
        for (size_t k = 0; k < CHUNK && i < count; k++, i++) {
            Py_DECREF(chunk->bindings[k].slot);
        }
        Chunk *next = chunk->next;
        PyMem_RawFree(chunk);
        chunk = next;
    }
    if (self->image != NULL) {
        munmap(self->image, self->limit);
    }
    PyMem_RawFree((void *)self->dirty);
    Py_XDECREF(self->on_loss);
    forget_file(self);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static size_t
capacity_now(Mirror *self)
{
    pthread_mutex_lock(&self->thread.mutex);
    size_t capacity = self->capacity;
    pthread_mutex_unlock(&self->thread.mutex);
    return capacity;
}

static int
mirror_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    Mirror *self = (Mirror *)object;
    return PyBuffer_FillInfo(view, object, self->image, (Py_ssize_t)capacity_now(self), 0, flags);
}

static void
put_int32(unsigned char *at, int32_t value)
{
    memcpy(at, &value, sizeof value);
}

static int32_t
get_int32(const unsigned char *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Room for `more` bindings; 0, or -1 where there is no memory. Under the mutex. */
static int
reserve_bindings(Mirror *self, size_t more)
{
    size_t count = atomic_load(&self->count);
    size_t room = count == 0 ? CHUNK : (CHUNK - count % CHUNK) % CHUNK;
    for (Chunk *chunk = self->last; room < more; chunk = chunk->next, room += CHUNK) {
        if (chunk->next == NULL && (chunk->next = PyMem_RawCalloc(1, sizeof *chunk)) == NULL) {
            return -1;
        }
    }
    return 0;
}

static void
bind(Mirror *self, Binding binding)
{
    size_t count = atomic_load(&self->count);
    if (count != 0 && count % CHUNK == 0) {
        self->last = self->last->next;
    }
    Py_INCREF(binding.slot);
    self->last->bindings[count % CHUNK] = binding;
    atomic_store_explicit(&self->count, count + 1, memory_order_release);
}

/* A binding from (slot, cell, offset), the offset within entries of `length` bytes; -1 with an exception set. */
static int
read_binding(NativeState *state, PyObject *item, size_t length, Binding *out)
{
    PyObject *slot;
    Py_ssize_t index, offset;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a binding is a tuple (slot, cell, offset)");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "Onn:append", &slot, &index, &offset)) {
        return -1;
    }
    size_t size = sizeof(int64_t), cells = 1;
    _Atomic int64_t *fraction = NULL;
    *out = (Binding){.slot = slot, .offset = (uint32_t)offset, .sequence = 1}; /* odd: the first visit copies a text */
    if (PyObject_TypeCheck(slot, state->text_slot)) {
        size = (size_t)((TextSlot *)slot)->capacity + 1;
    } else if (PyObject_TypeCheck(slot, state->long_slot)) {
        out->value = &((LongSlot *)slot)->value;
        if (PyObject_TypeCheck(slot, state->counter_slot)) {
            fraction = &((CounterSlot *)slot)->fraction;
            cells = 2;
        }
    } else if (PyObject_TypeCheck(slot, state->histogram_slot)) {
        out->value = ((HistogramSlot *)slot)->cells;
        cells = ((HistogramSlot *)slot)->bound_count + 2;
    } else {
        PyErr_Format(PyExc_TypeError, "append() binds slots, not %.100s", Py_TYPE(slot)->tp_name);
        return -1;
    }
    if (index < 0 || (size_t)index >= cells) {
        PyErr_Format(PyExc_ValueError, "the slot has no cell %zd", index);
        return -1;
    }
    if (offset < 4 || (size_t)offset > length || size > length - (size_t)offset ||
        (out->value != NULL && offset % 8 != 0)) {
        PyErr_Format(PyExc_ValueError, "no value of %zu bytes can stand at offset %zd of entries of %zu bytes", size,
                     offset, length);
        return -1;
    }
    if (index != 0) {
        out->value = fraction != NULL ? fraction : out->value + index;
    }
    return 0;
}

/* -- growing: the file gets longer, and nothing moves -------------------------------------------------- */

#define FILLER_LEAST 40 /* bytes: an entry's header, the longest name of a filler, some bytes of text */

/* Whether entries fit so that what is left can end them all, or be filled up later. */
static int
fits(const Mirror *self, size_t length)
{
    size_t room = self->capacity - self->used;
    return length < room && (self->limit == self->capacity || self->direct || room - length >= FILLER_LEAST);
}

/* An empty text in all that is left: readers that have mapped the file as it was meet its end there, others go on. */
static void
fill_up(Mirror *self)
{
    uint32_t length = (uint32_t)(self->capacity - self->used);
    unsigned char *at = self->image + self->used;
    char name[16];
    int named = snprintf(name, sizeof name, "vmscope.fill.%d", ++self->growths) + 1;
    put_int32(at + 4, ENTRY_HEADER);                           /* where the name is */
    put_int32(at + 8, (int32_t)length - ENTRY_HEADER - named); /* the text's length */
    at[12] = 'B';
    at[13] = 1; /* supported */
    at[14] = 5; /* a string */
    at[15] = 1; /* that does not change */
    put_int32(at + 16, ENTRY_HEADER + named);
    memcpy(at + ENTRY_HEADER, name, (size_t)named);
    atomic_thread_fence(memory_order_release);
    put_int32(at, (int32_t)length);
    self->used = (uint32_t)self->capacity;
    put_int32(self->image + PROLOGUE_USED, (int32_t)self->used);
    put_int32(self->image + PROLOGUE_NUM_ENTRIES, get_int32(self->image + PROLOGUE_NUM_ENTRIES) + 1);
}

/* Makes room for entries of this length; under the mutex. Not where the file itself is the image. */
static void
grow(Mirror *self, size_t length)
{
    size_t wanted = self->capacity * 2, least = self->capacity + length + FILLER_LEAST;
    wanted = wanted < least ? (least + PAGE - 1) / PAGE * PAGE : wanted;
    wanted = wanted < self->limit ? wanted : self->limit;
    if (self->direct || self->growths == MAX_GROWTHS || wanted < least || self->capacity - self->used < FILLER_LEAST) {
        return;
    }
    fill_up(self);
    self->capacity = wanted;
}

/* Adds the entries where they fit; under the mutex. */
static int
append_entries(Mirror *self, const char *entries, size_t length, int count, const Binding *bindings, size_t bound)
{
    unsigned char *prologue = self->image;
    if (!fits(self, length)) {
        grow(self, length);
    }
    if (!fits(self, length)) {
        put_int32(prologue + PROLOGUE_OVERFLOW, get_int32(prologue + PROLOGUE_OVERFLOW) + (int32_t)length);
        return 0;
    }
    int64_t stamp = vmscope_now() - self->epoch;
    unsigned char *at = self->image + self->used;
    memcpy(at + 4, entries + 4, length - 4);
    atomic_thread_fence(memory_order_release);
    memcpy(at, entries, 4); /* the length last: where the image is a file, its readers meet the end or whole entries */
    for (size_t i = 0; i < bound; i++) {
        Binding binding = bindings[i];
        binding.offset += self->used;
        bind(self, binding);
    }
    self->used += (uint32_t)length;
    put_int32(prologue + PROLOGUE_USED, (int32_t)self->used);
    put_int32(prologue + PROLOGUE_NUM_ENTRIES, get_int32(prologue + PROLOGUE_NUM_ENTRIES) + count);
    memcpy(prologue + PROLOGUE_MOD_TIME_STAMP, &stamp, sizeof stamp);
    vmscope_thread_kick(&self->thread);
    return 1;
}

/* In one go, in which neither a signal handler nor a destructor runs: half-made entries are never left, and of a
 * family that belongs together all or none are there. */
static PyObject *
mirror_append(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    NativeState *state = vmscope_state_of(object);
    PyObject *items;
    const char *entries;
    Py_ssize_t length;
    int count;
    if (state == NULL || !PyArg_ParseTuple(args, "y#iO!:append", &entries, &length, &count, &PyTuple_Type, &items)) {
        return NULL;
    }
    if (length < 8 || length % 8 != 0 || count < 1) {
        return PyErr_Format(PyExc_ValueError, "%zd bytes are not %d whole entries", length, count);
    }
    size_t bound = (size_t)PyTuple_GET_SIZE(items);
    Binding *bindings = PyMem_Malloc((bound + 1) * sizeof *bindings);
    if (bindings == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result = NULL;
    for (size_t i = 0; i < bound; i++) {
        if (read_binding(state, PyTuple_GET_ITEM(items, (Py_ssize_t)i), (size_t)length, &bindings[i]) < 0) {
            goto done;
        }
    }
    pthread_mutex_lock(&self->thread.mutex);
    int reserved = reserve_bindings(self, bound) == 0;
    int fits = reserved && append_entries(self, entries, (size_t)length, count, bindings, bound);
    pthread_mutex_unlock(&self->thread.mutex);
    result = reserved ? PyBool_FromLong(fits) : PyErr_NoMemory();
done:
    PyMem_Free(bindings);
    return result;
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
    Mirror *self = (Mirror *)object;
    Chunk *chunk = self->first;
    size_t count = atomic_load(&self->count);
    for (size_t i = 0; i < count; i++) {
        if (i != 0 && i % CHUNK == 0) {
            chunk = chunk->next;
        }
        if (chunk->bindings[i % CHUNK].slot == slot) {
            self->clock_offset = chunk->bindings[i % CHUNK].offset;
            self->clock = (LongSlot *)slot; /* bound, hence kept */
            Py_RETURN_NONE;
        }
    }
    PyErr_SetString(PyExc_ValueError, "the clock is a slot that has an entry");
    return NULL;
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
    int used;
    Py_ssize_t extent = 0;
    if (!PyArg_ParseTuple(args, "yKKi|n:set_file", &path, &device, &inode, &used, &extent)) {
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
    self->published = used < PROLOGUE_SIZE ? PROLOGUE_SIZE : (uint32_t)used;
    self->extent = extent > 0 ? (size_t)extent : capacity_now(self);
    self->lost = self->reported = 0;
    memset(self->prologue, 0, sizeof self->prologue); /* so that the first visit writes it */
    Py_RETURN_NONE;
}

/* Puts the file's own pages in the image's place; 0, or an errno. Under the mutex. */
static int
map_file(Mirror *self, int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return errno;
    }
    if (status.st_dev != self->device || status.st_ino != self->inode) {
        return ESTALE; /* another file has been put there */
    }
    if ((size_t)status.st_size < self->extent) {
        return EIO;
    }
    /* What was added since the file was made. */
    if (ftruncate(fd, (off_t)self->capacity) < 0 ||
        vmscope_write_range(fd, self->image + PROLOGUE_SIZE, PROLOGUE_SIZE, self->used - PROLOGUE_SIZE) < 0 ||
        vmscope_write_range(fd, self->image, 0, PROLOGUE_SIZE) < 0 ||
        mmap(self->image, self->capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        return errno;
    }
    self->direct = 1;
    return 0;
}

static PyObject *
mirror_map_file(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Mirror *self = (Mirror *)object, *none = NULL;
    if (self->path == NULL || !atomic_compare_exchange_strong(&direct, &none, self)) {
        PyErr_SetString(PyExc_RuntimeError,
                        self->path == NULL ? "there is no file" : "this process has a mapped region");
        return NULL;
    }
    int status, fd = open(self->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); /* not the one with the lock */
    if (fd < 0) {
        status = errno;
    } else {
        pthread_mutex_lock(&self->thread.mutex);
        status = map_file(self, fd);
        pthread_mutex_unlock(&self->thread.mutex);
        close(fd);
    }
    if (status != 0) {
        atomic_store(&direct, NULL);
        errno = status;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *
mirror_start(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    long long interval;
    PyObject *on_loss = NULL;
    if (!PyArg_ParseTuple(args, "L|O:start", &interval, &on_loss)) {
        return NULL;
    }
    if (interval <= 0) {
        PyErr_SetString(PyExc_ValueError, "the interval is more than 0 ns");
        return NULL;
    }
    self->interval = interval;
    Py_XSETREF(self->on_loss, Py_XNewRef(on_loss));
    if (vmscope_thread_start(&self->thread) < 0) {
        return NULL;
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
    return PyBool_FromLong(vmscope_thread_stop(&self->thread, timeout));
}

static PyObject *
mirror_save(PyObject *object, PyObject *path)
{
    Mirror *self = (Mirror *)object;
    const char *name = PyBytes_AsString(path);
    if (name == NULL) {
        return NULL;
    }
    int status;
    Py_BEGIN_ALLOW_THREADS
    vmscope_refresh_image(self, self->save_scratch);
    status = vmscope_save_image(self, name);
    Py_END_ALLOW_THREADS
    if (status != 0) {
        errno = status;
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    }
    Py_RETURN_NONE;
}

static PyObject *
mirror_copy(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Mirror *self = (Mirror *)object;
    for (;;) {
        size_t capacity = capacity_now(self);
        PyObject *copy = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)capacity);
        if (copy == NULL) {
            return NULL;
        }
        pthread_mutex_lock(&self->thread.mutex);
        int grown = self->capacity != capacity;
        memcpy(PyBytes_AS_STRING(copy), self->image, capacity);
        uint32_t used = self->used;
        pthread_mutex_unlock(&self->thread.mutex);
        if (!grown) {
            return Py_BuildValue("NI", copy, used);
        }
        Py_DECREF(copy);
    }
}

static PyObject *
mirror_image(PyObject *object, void *Py_UNUSED(closure))
{
    return PyMemoryView_FromObject(object);
}

static PyObject *
mirror_field(PyObject *object, void *offset)
{
    Mirror *self = (Mirror *)object;
    pthread_mutex_lock(&self->thread.mutex);
    int32_t value = get_int32(self->image + (intptr_t)offset);
    pthread_mutex_unlock(&self->thread.mutex);
    return PyLong_FromLong(value);
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
    return PyLong_FromLong(atomic_load(&((Mirror *)object)->thread.error));
}

static PyMethodDef mirror_methods[] = {
    {"append", mirror_append, METH_VARARGS,
     "append(entries, count, bindings): whole entries, all or none; a binding (slot, cell, offset) says which value "
     "stands where in them from now on. False if they did not fit and were counted as overflow."},
    {"set_clock", mirror_set_clock, METH_O, "Makes a bound slot show the ns since the epoch, at each visit."},
    {"refresh", mirror_refresh, METH_NOARGS, "Copies the slots into the image now."},
    {"copy", mirror_copy, METH_NOARGS, "The image with whole entries only, and how many bytes of it are in use."},
    {"set_file", mirror_set_file, METH_VARARGS,
     "set_file(path, device, inode, used[, size]): the file that the thread will write; it holds the image's first "
     "bytes."},
    {"map_file", mirror_map_file, METH_NOARGS,
     "Makes the file itself the image, before start(). OSError where that cannot be."},
    {"start", mirror_start, METH_VARARGS,
     "start(interval[, on_loss]): starts the thread, which makes a visit at this interval, in ns. It calls `on_loss`, "
     "once, "
     "when\n"
     "the file has been removed or cut short."},
    {"stop", mirror_stop, METH_VARARGS, "stop(timeout): a last copy, then the end; False if it did not end in time."},
    {"save", mirror_save, METH_O, "Writes the whole image, brought up to date, to a file (OSError)."},
    {NULL},
};

static PyGetSetDef mirror_getset[] = {
    {"image", mirror_image, NULL, "The image, a writable memoryview of `capacity` bytes.", NULL},
    {"used", mirror_field, NULL, "Bytes in use, the prologue included; 0 until the first entry.",
     (void *)PROLOGUE_USED},
    {"num_entries", mirror_field, NULL, "How many entries there are.", (void *)PROLOGUE_NUM_ENTRIES},
    {"overflow", mirror_field, NULL, "Bytes of the entries that did not fit.", (void *)PROLOGUE_OVERFLOW},
    {"visits", mirror_visits, NULL, "How many visits were made.", NULL},
    {"writes", mirror_writes, NULL, "How many of them had a file to write.", NULL},
    {"error", mirror_error, NULL, "The errno of the last failure on the file; 0: none.", NULL},
    {NULL},
};

static PyType_Slot mirror_type_slots[] = {
    {Py_tp_doc, "Mirror(capacity, epoch, limit=capacity)\n--\n\nA region's image, and the thread that keeps it and its "
                "file current."},
    {Py_tp_new, mirror_new},
    {Py_tp_dealloc, mirror_dealloc},
    {Py_tp_methods, mirror_methods},
    {Py_tp_getset, mirror_getset},
    {Py_bf_getbuffer, mirror_getbuffer},
    {0, NULL},
};

static PyType_Spec mirror_spec = {"vmscope.native.Mirror", sizeof(Mirror), 0, Py_TPFLAGS_DEFAULT, mirror_type_slots};

static int watching; /* the error of pthread_atfork, or 0 */

static void
watch_forks(void)
{
    watching = pthread_atfork(NULL, NULL, leave_direct_image);
}

int
vmscope_add_mirror(PyObject *module)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (watching != 0) {
        errno = watching;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    NativeState *state = vmscope_state(module);
    state->mirror = vmscope_add_type(module, &mirror_spec, NULL);
    return state->mirror == NULL ? -1 : 0;
}
