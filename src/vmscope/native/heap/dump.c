/* A heap dump: every object, what refers to what, and from where all of it is reached.
 *
 * The GIL is held throughout, and nothing is made that the collector knows, so that the dump is of one moment. What is
 * kept meanwhile is a byte for each 16 of the memory that objects stand in, and a list of those still to be written. */
#include "heap/dump.h"

#ifdef HAS_OBJECTS

#include "attributes.h"
#include "threads/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TELL 1000000000   /* ns between two words to the client */
#define TELL_EACH 0x10000 /* objects between two looks at the clock */

/* -- classes -------------------------------------------------------------------------------------- */

static const char *const own_names[OWN_NAMES] = {
    [NAME_SIZE] = "__size__",     [NAME_COUNT] = "__refcount__", [NAME_REST] = "__referents__",
    [NAME_CLASS] = "__class__",   [NAME_DICT] = "__dict__",      [NAME_BASES] = "__bases__",
    [NAME_LINE] = "__mro__",      [NAME_NAME] = "name",          [NAME_IDENT] = "ident",
    [NAME_NATIVE] = "native_id",  [NAME_THREAD] = "thread",      [NAME_HIGH] = "HI_BYTE_SHIFT",
    [NAME_LOW] = "LO_BYTE_SHIFT", [NAME_REFERENT] = "referent",  [NAME_EMPTY] = "",
    [NAME_LATIN1] = "LATIN1",     [NAME_UTF16] = "UTF16",
};

static const Static thread_fields[] = {{NAME(NAME_NAME), HPROF_OBJECT, 0},
                                       {NAME(NAME_THREAD), HPROF_OBJECT, 0},
                                       {NAME(NAME_IDENT), HPROF_LONG, 0},
                                       {NAME(NAME_NATIVE), HPROF_LONG, 0}},
                    shifts[] = {{NAME(NAME_HIGH), HPROF_INT, 0}, {NAME(NAME_LOW), HPROF_INT, 8}},
                    referent[] = {{NAME(NAME_REFERENT), HPROF_OBJECT, 0}};

static const OwnClass own_classes[OWN_CLASSES] = {
    [ARRAY_CLASS] = {.name = "[Ljava/lang/Object;", .base = OWN_CLASSES},
    [BYTES_CLASS] = {.name = "[B", .base = OWN_CLASSES},
    [LOADER_CLASS] = {.name = "java/lang/ClassLoader", .base = OWN_CLASSES},
    [THREAD_CLASS] = {.name = "java/lang/Thread", .base = OWN_CLASSES, .fields = thread_fields, .field_count = 4},
    [UTF16_CLASS] = {.name = "java/lang/StringUTF16", .base = OWN_CLASSES, .statics = shifts, .static_count = 2},
    [REFERENCE_CLASS] = {.name = "java/lang/ref/Reference", .base = OWN_CLASSES, .fields = referent, .field_count = 1},
    [SOFT_CLASS] = {.name = "java/lang/ref/SoftReference", .base = REFERENCE_CLASS},
    [WEAK_CLASS] = {.name = "java/lang/ref/WeakReference", .base = REFERENCE_CLASS},
    [FINAL_CLASS] = {.name = "java/lang/ref/FinalReference", .base = REFERENCE_CLASS},
    [PHANTOM_CLASS] = {.name = "java/lang/ref/PhantomReference", .base = REFERENCE_CLASS},
};

/* What a module calls itself, borrowed from its globals; or NULL. */
static PyObject *
name_of_module(PyObject *globals)
{
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(globals, &at, &key, &value);) {
        if (PyUnicode_CheckExact(key) && PyUnicode_CheckExact(value) &&
            PyUnicode_CompareWithASCIIString(key, "__name__") == 0) {
            return value;
        }
    }
    return NULL;
}

/* Every class there is, each once: object, and again and again the subclasses of what was found. */
static int
find_types(Dump *dump)
{
    if (vmscope_dump_append(&dump->types, (PyObject *)&PyBaseObject_Type) < 0) {
        return -1;
    }
    PyObject *subclasses = vmscope_attribute((PyObject *)&PyType_Type, "__subclasses__");
    for (size_t i = 0; subclasses != NULL && i < dump->types.length; i++) {
        PyObject *found = PyObject_CallOneArg(subclasses, dump->types.items[i]);
        for (Py_ssize_t j = 0; found != NULL && j < PyList_GET_SIZE(found); j++) {
            PyObject *type = PyList_GET_ITEM(found, j);
            uint8_t *mark = vmscope_mark(&dump->marks, type);
            if (mark == NULL || (!(*mark & SEEN) && vmscope_dump_append(&dump->types, type) < 0)) {
                Py_CLEAR(found);
                break;
            }
            *mark |= SEEN;
        }
        if (found == NULL) {
            Py_CLEAR(subclasses);
            return PyErr_Occurred() ? -1 : (PyErr_NoMemory(), -1);
        }
        Py_DECREF(found);
    }
    Py_XDECREF(subclasses);
    return subclasses == NULL ? -1 : 0;
}

