/* References to objects and ids of methods. A reference is not an address but a place and what it was when it was made: a
 * foreign or a deleted one is found out without a look into memory that might not be there.
 *
 *   bits 0-1 kind, 2-31 place, 32-47 serial of the place, 48-63 number of the thread (local ones) */
#include "attributes.h"
#include "jni/interface.h"

#define MOST_HANDLES (UINT32_C(1) << 30)

typedef struct {
    PyObject *object; /* for weak ones a weak reference, or the object itself where its class has none */
    uint16_t serial;
    uint8_t kind; /* 0: free */
    uint8_t is_reference;
    uint32_t next; /* free place */
} Global;

static Global *globals;
static uint32_t global_count, global_room, global_free = MOST_HANDLES;

static __attribute__((cold, noinline)) int
more_locals(Native *native)
{
    uint32_t room = native->capacity ? 2 * native->capacity : 64;
    if (room > MOST_HANDLES) {
        return -1;
    }
    PyObject **locals = realloc(native->locals, room * sizeof *locals);
    if (locals == NULL) {
        return -1;
    }
    native->locals = locals;
    uint16_t *serials = realloc(native->serials, room * sizeof *serials);
    if (serials == NULL) {
        return -1;
    }
    memset(serials + native->capacity, 0, (room - native->capacity) * sizeof *serials);
    native->serials = serials;
    native->capacity = room;
    return 0;
}

void *
jni_local(Native *native, PyObject *object)
{
    if (object == NULL || object == Py_None) {
        return NULL;
    }
    if (native->count == native->capacity && more_locals(native) < 0) {
        return NULL;
    }
    uint32_t place = native->count++;
    native->locals[place] = Py_NewRef(object);
    return jni_handle(place, native->serials[place], native->number, LOCAL);
}

static void *
global_new(PyObject *object, int kind, int is_reference)
{
    uint32_t place = global_free;
    if (place != MOST_HANDLES) {
        global_free = globals[place].next;
    } else {
        if (global_count == global_room) {
            uint32_t room = global_room ? 2 * global_room : 64;
            Global *more = room > MOST_HANDLES ? NULL : realloc(globals, room * sizeof *more);
            if (more == NULL) {
                return NULL;
            }
            globals = more;
            global_room = room;
        }
        place = global_count++;
        globals[place].serial = 0;
    }
    Global *global = &globals[place];
    global->object = Py_NewRef(object);
    global->kind = (uint8_t)kind;
    global->is_reference = (uint8_t)is_reference;
    return jni_handle(place, global->serial, 0, kind);
}

void *
jni_global(PyObject *object)
{
    return object == NULL || object == Py_None ? NULL : global_new(object, GLOBAL, 0);
}

void *
jni_weak(PyObject *object)
{
    if (object == NULL || object == Py_None) {
        return NULL;
    }
    PyObject *reference = PyWeakref_NewRef(object, NULL);
    if (reference == NULL) {
        PyErr_Clear();
        return global_new(object, WEAK, 0);
    }
    void *handle = global_new(reference, WEAK, 1);
    Py_DECREF(reference);
    return handle;
}

static Global *
global_at(uintptr_t bits)
{
    uint32_t place = (uint32_t)bits >> 2;
    if (bits >> 48 || !(bits & 3) || place >= global_count) { /* a free place is of the kind 0 */
        return NULL;
    }
    Global *global = &globals[place];
    return global->kind == (bits & 3) && global->serial == (uint16_t)(bits >> 32) ? global : NULL;
}

static PyObject **
local_at(Native *native, uintptr_t bits)
{
    uint32_t place = (uint32_t)bits >> 2;
    if (native == NULL || bits >> 48 != native->number || place >= native->count ||
        native->serials[place] != (uint16_t)(bits >> 32) || native->locals[place] == NULL) {
        return NULL;
    }
    return &native->locals[place];
}

/* -- threads --------------------------------------------------------------------------------------- */

static PyTypeObject
    *thread_types[2]; /* the interface's own, and what stands for a thread that `threading` does not know */

int
jni_know_threads(PyObject *machine)
{
    PyObject *types = vmscope_attribute(machine, "thread_types");
    int known = types != NULL && PyArg_ParseTuple(types, "O!O!", &PyType_Type, &thread_types[0], &PyType_Type,
                                                  &thread_types[1]); /* classes that never go */
    Py_XDECREF(types);
    return known ? 0 : -1;
}

