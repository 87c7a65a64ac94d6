/* What every thread executes, as of one moment: taken in one go, in which nothing is made that Python knows, and told
 * thread by thread afterwards.
 *
 * What is to be kept of a frame's variables is said beforehand, by code and offset. A slot below co_nlocalsplus is a
 * variable; one above it stands on the frame's stack, and whoever asks has it from the exception table, which promises
 * that there is something at this offset: so far a handler would unwind it. Of what stands there only the bound methods
 * of wanted types are kept, as the objects that they are bound to: `__exit__`, while a `with` block runs. */
#include "native.h"

#if !defined(Py_GIL_DISABLED) && PY_VERSION_HEX < 0x030E0000 /* 3.14 has tagged references */

#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE

#if PY_VERSION_HEX >= 0x030D0000
#define FRAME_OF(state) ((state)->current_frame)
#define CODE_OF(frame) ((PyCodeObject *)(frame)->f_executable)
#else
#define FRAME_OF(state) ((state)->cframe->current_frame)
#define CODE_OF(frame) ((frame)->f_code)
#endif

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
    PyObject *code;
    int offset;
    int begin; /* among the kept, up to where the next one's begin */
} Row;

typedef struct {
    unsigned long long state;
    unsigned long ident, native_id;
    size_t begin, count; /* among the rows */
} Stack;

typedef struct {
    PyObject_HEAD
    PyObject *kinds;
    Want *wants;
    size_t want_size, want_count; /* a power of two, at most half of it in use */
    Stack *stacks;
    size_t stack_size, stack_count;
    Row *rows;
    size_t row_size, row_count;
    PyObject **kept;
    size_t kept_size, kept_count;
} Picture;

