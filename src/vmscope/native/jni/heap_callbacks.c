/* An agent's callbacks for walks of the heap, as callables that Python's functions can be given. Walks in C
 * (heap_tell.c) call what is behind them.
 *
 * They are called with the GIL and in the middle of a walk: as in a JVM, where another thread walks, only the functions
 * that need no thread of the VM work in them. A tag is handed over by pointer, and what the agent leaves there is the
 * object's tag from then on. */
#include "interface.h"

#include <structmember.h>

enum { ITERATION, REFERENCE, PRIMITIVE_FIELD, ARRAY, STRING, OBJECT, ROOT, STACK, OBJECT_REFERENCE };

/* What each gets from Python: i an int, j a jlong, t a tag, o a tag or None, n where a reference stands, v a value, whose
 * type follows, b elements, s a string, m a method, u the agent's data. */
static const struct {
    const char *name, *kinds;
} rows[] = {
    [ITERATION] = {"heap_iteration", "jjtiu"},
    [REFERENCE] = {"heap_reference", "injjjtoiu"},
    [PRIMITIVE_FIELD] = {"primitive_field", "injtviu"},
    [ARRAY] = {"array_primitive_value", "jjtiibu"},
    [STRING] = {"string_primitive_value", "jjtsu"},
    [OBJECT] = {"heap_object", "jjtu"},
    [ROOT] = {"heap_root", "ijjtu"},
    [STACK] = {"stack_reference", "ijjtjimiu"},
    [OBJECT_REFERENCE] = {"object_reference", "ijjtjiu"},
};

enum { IGNORE = 2 };                                                                           /* jvmtiIterationControl */
enum { KIND_FIELD = 2, KIND_ELEMENT = 3, KIND_STATIC = 8, KIND_CONSTANT = 9, KIND_LOCAL = 24 }; /* jvmtiHeapReferenceKind */
enum { TYPE_BOOLEAN = 'Z', TYPE_DOUBLE = 'D' };                                                /* jvmtiPrimitiveType */
#define MOST_ARGUMENTS 9

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int kind;
    void (*function)(void);
} HeapCallback;

/* What a reference's place looks like in C. */
typedef union {
    int32_t index;
    struct {
        int64_t thread_tag, thread_id;
        int32_t depth;
        void *method;
        int64_t location;
        int32_t slot;
    } local;
    int64_t reserved[8];
} Info;

typedef struct {
    int64_t value, before;
    PyObject *tag; /* borrowed: whose it is */
} Tag;

typedef struct {
    Value values[MOST_ARGUMENTS];
    Info info;
    Tag tags[2]; /* of the object, of its referrer */
    int32_t length;
    Py_buffer elements;
    PyObject *text; /* as UTF-16 */
} Arguments;

static PyTypeObject *callback_type;

static int64_t
number(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    int64_t result = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return result;
}