static int
note_frame(PyFrameObject *frame, PyThreadState *state, int depth, void *context)
{
    (void)state, (void)depth;
    PyObject *globals = PyFrame_GetGlobals(frame);
    int status = vmscope_dump_note_module(context, name_of_module(globals));
    Py_DECREF(globals);
    return status;
}

/* All names that no class may have. */
static int
note_names(Dump *dump)
{
    static const char *const mapped[] = {"java/lang/Object", "java/lang/Class", "java/lang/String"};
    int status = (dump->taken = PySet_New(NULL)) == NULL ? -1 : 0;
    for (size_t i = 0; status == 0 && i < sizeof mapped / sizeof *mapped; i++) {
        status = vmscope_dump_reserve(dump, mapped[i]);
    }
    for (int i = 0; status == 0 && i < OWN_CLASSES; i++) {
        status = own_classes[i].name[0] == '[' ? 0 : vmscope_dump_reserve(dump, own_classes[i].name);
    }
    for (size_t i = 0; status == 0 && i < dump->types.length; i++) {
        status = vmscope_dump_note_type(dump, (PyTypeObject *)dump->types.items[i]);
    }
    return status < 0 ? -1 : vmscope_each_frame(note_frame, dump);
}

static int
load_classes(Dump *dump)
{
    for (int i = 0; i < OWN_NAMES; i++) {
        vmscope_dump_name(dump, id_of_name(i), own_names[i], strlen(own_names[i]));
    }
    for (size_t i = 0; i < dump->types.length; i++) {
        if (vmscope_dump_load(dump, (PyTypeObject *)dump->types.items[i]) < 0) {
            return -1;
        }
    }
    for (int i = 0; i < OWN_CLASSES; i++) {
        uint64_t name = new_id(dump);
        vmscope_dump_name(dump, name, own_classes[i].name, strlen(own_classes[i].name));
        vmscope_dump_load_own(dump, id_of_class(i), name);
    }
    return 0;
}

static int
write_classes(Dump *dump)
{
    for (size_t i = 0; i < dump->types.length; i++) {
        if (vmscope_dump_class(dump, (PyTypeObject *)dump->types.items[i]) < 0) {
            return -1;
        }
    }
    for (int i = 0; i < OWN_CLASSES; i++) {
        vmscope_dump_own_class(dump, id_of_class(i), own_classes + i);
    }
    return vmscope_dump_todo(dump);
}

/* -- threads -------------------------------------------------------------------------------------- */

typedef struct {
    Dump *dump;
    PyThreadState *state; /* whose frames are being seen */
    PyThreadState *own;   /* the thread of vmscope's that writes the dump and is not shown in it, or NULL */
    uint32_t thread;      /* its number, from 1 */
    int depth;
    uint64_t *frames; /* ids of its frames */
    size_t count, room;
    struct Module {
        PyObject *name; /* borrowed, from the module's globals */
        uint64_t id;
        uint32_t serial;
    } *modules;
    size_t module_count;
} Stacks;