static inline int
is_thread(PyObject *object)
{
    return Py_IS_TYPE(object, thread_types[0]) || Py_IS_TYPE(object, thread_types[1]);
}

/* The program's object for a thread, where there is one by now: a new reference. */
static PyObject *
program_thread(PyObject *thread)
{
    PyObject *found = vmscope_call_method(jni_bridge, "thread_object", "(O)", thread);
    if (found == NULL) {
        jni_swallow();
        return Py_NewRef(thread);
    }
    return found;
}

/* As its handle refers to from now on; borrowed. */
static __attribute__((cold, noinline)) PyObject *
thread_at(Native *native, uintptr_t bits, PyObject *thread)
{
    Py_INCREF(thread);
    PyObject *now = program_thread(thread);
    Global *global = (bits & 3) == LOCAL ? NULL : global_at(bits); /* looked for again: the table may have moved */
    PyObject **place = (bits & 3) == LOCAL                       ? local_at(native, bits)
                       : global != NULL && !global->is_reference ? &global->object
                                                                 : NULL;
    if (place != NULL && *place == thread) {
        *place = Py_NewRef(now);
        Py_DECREF(thread);
    }
    Py_DECREF(now);
    Py_DECREF(thread);
    return now;
}

static PyObject *
object_at(Native *native, uintptr_t bits, int *found)
{
    *found = 1;
    if (bits == 0) {
        return NULL;
    }
    if ((bits & 3) == LOCAL) {
        PyObject **local = local_at(native, bits);
        if (local != NULL) {
            return *local;
        }
    } else {
        Global *global = global_at(bits);
        if (global != NULL) {
            if (!global->is_reference) {
                return global->object;
            }
#if PY_VERSION_HEX >= 0x030D0000
            PyObject *object;
            if (PyWeakref_GetRef(global->object, &object) <= 0) {
                return NULL;
            }
            Py_DECREF(object); /* with the GIL it stays while the caller takes it */
            return object;
#else
            PyObject *object = PyWeakref_GET_OBJECT(global->object);
            return object == Py_None ? NULL : object;
#endif
        }
    }
    *found = 0;
    return NULL;
}

PyObject *
jni_object(Native *native, const void *handle, int *found)
{
    PyObject *object = object_at(native, (uintptr_t)handle, found);
    return object != NULL && is_thread(object) ? thread_at(native, (uintptr_t)handle, object) : object;
}

int
jni_kind(Native *native, const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    int there = (bits & 3) == LOCAL ? local_at(native, bits) != NULL : global_at(bits) != NULL;
    return bits != 0 && there ? (int)(bits & 3) : 0;
}

const char *
jni_wrong(const Native *native, const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    uint32_t place = (uint32_t)bits >> 2;
    uint16_t serial = (uint16_t)(bits >> 32), number = (uint16_t)(bits >> 48);
    if ((bits & 3) == LOCAL && number != 0) {
        if (number != native->number) {
            return "a local reference of another thread, or none at all";
        }
        if (place < native->capacity &&
            (place >= native->count || native->serials[place] != serial || native->locals[place] == NULL)) {
            return "a local reference that was deleted, or whose frame is gone";
        }
    } else if ((bits & 3) != 0 && number == 0 && place < global_count) {
        return "a global reference that was deleted";
    }
    return "no reference";
}

int
jni_delete(Native *native, const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    PyObject *object;
    if ((bits & 3) == LOCAL) {
        PyObject **local = local_at(native, bits);
        if (local == NULL) {
            return 0;
        }
        uint32_t place = (uint32_t)(local - native->locals);
        object = *local;
        *local = NULL;
        native->serials[place]++;
        uint32_t begin = jni_frame_begin(native);
        while (native->count > begin && native->locals[native->count - 1] == NULL) {
            native->count--;
        }
    } else {
        Global *global = global_at(bits);
        if (global == NULL) {
            return 0;
        }
        object = global->object;
        global->object = NULL;
        global->kind = 0;
        global->serial++;
        global->next = global_free;
        global_free = (uint32_t)(global - globals);
    }
    Py_DECREF(object);
    return 1;
}

