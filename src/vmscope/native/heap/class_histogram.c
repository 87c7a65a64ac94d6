/* How many objects there are of each class, and of how many bytes. */
#include "heap/objects.h"

#ifdef HAS_OBJECTS

#include <stdlib.h>

typedef struct {
    Classes classes;
    Marks marks; /* 1: counted, or to be counted with those that the collector knows */
    int frozen;  /* the collector knows objects that it does not tell of */
    PyObject **todo; /* such objects whose references are still to be followed; borrowed */
    size_t length, room;
} Census;

static int
count(Census *census, PyObject *object, Class **class)
{
    *class = vmscope_class(&census->classes, Py_TYPE(object));
    if (*class == NULL) {
        return -1;
    }
    (*class)->count++;
    (*class)->bytes += (uint64_t)vmscope_size_of(*class, object);
    return 0;
}

static int
put_off(Census *census, PyObject *object)
{
    if (census->length == census->room) {
        size_t room = census->room == 0 ? 256 : census->room * 2;
        PyObject **larger = realloc(census->todo, room * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        census->todo = larger;
        census->room = room;
    }
    census->todo[census->length++] = object;
    return 0;
}

static int
meet(PyObject *object, void *context)
{
    Census *census = context;
    Class *class;
    if (!census->frozen && vmscope_is_tracked(object)) {
        return 0;
    }
    uint8_t *mark = vmscope_mark(&census->marks, object);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (*mark) {
        return 0;
    }
    *mark = 1;
    if (count(census, object, &class) < 0) {
        return -1;
    }
    return class->form == ATOM ? 0 : put_off(census, object);
}

static int
follow(Census *census)
{
    while (census->length > 0) {
        PyObject *object = census->todo[--census->length];
        Class *class = vmscope_class(&census->classes, Py_TYPE(object));
        if (class == NULL || vmscope_each_reference(class, object, meet, census) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
visit_tracked(PyObject *object, void *context)
{
    Census *census = context;
    Class *class;
    if (count(census, object, &class) < 0 || vmscope_each_reference(class, object, meet, census) < 0) {
        return -1;
    }
    return census->length > 0 ? follow(census) : 0;
}

static int
visit_frame(PyFrameObject *frame, PyThreadState *state, int depth, void *context)
{
    (void)state, (void)depth;
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *globals = PyFrame_GetGlobals(frame);
    int status = meet((PyObject *)code, context) < 0 || meet(globals, context) < 0 ? -1 : 0;
    Py_DECREF(globals);
    Py_DECREF(code);
    return status < 0 || vmscope_each_variable(frame, meet, context) < 0 ? -1 : follow(context);
}

static int
mark_tracked(PyObject *object, void *context)
{
    uint8_t *mark = vmscope_mark(&((Census *)context)->marks, object);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *mark = 1;
    return 0;
}

static int
count_all(Census *census)
{
    census->frozen = vmscope_has_frozen();
    if (census->frozen < 0 || (census->frozen && vmscope_each_tracked(mark_tracked, census) < 0)) {
        return -1;
    }
    if (meet(PyImport_GetModuleDict(), census) < 0 || follow(census) < 0 ||
        vmscope_each_frame(visit_frame, census) < 0) {
        return -1;
    }
    return vmscope_each_tracked(visit_tracked, census);
}

static PyObject *
rows_of(const Classes *classes)
{
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows != NULL && classes->table != NULL && i < (size_t)1 << classes->bits; i++) {
        const Class *each = classes->table[i];
        if (each == NULL) {
            continue;
        }
        PyObject *row = Py_BuildValue("OnK", each->type, each->count, (unsigned long long)each->bytes);
        if (row == NULL || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

static PyObject *
count_objects(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    Census census = {.todo = NULL};
    int collecting = PyGC_Disable(); /* until the rows hold their classes */
    PyObject *rows = count_all(&census) < 0 ? NULL : rows_of(&census.classes);
    if (collecting) {
        PyGC_Enable();
    }
    free(census.todo);
    vmscope_free_marks(&census.marks);
    vmscope_free_classes(&census.classes);
    return rows;
}

static PyMethodDef functions[] = {
    {"count_objects", count_objects, METH_NOARGS,
     "count_objects(): (class, objects, their bytes) for each class that has objects: those that the garbage collector knows, and\n"
     "what these and running functions refer to that it does not. As of one moment: no other thread runs meanwhile."},
    {NULL},
};

int
vmscope_add_census(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

int
vmscope_add_census(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