/* A class that stands for the module whose code a frame runs; its number. */
static int64_t
serial_of_module(Stacks *stacks, PyFrameObject *frame)
{
    Dump *dump = stacks->dump;
    PyObject *globals = PyFrame_GetGlobals(frame), *name = name_of_module(globals);
    Py_DECREF(globals);
    for (size_t i = 0; i < stacks->module_count; i++) {
        struct Module *known = stacks->modules + i;
        if (known->name == name || (name != NULL && known->name != NULL && PyUnicode_Compare(known->name, name) == 0)) {
            return known->serial;
        }
    }
    struct Module *larger = realloc(stacks->modules, (stacks->module_count + 1) * sizeof *larger);
    if (larger == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    stacks->modules = larger;
    struct Module *made = larger + stacks->module_count++;
    uint64_t id = new_id(dump);
    PyObject *shown = vmscope_dump_name_of_module(dump, name);
    int status = shown == NULL ? -1 : vmscope_dump_text(dump, id, shown);
    Py_XDECREF(shown);
    if (status < 0) {
        return -1;
    }
    *made = (struct Module){name, new_id(dump), 0};
    made->serial = vmscope_dump_load_own(dump, made->id, id);
    return made->serial;
}

static void
end_trace(Stacks *stacks)
{
    if (stacks->thread > 0) {
        Hprof *out = &stacks->dump->out;
        vmscope_hprof_record(out, HPROF_TRACE, (uint32_t)(4 + 4 + 4 + 8 * stacks->count));
        vmscope_hprof_put(out, NO_FRAMES + stacks->thread, 4);
        vmscope_hprof_put(out, stacks->thread, 4);
        vmscope_hprof_put(out, stacks->count, 4);
        for (size_t i = 0; i < stacks->count; i++) {
            vmscope_hprof_id(out, stacks->frames[i]);
        }
        stacks->count = 0;
    }
}

static int
name_frame(PyFrameObject *frame, PyThreadState *state, int depth, void *context)
{
    Stacks *stacks = context;
    Dump *dump = stacks->dump;
    (void)depth;
    if (state == stacks->own) {
        return 0;
    }
    if (state != stacks->state) {
        end_trace(stacks);
        stacks->state = state;
        stacks->thread++;
    }
    if (stacks->count == stacks->room) {
        size_t room = stacks->room == 0 ? 64 : stacks->room * 2;
        uint64_t *larger = realloc(stacks->frames, room * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        stacks->frames = larger;
        stacks->room = room;
    }
    int64_t serial = serial_of_module(stacks, frame);
    uint64_t method = new_id(dump), file = new_id(dump), id = new_id(dump);
    PyCodeObject *code = PyFrame_GetCode(frame);
    int named = serial < 0 ? -1 : vmscope_dump_text(dump, method, code->co_qualname);
    named = named < 0 ? -1 : vmscope_dump_text(dump, file, code->co_filename);
    Py_DECREF(code);
    if (named < 0) {
        return -1;
    }
    vmscope_hprof_record(&dump->out, HPROF_FRAME, 8 + 8 + 8 + 8 + 4 + 4);
    vmscope_hprof_id(&dump->out, id);
    vmscope_hprof_id(&dump->out, method);
    vmscope_hprof_id(&dump->out, id_of_name(NAME_EMPTY)); /* the signature */
    vmscope_hprof_id(&dump->out, file);
    vmscope_hprof_put(&dump->out, (uint64_t)serial, 4);
    vmscope_hprof_put(&dump->out, (uint64_t)(uint32_t)PyFrame_GetLineNumber(frame), 4);
    stacks->frames[stacks->count++] = id;
    return 0;
}

/* The thread's object of `threading`, borrowed, or NULL. */
static PyObject *
thread_object(const PyThreadState *state)
{
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "threading");
    PyObject *active = module == NULL || !PyModule_CheckExact(module)
                           ? NULL
                           : PyDict_GetItemString(PyModule_GetDict(module), "_active");
    PyObject *ident = active == NULL || !PyDict_CheckExact(active) ? NULL : PyLong_FromUnsignedLong(state->thread_id);
    PyObject *found = ident == NULL ? NULL : PyDict_GetItemWithError(active, ident);
    Py_XDECREF(ident);
    PyErr_Clear();
    return found;
}

static int
write_thread(Dump *dump, PyThreadState *state, uint32_t number)
{
    PyObject *object = thread_object(state), *name = NULL;
    if (object != NULL) {
        PyObject *key = PyUnicode_InternFromString("_name");
        name = key == NULL ? NULL : PyObject_GenericGetAttr(object, key); /* without a `__getattr__` of the program's */
        Py_XDECREF(key);
        PyErr_Clear();
        if (name != NULL && (!PyUnicode_CheckExact(name) || vmscope_dump_reach(dump, name, 0) < 0)) {
            Py_CLEAR(name);
        }
        if (PyErr_Occurred() || vmscope_dump_reach(dump, object, 0) < 0) {
            Py_XDECREF(name);
            return -1;
        }
    }
    uint64_t id = new_id(dump);
    const Shape *base = ((Entry *)vmscope_class(&dump->classes, &PyBaseObject_Type)->more)->shape;
    Hprof *out = &dump->out;
    vmscope_hprof_part(out, HPROF_INSTANCE, 1 + 8 + 4 + 8 + 4 + 4 * 8 + (size_t)base->bytes);
    vmscope_hprof_id(out, id);
    vmscope_hprof_put(out, NO_FRAMES, 4);
    vmscope_hprof_id(out, id_of_class(THREAD_CLASS));
    vmscope_hprof_put(out, 4 * 8 + base->bytes, 4);
    vmscope_hprof_id(out, id_of(name));
    vmscope_hprof_id(out, id_of(object));
    vmscope_hprof_id(out, state->thread_id);
    vmscope_hprof_id(out, state->native_thread_id);
    for (uint32_t i = 0; i < base->bytes; i++) {
        vmscope_hprof_put(out, 0, 1);
    }
    vmscope_hprof_part(out, HPROF_THREAD, 1 + 8 + 4 + 4);
    vmscope_hprof_id(out, id);
    vmscope_hprof_put(out, number, 4);
    vmscope_hprof_put(out, NO_FRAMES + number, 4);
    Py_XDECREF(name); /* its thread has it */
    return 0;
}

static int
root_variable(PyObject *value, void *context)
{
    Stacks *stacks = context;
    if (vmscope_dump_reach(stacks->dump, value, 1) < 0) {
        return -1;
    }
    Hprof *out = &stacks->dump->out;
    vmscope_hprof_part(out, HPROF_JAVA_FRAME, 1 + 8 + 4 + 4);
    vmscope_hprof_id(out, id_of(value));
    vmscope_hprof_put(out, stacks->thread, 4);
    vmscope_hprof_put(out, (uint64_t)stacks->depth, 4);
    return 0;
}

static int
root_frame(PyFrameObject *frame, PyThreadState *state, int depth, void *context)
{
    Stacks *stacks = context;
    if (state == stacks->own) {
        return 0;
    }
    if (state != stacks->state) {
        stacks->state = state;
        if (write_thread(stacks->dump, state, ++stacks->thread) < 0) {
            return -1;
        }
    }
    stacks->depth = depth;
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *globals = PyFrame_GetGlobals(frame);
    int status = root_variable((PyObject *)code, stacks) < 0 || root_variable(globals, stacks) < 0 ? -1 : 0;
    Py_DECREF(globals);
    Py_DECREF(code);
    return status < 0 ? -1 : vmscope_each_variable(frame, root_variable, stacks);
}

static int
name_threads(Stacks *stacks)
{
    vmscope_hprof_record(&stacks->dump->out, HPROF_TRACE, 4 + 4 + 4);
    vmscope_hprof_put(&stacks->dump->out, NO_FRAMES, 4);
    vmscope_hprof_put(&stacks->dump->out, 0, 4);
    vmscope_hprof_put(&stacks->dump->out, 0, 4);
    int status = vmscope_each_frame(name_frame, stacks);
    end_trace(stacks);
    return status;
}

static int
write_threads(Stacks *stacks)
{
    for (size_t i = 0; i < stacks->module_count; i++) {
        vmscope_dump_own_class(stacks->dump, stacks->modules[i].id, &(OwnClass){.base = OWN_CLASSES});
    }
    stacks->state = NULL;
    stacks->thread = 0;
    return vmscope_each_frame(root_frame, stacks) < 0 ? -1 : vmscope_dump_todo(stacks->dump);
}

/* -- objects -------------------------------------------------------------------------------------- */

static int
mark_object(PyObject *object, void *context)
{
    Dump *dump = context;
    uint8_t *mark = vmscope_mark(&dump->marks, object);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *mark |= KNOWN;
    dump->known++;
    return 0;
}

/* Every second, where the client wants to know. */
static void
tell_progress(Dump *dump)
{
    int64_t now = vmscope_now();
    if (now - dump->shown >= TELL) {
        char text[96];
        snprintf(text, sizeof text, "%d%%: %llu objects, %llu bytes", (int)(dump->visited * 100 / dump->known),
                 (unsigned long long)dump->objects, (unsigned long long)(dump->out.written + dump->out.used));
        vmscope_tell_client(dump->client, text);
        dump->shown = now;
    }
}

static int
write_one(PyObject *object, void *context)
{
    Dump *dump = context;
    uint8_t *mark = vmscope_mark(&dump->marks, object);
    if (mark == NULL || !(*mark & KNOWN)) { /* made since */
        return 0;
    }
    if (++dump->visited % TELL_EACH == 0 && dump->client != NULL) {
        tell_progress(dump);
    }
    return vmscope_dump_object(dump, object) < 0 ? -1 : vmscope_dump_todo(dump);
}

static int
write_root(PyObject *object, void *context)
{
    Dump *dump = context;
    const uint8_t *mark = vmscope_mark(&dump->marks, object);
    if (mark != NULL && *mark & KNOWN &&
        Py_REFCNT(object) - 1 > vmscope_dump_count(dump, object, *mark)) { /* without the one of this visit */
        vmscope_hprof_part(&dump->out, HPROF_JNI_GLOBAL, 1 + 8 + 8);
        vmscope_hprof_id(&dump->out, id_of(object));
        vmscope_hprof_id(&dump->out, id_of(object));
    }
    return dump->out.error == 0 ? 0 : -1;
}

static int
write_roots(Dump *dump)
{
    for (size_t i = 0; i < dump->types.length; i++) {
        if (!PyType_HasFeature((PyTypeObject *)dump->types.items[i], Py_TPFLAGS_HEAPTYPE)) {
            vmscope_hprof_part(&dump->out, HPROF_STICKY_CLASS, 1 + 8);
            vmscope_hprof_id(&dump->out, id_of(dump->types.items[i]));
        }
    }
    for (int i = 0; i < OWN_CLASSES; i++) {
        vmscope_hprof_part(&dump->out, HPROF_STICKY_CLASS, 1 + 8);
        vmscope_hprof_id(&dump->out, id_of_class(i));
    }
    return vmscope_each_tracked(write_root, dump);
}

static int
touch_frame(PyFrameObject *frame, PyThreadState *state, int depth, void *context)
{
    (void)frame, (void)state, (void)depth, (void)context;
    return 0;
}

static int
write_dump(Dump *dump, Stacks *stacks)
{
    dump->python = vmscope_python_traverse();
    if (dump->python == NULL || find_types(dump) < 0 ||
        vmscope_each_frame(touch_frame, NULL) < 0 || /* which makes their objects */
        vmscope_each_tracked(mark_object, dump) < 0) {
        return -1;
    }
    if (note_names(dump) < 0 || load_classes(dump) < 0 || name_threads(stacks) < 0 || write_classes(dump) < 0 ||
        vmscope_dump_reach(dump, PyImport_GetModuleDict(), 0) < 0 || write_threads(stacks) < 0 ||
        vmscope_each_tracked(write_one, dump) < 0 || vmscope_dump_todo(dump) < 0) {
        return -1;
    }
    return write_roots(dump);
}

static PyObject *
dump_heap(PyObject *module, PyObject *args)
{
    int fd;
    PyObject *client = Py_None;
    if (!PyArg_ParseTuple(args, "i|O:dump_heap", &fd, &client)) {
        return NULL;
    }
    if (client != Py_None && !Py_IS_TYPE(client, vmscope_state(module)->call)) {
        PyErr_SetString(PyExc_TypeError, "what gets the progress has to be a call of the listener's");
        return NULL;
    }
    Dump dump = {.client = client == Py_None ? NULL : client, .shown = vmscope_now()};
    Stacks stacks = {.dump = &dump, .own = vmscope_on_own_thread ? PyThreadState_Get() : NULL};
    if (vmscope_hprof_open(&dump.out, fd) < 0) {
        return PyErr_NoMemory();
    }
    int collecting = PyGC_Disable();
    int status = write_dump(&dump, &stacks);
    if (collecting) {
        PyGC_Enable();
    }
    if (vmscope_hprof_close(&dump.out) < 0 && !PyErr_Occurred()) {
        errno = dump.out.error;
        PyErr_SetFromErrno(PyExc_OSError);
        status = -1;
    }
    for (size_t i = 0; dump.classes.table != NULL && i < (size_t)1 << dump.classes.bits; i++) {
        if (dump.classes.table[i] != NULL) {
            vmscope_free_entry(dump.classes.table[i]->more);
        }
    }
    vmscope_free_classes(&dump.classes);
    vmscope_free_marks(&dump.marks);
    Py_XDECREF(dump.taken);
    free(dump.todo.items);
    free(dump.found.items);
    free(dump.named.items);
    free(dump.values);
    free(dump.excess);
    free(stacks.frames);
    free(stacks.modules);
    free(dump.types.items);
    return status < 0 ? NULL
                      : Py_BuildValue("KK", (unsigned long long)dump.objects, (unsigned long long)dump.out.written);
}

static PyMethodDef functions[] = {
    {"dump_heap", dump_heap, METH_VARARGS,
     "dump_heap(fd, call=None): writes every object in the HPROF format; (objects, bytes). As of one moment: no other\n"
     "thread runs meanwhile. The client of the call gets the progress. OSError when it cannot be written."},
    {NULL},
};

int
vmscope_add_dump(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

int
vmscope_add_dump(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
