/* The slots of a JNIEnv, and the way from them into Python. */
#include "jni/jnienv.h"

#include "attributes.h"
#include "jni/jnienv_slots.h"

int jni_checks;
VMSCOPE_THREAD_LOCAL const void *jni_caller;

int
jni_begin(Entry *entry, const void *given, int slot)
{
    Native *native = entry->native = jni_native();
    PyErr_Fetch(&entry->type, &entry->value, &entry->trace);
    jni_tidy();
    if (!jni_checks) {
        return 1;
    }
    if (given != native) {
        jni_report("%s: the JNIEnv is another thread's", jni_names[slot]);
    }
    if (native->pending != NULL && !jni_despite_exception[slot]) {
        jni_report("%s: called with an exception pending: %R", jni_names[slot], native->pending);
        return 0;
    }
    return 1;
}

void
jni_end(Entry *entry)
{
    PyErr_Restore(entry->type, entry->value, entry->trace);
}

void
jni_set_pending(Native *native, PyObject *error)
{
    if (native->pending == NULL) {
        native->pending = error;
    } else {
        Py_XDECREF(error);
    }
}

void
jni_raised(Native *native)
{
    PyObject *error = jni_fetch();
    if (error != NULL && PyErr_GivenExceptionMatches(error, PyExc_MemoryError)) {
        Py_XDECREF(vmscope_call_method(jni_bridge, "post_exhausted", "(O)", error));
        PyErr_Clear();
    }
    jni_set_pending(native, error);
}

/* What came from Python, which has seen to it that it is in its type's range. */
static Value
result_of(PyObject *object, char kind)
{
    Value value = {.j = 0};
    switch (kind) {
    case 'z':
        value.z = (uint8_t)PyLong_AsLong(object);
        break;
    case 'b':
        value.b = (int8_t)PyLong_AsLong(object);
        break;
    case 'c':
        value.c = (uint16_t)PyLong_AsLong(object);
        break;
    case 's':
        value.s = (int16_t)PyLong_AsLong(object);
        break;
    case 'i':
        value.i = (int32_t)PyLong_AsLong(object);
        break;
    case 'j':
        value.j = PyLong_AsLongLong(object);
        break;
    case 'f':
        value.f = (float)PyFloat_AsDouble(object);
        break;
    case 'd':
        value.d = PyFloat_AsDouble(object);
        break;
    case 'l':
        value.l = PyLong_AsVoidPtr(object);
        break;
    default:
        break;
    }
    return value;
}

static Value
call(Native *native, int slot, char kind, int count, const Value *arguments, const char *kinds)
{
    Value value = {.j = 0};
    PyObject *tuple = jni_arguments(count, arguments, kinds);
    PyObject *result = tuple == NULL ? NULL : vmscope_call_method(jni_bridge, "jni_call", "(iO)", slot, tuple);
    if (result != NULL) {
        value = result_of(result, kind);
        Py_DECREF(result);
    }
    if (PyErr_Occurred()) {
        value.j = 0;
        jni_raised(native);
    }
    Py_XDECREF(tuple);
    return value;
}

Value
jni_call(const void *given, int slot, char result, int count, const Value *arguments, const char *kinds)
{
    Value value = {.j = 0};
    JNI_BEGIN(given, slot)
    value = call(entry.native, slot, result, count, arguments, kinds);
    JNI_END
    return value;
}

/* Takes the arguments of these types out of a list. */
static void
take(const char *types, va_list list, Value *values)
{
    for (; *types != '\0'; types++, values++) {
        switch (*types) {
        case 'Z':
            values->z = va_arg(list, int) != 0;
            break;
        case 'B':
            values->b = (int8_t)va_arg(list, int);
            break;
        case 'C':
            values->c = (uint16_t)va_arg(list, int);
            break;
        case 'S':
            values->s = (int16_t)va_arg(list, int);
            break;
        case 'I':
            values->i = va_arg(list, int32_t);
            break;
        case 'J':
            values->j = va_arg(list, int64_t);
            break;
        case 'F':
            values->f = (float)va_arg(list, double);
            break;
        case 'D':
            values->d = va_arg(list, double);
            break;
        default:
            values->l = va_arg(list, void *);
            break;
        }
    }
}

Value
jni_call_list(const void *given, int slot, char result, int count, const Value *arguments, va_list list)
{
    Value value = {.j = 0};
    JNI_BEGIN(given, slot)
    Value values[MOST_TYPES], all[4];
    char types[MOST_TYPES + 1];
    memcpy(all, arguments, (size_t)count * sizeof *all);
    all[count].l = values;
    if (jni_types(arguments[count - 1].l, types)) {
        take(types, list, values);
    } else {
        all[count].l = NULL; /* no method, as the function itself will find */
    }
    if (PyErr_Occurred()) {
        jni_raised(entry.native);
    } else {
        value = call(entry.native, slot, result, count + 1, all, "llll");
    }
    JNI_END
    return value;
}

/* -- for Python ------------------------------------------------------------------------------------ */

static PyObject *
py_check(PyObject *Py_UNUSED(module), PyObject *on)
{
    int given = PyObject_IsTrue(on);
    if (given < 0) {
        return NULL;
    }
    jni_checks = given;
    Py_RETURN_NONE;
}

static PyObject *
py_throw(PyObject *Py_UNUSED(module), PyObject *error)
{
    Native *native = jni_native();
    if (native == NULL) {
        return PyErr_NoMemory();
    }
    Py_XSETREF(native->pending, error == Py_None ? NULL : Py_NewRef(error));
    Py_RETURN_NONE;
}

static PyObject *
py_pending(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    Native *native = jni_native();
    return Py_NewRef(native == NULL || native->pending == NULL ? Py_None : native->pending);
}

static PyMethodDef functions[] = {
    {"check", py_check, METH_O, "check(on): whether what agents do wrong with JNI is logged."},
    {"throw", py_throw, METH_O, "throw(exception or None): what is pending on this thread, in place of what was."},
    {"pending", py_pending, METH_NOARGS, "pending() -> exception or None"},
    {NULL, NULL, 0, NULL},
};

int
jni_add_jnienv(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