/* -- ids of methods -------------------------------------------------------------------------------- */

typedef struct {
    PyObject *method; /* kept alive for good */
    char *types;      /* of the arguments that JNI calls it with, once they are asked for */
    int varies;       /* they depend on who calls it, and are asked for each time */
} Method;

static Method *methods;
static size_t method_count, method_room;
static PyObject *others; /* the ids of those that are not code objects, by address */
Py_ssize_t jni_extra = -1;

#if PY_VERSION_HEX >= 0x030C0000
#define request_extra PyUnstable_Eval_RequestCodeExtraIndex
#define get_extra PyUnstable_Code_GetExtra
#define set_extra PyUnstable_Code_SetExtra
#else
#define request_extra _PyEval_RequestCodeExtraIndex
#define get_extra _PyCode_GetExtra
#define set_extra _PyCode_SetExtra
#endif

static void *
id_new(PyObject *method)
{
    if (method_count == method_room) {
        size_t room = method_room ? 2 * method_room : 256;
        Method *more = realloc(methods, room * sizeof *more);
        if (more == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        methods = more;
        method_room = room;
    }
    methods[method_count++] = (Method){.method = Py_NewRef(method)};
    return (void *)(uintptr_t)(method_count << 3 | 5);
}

static __attribute__((cold, noinline)) void *
id_of_other(PyObject *method)
{
    PyObject *address = PyLong_FromVoidPtr(method);
    if (address == NULL || (others == NULL && (others = PyDict_New()) == NULL)) {
        Py_XDECREF(address);
        return NULL;
    }
    void *id = NULL;
    PyObject *known = PyDict_GetItemWithError(others, address);
    if (known != NULL) {
        id = PyLong_AsVoidPtr(known);
    } else if (!PyErr_Occurred() && (id = id_new(method)) != NULL) {
        PyObject *number = PyLong_FromVoidPtr(id);
        if (number == NULL || PyDict_SetItem(others, address, number) < 0) {
            id = NULL;
        }
        Py_XDECREF(number);
    }
    Py_DECREF(address);
    return id;
}

void *
jni_method_id(PyObject *method)
{
    if (!PyCode_Check(method)) {
        return id_of_other(method);
    }
    void *id = jni_known_method_id(method);
    if (id != NULL) {
        return id;
    }
    if (jni_extra < 0) {
        jni_extra = request_extra(NULL);
    }
    if (jni_extra < 0) { /* all of the few places for such things are taken */
        PyErr_Clear();
        return id_of_other(method);
    }
    if (get_extra(method, jni_extra, &id) < 0) {
        return NULL;
    }
    if (id == NULL && (id = id_new(method)) != NULL && set_extra(method, jni_extra, id) < 0) {
        return NULL;
    }
    return id;
}

static Method *
method_at(const void *id)
{
    uintptr_t bits = (uintptr_t)id;
    return (bits & 7) == 5 && bits >> 3 != 0 && bits >> 3 <= method_count ? &methods[(bits >> 3) - 1] : NULL;
}

PyObject *
jni_method(const void *id)
{
    const Method *method = method_at(id);
    return method == NULL ? NULL : method->method;
}

int
jni_types(const void *id, char types[MOST_TYPES + 1])
{
    Method *method = method_at(id);
    if (method == NULL) {
        return 0;
    }
    if (method->types != NULL) {
        strcpy(types, method->types);
        return 1;
    }
    Py_ssize_t length;
    PyObject *given = vmscope_call_method(jni_bridge, "jni_types", "(N)", PyLong_FromVoidPtr((void *)id));
    const char *text = given == NULL || given == Py_None ? NULL : PyUnicode_AsUTF8AndSize(given, &length);
    int known = text != NULL && length <= MOST_TYPES;
    if (known) {
        memcpy(types, text, (size_t)length + 1);
        method = method_at(id); /* there may be more of them by now, elsewhere */
        method->types = method->varies ? NULL : strdup(types);
    }
    Py_XDECREF(given);
    return known;
}

/* -- for Python ------------------------------------------------------------------------------------ */

static PyObject *
from_handle(void *handle, int wanted)
{
    if (handle == NULL && wanted) {
        return PyErr_NoMemory();
    }
    return PyLong_FromVoidPtr(handle);
}

static PyObject *
py_local(PyObject *Py_UNUSED(module), PyObject *object)
{
    Native *native = jni_native();
    if (native == NULL) {
        return PyErr_NoMemory();
    }
    if (!is_thread(object)) {
        return from_handle(jni_local(native, object), object != Py_None);
    }
    PyObject *thread = program_thread(object);
    void *handle = jni_local(native, thread);
    Py_DECREF(thread);
    return from_handle(handle, 1);
}

static PyObject *
py_global_reference(PyObject *Py_UNUSED(module), PyObject *object)
{
    return from_handle(jni_global(object), object != Py_None);
}

static PyObject *
py_weak_reference(PyObject *Py_UNUSED(module), PyObject *object)
{
    return from_handle(jni_weak(object), object != Py_None);
}

static int
as_pointer(PyObject *number, void **pointer)
{
    *pointer = PyLong_AsVoidPtr(number);
    return *pointer == NULL && PyErr_Occurred() ? -1 : 0;
}

static PyObject *
py_resolve(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *handle;
    int found;
    if (as_pointer(number, &handle) < 0) {
        return NULL;
    }
    PyObject *object = jni_object(jni_native(), handle, &found);
    if (!found) {
        PyErr_Format(PyExc_LookupError, "%p is not a reference", handle);
        return NULL;
    }
    return Py_NewRef(object == NULL ? Py_None : object);
}

static PyObject *
py_kind(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *handle;
    return as_pointer(number, &handle) < 0 ? NULL : PyLong_FromLong(jni_kind(jni_native(), handle));
}

static PyObject *
py_delete(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *handle;
    return as_pointer(number, &handle) < 0 ? NULL : PyBool_FromLong(jni_delete(jni_native(), handle));
}

static PyObject *
py_method_id(PyObject *Py_UNUSED(module), PyObject *method)
{
    void *id = jni_method_id(method);
    return id == NULL ? NULL : PyLong_FromVoidPtr(id);
}

static PyObject *
py_new_method_id(PyObject *Py_UNUSED(module), PyObject *method)
{
    void *id = id_new(method);
    return id == NULL ? NULL : PyLong_FromVoidPtr(id);
}

static PyObject *
py_vary_method(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *id;
    if (as_pointer(number, &id) < 0) {
        return NULL;
    }
    Method *method = method_at(id);
    if (method != NULL) {
        free(method->types);
        method->types = NULL;
        method->varies = 1;
    }
    Py_RETURN_NONE;
}

static PyObject *
py_wrong(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *handle;
    Native *native = jni_native();
    if (native == NULL) {
        return PyErr_NoMemory();
    }
    return as_pointer(number, &handle) < 0 ? NULL : PyUnicode_FromString(jni_wrong(native, handle));
}

static PyObject *
py_method(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *id;
    if (as_pointer(number, &id) < 0) {
        return NULL;
    }
    PyObject *method = jni_method(id);
    if (method == NULL) {
        PyErr_Format(PyExc_LookupError, "%p is not a method", id);
    }
    return Py_XNewRef(method);
}

static PyMethodDef functions[] = {
    {"local", py_local, METH_O, "local(object) -> int: a local reference of this thread, in its innermost frame."},
    {"global_reference", py_global_reference, METH_O, "global_reference(object) -> int"},
    {"weak_reference", py_weak_reference, METH_O, "weak_reference(object) -> int: strong where the class has no weak."},
    {"resolve", py_resolve, METH_O, "resolve(handle) -> object: None for null; LookupError for what is none."},
    {"kind", py_kind, METH_O, "kind(handle) -> int: 1 local, 2 global, 3 weak, 0 none."},
    {"delete", py_delete, METH_O, "delete(handle) -> bool: whether there was such a reference."},
    {"method_id", py_method_id, METH_O, "method_id(method) -> int: the same each time; keeps it alive for good."},
    {"new_method_id", py_new_method_id, METH_O, "new_method_id(method) -> int: one more, for calls of another kind."},
    {"vary_method", py_vary_method, METH_O,
     "vary_method(id): from now on its arguments' types depend on who calls it."},
    {"wrong", py_wrong, METH_O, "wrong(handle) -> str: what is wrong with what is not a reference."},
    {"method", py_method, METH_O, "method(id) -> object; LookupError."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_handles(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