/* Room for one more; 0 where there is none. */
static int
grow(void *array, size_t *size, size_t count, size_t each)
{
    if (count < *size) {
        return 1;
    }
    size_t larger = *size ? 2 * *size : 256;
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
bound_to(Picture *self, PyObject *method)
{
    PyObject *object = method == NULL             ? NULL
                       : PyCFunction_Check(method) ? PyCFunction_GET_SELF(method)
                       : PyMethod_Check(method)    ? PyMethod_GET_SELF(method)
                                                   : NULL;
    for (Py_ssize_t i = 0; object != NULL && i < PyTuple_GET_SIZE(self->kinds); i++) {
        if (PyType_IsSubtype(Py_TYPE(object), (PyTypeObject *)PyTuple_GET_ITEM(self->kinds, i))) {
            return object;
        }
    }
    return NULL;
}

static int
keep(Picture *self, _PyInterpreterFrame *frame, const Want *want)
{
    for (int i = 0; i < want->count; i++) {
        if (!grow(&self->kept, &self->kept_size, self->kept_count, sizeof *self->kept)) {
            return 0;
        }
        int slot = want->slots[i];
        PyObject *object = slot == GLOBALS ? frame->f_globals : frame->localsplus[slot];
        if (slot >= CODE_OF(frame)->co_nlocalsplus) {
            object = bound_to(self, object);
        }
        self->kept[self->kept_count++] = Py_XNewRef(object);
    }
    return 1;
}

static int
take_stack(Picture *self, PyThreadState *state, Py_ssize_t limit)
{
    Stack *stack = &self->stacks[self->stack_count++];
    *stack = (Stack){state->id, state->thread_id, state->native_thread_id, self->row_count, 0};
    for (_PyInterpreterFrame *frame = FRAME_OF(state); frame != NULL && (Py_ssize_t)stack->count < limit;
         frame = frame->previous) {
        if (_PyFrame_IsIncomplete(frame)) {
            continue;
        }
        if (!grow(&self->rows, &self->row_size, self->row_count, sizeof *self->rows)) {
            return 0;
        }
        int offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
        Row *row = &self->rows[self->row_count++];
        *row = (Row){Py_NewRef((PyObject *)CODE_OF(frame)), offset, (int)self->kept_count};
        if (self->want_count != 0) {
            const Want *want = place(self->wants, self->want_size, row->code, offset, stack->count == 0);
            if (want->code != NULL && !keep(self, frame, want)) {
                return 0;
            }
        }
        stack->count++;
    }
    return 1;
}

static void
forget(Picture *self)
{
    while (self->row_count > 0) {
        Py_DECREF(self->rows[--self->row_count].code);
    }
    while (self->kept_count > 0) {
        Py_XDECREF(self->kept[--self->kept_count]);
    }
    self->stack_count = 0;
}

static PyObject *
picture_clear(Picture *self, PyObject *Py_UNUSED(ignored))
{
    forget(self);
    Py_RETURN_NONE;
}

static PyObject *
picture_take(Picture *self, PyObject *argument)
{
    Py_ssize_t limit = PyLong_AsSsize_t(argument);
    if (limit == -1 && PyErr_Occurred()) {
        return NULL;
    }
    forget(self);
    /* Whoever has the GIL may follow the states: meanwhile new ones come at the head only, and none goes. */
    for (PyThreadState *state = vmscope_first_state(PyInterpreterState_Get()); state != NULL;
         state = state->next) {
        __builtin_prefetch(state->next == NULL ? NULL : FRAME_OF(state->next));
        if (!grow(&self->stacks, &self->stack_size, self->stack_count, sizeof *self->stacks) ||
            !take_stack(self, state, limit)) {
            return PyErr_NoMemory();
        }
    }
    Py_RETURN_NONE;
}

/* An array of so many, its pages there; 0 without memory. */
static int
reserve(void *array, size_t *size, size_t count, size_t each)
{
    if (count > *size) {
        void *moved = PyMem_RawRealloc(*(void **)array, count * each);
        if (moved == NULL) {
            return 0;
        }
        memset((char *)moved + *size * each, 0, (count - *size) * each);
        *(void **)array = moved;
        *size = count;
    }
    return 1;
}

static PyObject *
picture_reserve(Picture *self, PyObject *Py_UNUSED(ignored))
{
    size_t count = 16;
    int there;
    for (PyThreadState *state = vmscope_first_state(PyInterpreterState_Get()); state != NULL;
         state = state->next) {
        count++;
    }
    Py_BEGIN_ALLOW_THREADS
    there = reserve(&self->stacks, &self->stack_size, count, sizeof *self->stacks) &&
            reserve(&self->rows, &self->row_size, count * FRAMES, sizeof *self->rows) &&
            reserve(&self->kept, &self->kept_size, count * FRAMES, sizeof *self->kept);
    Py_END_ALLOW_THREADS
    if (!there) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

static PyObject *
picture_want(Picture *self, PyObject *args)
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
picture_places(Picture *self, PyObject *Py_UNUSED(ignored))
{
    Want *seen = NULL;
    size_t size = 0, count = 0;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < self->stack_count; i++) {
        for (size_t j = 0; list != NULL && j < self->stacks[i].count; j++) {
            Row *row = &self->rows[self->stacks[i].begin + j];
            Want *where = wanted(&seen, &size, count, row->code, row->offset, j == 0);
            if (where == NULL) {
                PyErr_NoMemory();
                Py_CLEAR(list);
            } else if (where->code == NULL) {
                *where = (Want){.code = row->code, .offset = row->offset, .innermost = j == 0};
                count++;
                PyObject *found = Py_BuildValue("OiO", row->code, row->offset, j == 0 ? Py_True : Py_False);
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
picture_threads(Picture *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *list = PyList_New((Py_ssize_t)self->stack_count);
    for (size_t i = 0; list != NULL && i < self->stack_count; i++) {
        const Stack *stack = &self->stacks[self->stack_count - 1 - i]; /* the newest comes first */
        PyObject *row = Py_BuildValue("KkkO", stack->state, stack->ident, stack->native_id,
                                      stack->count ? Py_True : Py_False);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static PyObject *
picture_frames(Picture *self, PyObject *argument)
{
    Py_ssize_t at = PyLong_AsSsize_t(argument);
    if (at == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (at < 0 || (size_t)at >= self->stack_count) {
        PyErr_SetString(PyExc_IndexError, "there is no such thread in the picture");
        return NULL;
    }
    const Stack *stack = &self->stacks[self->stack_count - 1 - (size_t)at];
    PyObject *list = PyList_New((Py_ssize_t)stack->count);
    for (size_t i = 0; list != NULL && i < stack->count; i++) {
        const Row *row = &self->rows[stack->begin + i];
        int end = row + 1 < self->rows + self->row_count ? row[1].begin : (int)self->kept_count;
        PyObject *kept = PyTuple_New(end - row->begin);
        for (int j = 0; kept != NULL && j < end - row->begin; j++) {
            PyObject *object = self->kept[row->begin + j];
            PyTuple_SET_ITEM(kept, j, Py_NewRef(object != NULL ? object : Py_None));
        }
        PyObject *frame = kept == NULL ? NULL : Py_BuildValue("OiN", row->code, row->offset, kept);
        if (frame == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, frame);
        }
    }
    return list;
}

static PyObject *
picture_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
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
    Picture *self = (Picture *)type->tp_alloc(type, 0);
    if (self != NULL && (self->kinds = kinds ? Py_NewRef(kinds) : PyTuple_New(0)) == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void
picture_dealloc(Picture *self)
{
    PyTypeObject *type = Py_TYPE(self);
    forget(self);
    for (size_t i = 0; i < self->want_size; i++) {
        Py_XDECREF(self->wants[i].code);
    }
    PyMem_Free(self->wants);
    PyMem_RawFree(self->stacks);
    PyMem_RawFree(self->rows);
    PyMem_RawFree(self->kept);
    Py_XDECREF(self->kinds);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef picture_methods[] = {
    {"want", (PyCFunction)picture_want, METH_VARARGS,
     "want(code, offset, innermost, slots, /)\n--\n\nKeep these slots of each frame that is there; -1: its globals."},
    {"reserve", (PyCFunction)picture_reserve, METH_NOARGS,
     "reserve()\n--\n\nMakes room for the threads that there are, without the GIL."},
    {"take", (PyCFunction)picture_take, METH_O,
     "take(limit, /)\n--\n\nAll threads, in one go; of each so many frames at most."},
    {"clear", (PyCFunction)picture_clear, METH_NOARGS, "clear()\n--\n\nForgets it, but not what is wanted."},
    {"places", (PyCFunction)picture_places, METH_NOARGS,
     "places()\n--\n\n(code, offset, innermost) of all frames, each once."},
    {"threads", (PyCFunction)picture_threads, METH_NOARGS,
     "threads()\n--\n\n(state, ident, native_id, whether it has a frame) of each thread, the oldest first."},
    {"frames", (PyCFunction)picture_frames, METH_O,
     "frames(at, /)\n--\n\n(code, offset, what was kept) of one thread, the innermost first."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot picture_slots[] = {
    {Py_tp_new, picture_new},
    {Py_tp_dealloc, picture_dealloc},
    {Py_tp_methods, picture_methods},
    {Py_tp_doc, "Picture(kinds=())\n--\n\nWhat every thread executes, as of one moment."},
    {0, NULL},
};

static PyType_Spec picture_spec = {
    .name = "vmscope.native._native.Picture",
    .basicsize = sizeof(Picture),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = picture_slots,
};

int
vmscope_add_picture(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &picture_spec, NULL);
    int result = type == NULL ? -1 : PyModule_AddObjectRef(module, "Picture", type);
    Py_XDECREF(type);
    return result;
}

#else

int
vmscope_add_picture(PyObject *module)
{
    (void)module; /* the twin asks the interpreter */
    return 0;
}

#endif
