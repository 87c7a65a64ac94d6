/* How many objects there are of each class, and of how many bytes. */
#include "heap/objects.h"

#ifdef HAS_OBJECTS

#include <stdlib.h>

typedef struct {
    Classes classes;
    Marks marks;     /* 1: counted, or to be counted with those that the collector knows */
    int frozen;      /* the collector knows objects that it does not list */
    PyObject **todo; /* such objects whose references are still to be followed; borrowed */
    size_t length, room;
} Histogram;

static int
count(Histogram *histogram, PyObject *object, Class **class)
{
    *class = vmscope_class(&histogram->classes, Py_TYPE(object));
    if (*class == NULL) {
        return -1;
    }
    (*class)->count++;
    (*class)->bytes += (uint64_t)vmscope_size_of(*class, object);
    return 0;
}

static int
put_off(Histogram *histogram, PyObject *object)
{
    if (histogram->length == histogram->room) {
        size_t room = histogram->room == 0 ? 256 : histogram->room * 2;
        PyObject **larger = realloc(histogram->todo, room * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        histogram->todo = larger;
        histogram->room = room;
    }
    histogram->todo[histogram->length++] = object;
    return 0;
}

static int
meet(PyObject *object, void *context)
{
    Histogram *histogram = context;
    Class *class;
    if (!histogram->frozen && vmscope_is_tracked(object)) {
        return 0;
    }
    uint8_t *mark = vmscope_mark(&histogram->marks, object);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (*mark) {
        return 0;
    }
    *mark = 1;
    if (count(histogram, object, &class) < 0) {
        return -1;
    }
    return class->form == ATOM ? 0 : put_off(histogram, object);
}

static int
follow(Histogram *histogram)
{
    while (histogram->length > 0) {
        PyObject *object = histogram->todo[--histogram->length];
        Class *class = vmscope_class(&histogram->classes, Py_TYPE(object));
        if (class == NULL || vmscope_each_reference(class, object, meet, histogram) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
visit_tracked(PyObject *object, void *context)
{
    Histogram *histogram = context;
    Class *class;
    if (count(histogram, object, &class) < 0 || vmscope_each_reference(class, object, meet, histogram) < 0) {
        return -1;
    }
    return histogram->length > 0 ? follow(histogram) : 0;
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
    uint8_t *mark = vmscope_mark(&((Histogram *)context)->marks, object);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *mark = 1;
    return 0;
}

static int
count_all(Histogram *histogram)
{
    histogram->frozen = vmscope_has_frozen();
    if (histogram->frozen < 0 || (histogram->frozen && vmscope_each_tracked(mark_tracked, histogram) < 0)) {
        return -1;
    }
    if (meet(PyImport_GetModuleDict(), histogram) < 0 || follow(histogram) < 0 ||
        vmscope_each_frame(visit_frame, histogram) < 0) {
        return -1;
    }
    return vmscope_each_tracked(visit_tracked, histogram);
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
    Histogram histogram = {.todo = NULL};
    int collecting = PyGC_Disable(); /* until the rows hold their classes */
    PyObject *rows = count_all(&histogram) < 0 ? NULL : rows_of(&histogram.classes);
    if (collecting) {
        PyGC_Enable();
    }
    free(histogram.todo);
    vmscope_free_marks(&histogram.marks);
    vmscope_free_classes(&histogram.classes);
    return rows;
}

static PyMethodDef functions[] = {
    {"count_objects", count_objects, METH_NOARGS,
     "count_objects(): (class, objects, their bytes) for each class that has objects: those that the garbage collector "
     "knows, and\n"
     "what these and running functions refer to that it does not. As of one moment: no other thread runs meanwhile."},
    {NULL},
};

int
vmscope_add_class_histogram(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

int
vmscope_add_class_histogram(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