static int
read_tag(Tag *tag, PyObject *object)
{
    tag->tag = object;
    tag->value = tag->before = number(object, "value");
    return tag->value == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Sets the tags that the agent has changed. */
static int
write_tags(Arguments *arguments)
{
    for (int i = 0; i < 2; i++) {
        Tag *tag = &arguments->tags[i];
        if (tag->tag == NULL || tag->value == tag->before) {
            continue;
        }
        PyObject *value = PyLong_FromLongLong(tag->value);
        int status = value == NULL ? -1 : PyObject_SetAttrString(tag->tag, "value", value);
        Py_XDECREF(value);
        if (status < 0) {
            return -1;
        }
    }
    return 0;
}

/* An object that refers to itself has one tag. */
static int
is_same(PyObject *tag, PyObject *other)
{
    int same = 0;
    PyObject *first = PyObject_GetAttrString(tag, "thing");
    PyObject *second = first == NULL ? NULL : PyObject_GetAttrString(other, "thing");
    if (second != NULL) {
        same = first == second;
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    return PyErr_Occurred() ? -1 : same;
}

static int
read_info(Info *info, PyObject *object, int kind, Value *value)
{
    memset(info, 0, sizeof *info);
    value->l = info;
    if (kind == KIND_LOCAL) {
        PyObject *method = PyObject_GetAttrString(object, "method");
        info->local.method = method == NULL ? NULL : jni_method_id(method);
        Py_XDECREF(method);
        info->local.thread_tag = PyErr_Occurred() ? 0 : number(object, "thread_tag");
        info->local.thread_id = PyErr_Occurred() ? 0 : number(object, "thread_id");
        info->local.depth = PyErr_Occurred() ? 0 : (int32_t)number(object, "depth");
        info->local.location = PyErr_Occurred() ? 0 : number(object, "location");
        info->local.slot = PyErr_Occurred() ? 0 : (int32_t)number(object, "slot");
    } else if (kind == KIND_FIELD || kind == KIND_STATIC || kind == KIND_ELEMENT || kind == KIND_CONSTANT) {
        info->index = (int32_t)number(object, "index");
    } else {
        value->l = NULL;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int
convert(Arguments *into, int at, char kind, PyObject *const *given)
{
    PyObject *object = given[at];
    Value *value = &into->values[at];
    switch (kind) {
    case 't':
        value->l = &into->tags[0].value;
        return read_tag(&into->tags[0], object);
    case 'o': {
        value->l = NULL;
        if (object == Py_None) {
            return 0;
        }
        int same = is_same(object, into->tags[0].tag);
        value->l = same ? &into->tags[0].value : &into->tags[1].value;
        return same < 0 ? -1 : same ? 0 : read_tag(&into->tags[1], object);
    }
    case 'n':
        return read_info(&into->info, object, into->values[0].i, value);
    case 'v': {
        long type = PyLong_AsLong(given[at + 1]);
        if (type == TYPE_DOUBLE) {
            value->d = PyFloat_AsDouble(object);
        } else if (type == TYPE_BOOLEAN) {
            value->j = PyObject_IsTrue(object);
        } else {
            value->j = PyLong_AsLongLong(object);
        }
        return PyErr_Occurred() ? -1 : 0;
    }
    case 'b':
        if (PyObject_GetBuffer(object, &into->elements, PyBUF_SIMPLE) < 0) {
            return -1;
        }
        value->l = into->elements.buf;
        return 0;
    case 's':
        into->text = PyUnicode_AsEncodedString(object, "utf-16-le", "surrogatepass");
        if (into->text == NULL) {
            return -1;
        }
        value->l = PyBytes_AS_STRING(into->text);
        into->length = (int32_t)(PyBytes_GET_SIZE(into->text) / 2);
        return 0;
    case 'm':
        value->l = jni_method_id(object);
        return value->l == NULL ? -1 : 0;
    case 'u':
        value->l = object == Py_None ? NULL : PyLong_AsVoidPtr(object);
        return PyErr_Occurred() ? -1 : 0;
    default: /* an int: its low half */
        value->j = PyLong_AsLongLong(object);
        return value->j == -1 && PyErr_Occurred() ? -1 : 0;
    }
}

#define CALL(types, ...) ((int32_t(*) types)self->function)(__VA_ARGS__)
#define P void *
#define I int32_t
#define J int64_t

static int32_t
call(const HeapCallback *self, const Arguments *arguments)
{
    const Value *v = arguments->values;
    switch (self->kind) {
    case ITERATION:
        return CALL((J, J, P, I, P), v[0].j, v[1].j, v[2].l, v[3].i, v[4].l);
    case REFERENCE:
        return CALL((I, P, J, J, J, P, P, I, P), v[0].i, v[1].l, v[2].j, v[3].j, v[4].j, v[5].l, v[6].l, v[7].i, v[8].l);
    case PRIMITIVE_FIELD:
        return CALL((I, P, J, P, Value, I, P), v[0].i, v[1].l, v[2].j, v[3].l, v[4], v[5].i, v[6].l);
    case ARRAY:
        return CALL((J, J, P, I, I, P, P), v[0].j, v[1].j, v[2].l, v[3].i, v[4].i, v[5].l, v[6].l);
    case STRING:
        return CALL((J, J, P, P, I, P), v[0].j, v[1].j, v[2].l, v[3].l, arguments->length, v[4].l);
    case OBJECT:
        return CALL((J, J, P, P), v[0].j, v[1].j, v[2].l, v[3].l);
    case ROOT:
        return CALL((I, J, J, P, P), v[0].i, v[1].j, v[2].j, v[3].l, v[4].l);
    case STACK:
        return CALL((I, J, J, P, J, I, P, I, P), v[0].i, v[1].j, v[2].j, v[3].l, v[4].j, v[5].i, v[6].l, v[7].i, v[8].l);
    default:
        return CALL((I, J, J, P, J, I, P), v[0].i, v[1].j, v[2].j, v[3].l, v[4].j, v[5].i, v[6].l);
    }
}

static PyObject *
callback_call(PyObject *object, PyObject *const *given, size_t flags, PyObject *names)
{
    const HeapCallback *self = (HeapCallback *)object;
    const char *kinds = rows[self->kind].kinds;
    Py_ssize_t count = (Py_ssize_t)strlen(kinds);
    Native *native = jni_native();
    if (native == NULL) {
        return PyErr_NoMemory();
    }
    if (names != NULL || PyVectorcall_NARGS(flags) != count) {
        return PyErr_Format(PyExc_TypeError, "%s gets %zd arguments", rows[self->kind].name, count);
    }
    Arguments arguments = {.tags = {{.tag = NULL}}};
    int32_t answer = 0;
    int failed = 0;
    for (int i = 0; !failed && i < count; i++) {
        failed = convert(&arguments, i, kinds[i], given) < 0;
    }
    if (!failed) {
        int before = native->without_python;
        native->without_python = 1;
        answer = call(self, &arguments);
        native->without_python = before;
        failed = write_tags(&arguments) < 0;
    }
    if (arguments.elements.obj != NULL) {
        PyBuffer_Release(&arguments.elements);
    }
    Py_XDECREF(arguments.text);
    if (failed) {
        return NULL;
    }
    if (self->kind >= OBJECT && (answer < 0 || answer > IGNORE)) {
        answer = IGNORE; /* neither to go on there nor to end it */
    }
    return PyLong_FromLong(answer);
}

static void
callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(HeapCallback, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot callback_slots[] = {
    {Py_tp_dealloc, callback_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, callback_members},
    {Py_tp_doc, "An agent's function for what a walk of the heap meets."},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "vmscope.native.jni.HeapCallback",
    .basicsize = sizeof(HeapCallback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callback_slots,
};

static PyObject *
py_heap_callback(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *name;
    PyObject *function;
    if (!PyArg_ParseTuple(arguments, "sO", &name, &function)) {
        return NULL;
    }
    void *address = PyLong_AsVoidPtr(function);
    int kind = 0, known = (int)(sizeof rows / sizeof *rows);
    while (kind < known && strcmp(name, rows[kind].name) != 0) {
        kind++;
    }
    if (PyErr_Occurred() || kind == known) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no heap callback is called %s", name);
    }
    HeapCallback *self = (HeapCallback *)callback_type->tp_alloc(callback_type, 0);
    if (self != NULL) {
        self->vectorcall = callback_call;
        self->kind = kind;
        self->function = (void (*)(void))address;
    }
    return (PyObject *)self;
}

static PyMethodDef functions[] = {
    {"heap_callback", py_heap_callback, METH_VARARGS, "heap_callback(kind, function): callable as tool.heap calls it."},
    {NULL, NULL, 0, NULL},
};

void (*jni_heap_function(PyObject *callback, int kind))(void)
{
    const HeapCallback *self = (HeapCallback *)callback;
    return Py_IS_TYPE(callback, callback_type) && self->kind == kind ? self->function : NULL;
}

int
jni_add_heap_callbacks(PyObject *module)
{
    callback_type = vmscope_add_type(module, &callback_spec, NULL);
    return callback_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
