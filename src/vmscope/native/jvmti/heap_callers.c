/* How an agent's callbacks are called for what a walk of the heap meets.
 *
 * Those in C get no Python, as in a JVM, where another thread walks; what they leave behind the pointer to a tag is the
 * object's tag from then on. Those in Python get objects for tags and places, made for the call. */
#include "attributes.h"
#include "jvmti/heap_walk.h"

#ifdef HAS_OBJECTS

enum { ITERATION_ABORT = 0, ITERATION_CONTINUE = 1 };          /* jvmtiIterationControl */
enum { FIRST_ROOT = KIND_GLOBAL - 1 };                         /* jvmtiHeapRootKind begins there */
enum { THREAD_TAG, THREAD_ID, DEPTH, METHOD, LOCATION, SLOT }; /* a StackLocal's items */

#define MOST_ARGUMENTS 9

/* -- tags ------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) int
look_up_tag(const HeapWalk *walk, PyObject *thing, int64_t *tag)
{
    PyObject *key = PyLong_FromVoidPtr(thing);
    PyObject *found = key == NULL ? NULL : PyDict_GetItemWithError(walk->by_id, key), *value = NULL;
    Py_XDECREF(key);
    if (found == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (!PyWeakref_Check(found) || ((PyWeakReference *)found)->wr_object == thing) { /* else of one that has gone */
        value = vmscope_attribute(found, "tag");
        *tag = value == NULL ? -1 : PyLong_AsLongLong(value);
        Py_XDECREF(value);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static inline int
tag_of(const HeapWalk *walk, PyObject *thing, int64_t *tag)
{
    *tag = 0;
    return PyDict_GET_SIZE(walk->by_id) == 0 ? 0 : look_up_tag(walk, thing, tag);
}

static int
set_tag(const HeapWalk *walk, PyObject *thing, int64_t tag)
{
    PyObject *done = vmscope_call_method(walk->tags, "set", "(OL)", thing, (long long)tag);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* -- what a callback gets of an object ----------------------------------------------------------- */

typedef struct {
    PyObject *thing;
    const OfClass *of;
    int64_t tag, class_tag, size;
} Subject;

static int
describe(HeapWalk *walk, PyObject *thing, Subject *subject)
{
    Class *class;
    subject->thing = thing;
    subject->of = vmscope_of_class(walk, Py_TYPE(thing), &class);
    if (subject->of == NULL || tag_of(walk, thing, &subject->tag) < 0 ||
        tag_of(walk, (PyObject *)Py_TYPE(thing), &subject->class_tag) < 0) {
        return -1;
    }
    subject->size = vmscope_size_of(class, thing);
    return 0;
}

static int32_t
length_of(const Subject *subject)
{
    const PyTypeObject *array = subject->of->array; /* one of C, whose length C knows */
    if (array == NULL) {
        return -1;
    }
    lenfunc length = array->tp_as_sequence == NULL ? NULL : array->tp_as_sequence->sq_length;
    if (length == NULL && array->tp_as_mapping != NULL) {
        length = array->tp_as_mapping->mp_length;
    }
    return length == NULL ? -1 : (int32_t)length(subject->thing);
}

static int
is_wanted(const HeapWalk *walk, const Subject *subject)
{
    if (walk->older) {
        return walk->filter == ONLY_TAGGED ? subject->tag != 0 : walk->filter == ONLY_UNTAGGED ? subject->tag == 0 : 1;
    }
    return !(walk->filter &
             ((subject->tag ? TAGGED : UNTAGGED) | (subject->class_tag ? CLASS_TAGGED : CLASS_UNTAGGED)));
}

static inline int
is_of_class(const HeapWalk *walk, PyTypeObject *type)
{
    return walk->klass == NULL || type == walk->klass || (walk->older && PyType_IsSubtype(type, walk->klass));
}

/* -- calls ------------------------------------------------------------------------------------------ */

static int
older_answer(int64_t answer)
{
    return answer == ITERATION_ABORT ? VISIT_ABORT : answer == ITERATION_CONTINUE ? VISIT_OBJECTS : 0;
}

/* Calls a callback that is written in Python. It takes the references to its arguments, and some may be NULL, with an
 * exception. */
static int
call_python(const HeapWalk *walk, int which, int count, PyObject **arguments)
{
    PyObject *answer = NULL;
    long long number = -1;
    int whole = 1, older = which >= OBJECT;
    for (int i = 0; i < count; i++) {
        whole = whole && arguments[i] != NULL;
    }
    if (whole) {
        answer = PyObject_Vectorcall(walk->callbacks[which], arguments, (size_t)count, NULL);
    }
    for (int i = 0; i < count; i++) {
        Py_XDECREF(arguments[i]);
    }
    if (answer == Py_None) {
        Py_DECREF(answer);
        return VISIT_OBJECTS;
    }
    if (answer != NULL && (older || !PyLong_Check(answer))) {
        PyObject *checked = PyObject_CallOneArg(older ? walk->old_control : walk->control, answer);
        Py_SETREF(answer, checked);
    }
    if (answer != NULL) {
        int over;
        number = PyLong_AsLongLongAndOverflow(answer, &over);
        Py_DECREF(answer);
    }
    return PyErr_Occurred() ? -1 : (int)(number & (VISIT_OBJECTS | VISIT_ABORT));
}

static PyObject *
tag_object(const HeapWalk *walk, PyObject *thing)
{
    PyObject *arguments[] = {walk->tags, thing};
    return PyObject_Vectorcall(walk->tag_class, arguments, 2, NULL);
}

static PyObject *
member(PyObject *members, int number)
{
    return Py_NewRef(PyTuple_GET_ITEM(members, number));
}

static PyObject *
primitive_type(const HeapWalk *walk, int letter)
{
    PyObject *key = PyLong_FromLong(letter);
    PyObject *found = key == NULL ? NULL : PyDict_GetItemWithError(walk->primitives, key);
    Py_XDECREF(key);
    return Py_XNewRef(found);
}

static PyObject *
info_object(const HeapWalk *walk, const Reference *reference)
{
    if (reference->local != NULL || reference->referrer == NULL) {
        return Py_NewRef(reference->local == NULL ? Py_None : reference->local);
    }
    PyObject *index = PyLong_FromLong(reference->index), *name = reference->name, *empty = NULL;
    if (name == NULL) {
        name = reference->kind == KIND_FIELD ? Py_None : (empty = PyUnicode_FromString(""));
    }
    PyObject *arguments[] = {index, name, reference->referrer, reference->referee};
    PyObject *made = index == NULL || name == NULL ? NULL : PyObject_Vectorcall(walk->info_class, arguments, 4, NULL);
    Py_XDECREF(index);
    Py_XDECREF(empty);
    return made;
}

static void *
data_of(const HeapWalk *walk)
{
    return walk->data == Py_None ? NULL : PyLong_AsVoidPtr(walk->data);
}

/* In C: an expression with a function of this type, in which no Python may be touched. */
#define CALL_C(which, types, ...)                                                                                      \
    do {                                                                                                               \
        Native *native = jni_native();                                                                                 \
        if (native == NULL) {                                                                                          \
            PyErr_NoMemory();                                                                                          \
            return -1;                                                                                                 \
        }                                                                                                              \
        int before = native->without_python;                                                                           \
        native->without_python = 1;                                                                                    \
        answer = ((int32_t(*) types)walk->functions[which])(__VA_ARGS__);                                              \
        native->without_python = before;                                                                               \
    } while (0)
#define P void *
#define I int32_t
#define J int64_t

/* -- objects ---------------------------------------------------------------------------------------- */

int
vmscope_report_object(HeapWalk *walk, PyObject *thing)
{
    int which = walk->older ? OBJECT : ITERATION, answer;
    Subject subject;
    if (!is_of_class(walk, Py_TYPE(thing))) {
        return VISIT_OBJECTS;
    }
    if (describe(walk, thing, &subject) < 0) {
        return -1;
    }
    if (!is_wanted(walk, &subject)) {
        return VISIT_OBJECTS;
    }
    if (walk->callbacks[which] == NULL) {
        return VISIT_OBJECTS;
    }
    if (walk->functions[which] == NULL) {
        PyObject *arguments[MOST_ARGUMENTS];
        int count = 0;
        arguments[count++] = PyLong_FromLongLong(subject.class_tag);
        arguments[count++] = PyLong_FromLongLong(subject.size);
        arguments[count++] = tag_object(walk, thing);
        if (!walk->older) {
            arguments[count++] = PyLong_FromLong(length_of(&subject));
        }
        arguments[count++] = Py_NewRef(walk->data);
        return call_python(walk, which, count, arguments);
    }
    int64_t tag = subject.tag;
    if (walk->older) {
        CALL_C(OBJECT, (J, J, J *, P), subject.class_tag, subject.size, &tag, data_of(walk));
        answer = older_answer(answer);
    } else {
        int32_t length = length_of(&subject);
        CALL_C(ITERATION, (J, J, J *, I, P), subject.class_tag, subject.size, &tag, length, data_of(walk));
    }
    return tag != subject.tag && set_tag(walk, thing, tag) < 0 ? -1 : answer & (VISIT_OBJECTS | VISIT_ABORT);
}

/* -- references ------------------------------------------------------------------------------------- */

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

static int64_t
item(PyObject *local, int place)
{
    return PyLong_AsLongLong(PyTuple_GET_ITEM(local, place));
}

/* -1 with an exception. */
static int
fill_info(Info *info, const Reference *reference)
{
    *info = (Info){.reserved = {0}};
    if (reference->local == NULL) {
        info->index = reference->index;
        return 0;
    }
    PyObject *local = reference->local;
    info->local.thread_tag = item(local, THREAD_TAG);
    info->local.thread_id = item(local, THREAD_ID);
    info->local.depth = (int32_t)item(local, DEPTH);
    info->local.method = jni_method_id(PyTuple_GET_ITEM(local, METHOD));
    info->local.location = item(local, LOCATION);
    info->local.slot = (int32_t)item(local, SLOT);
    return PyErr_Occurred() ? -1 : 0;
}

static int
has_info(int kind)
{
    return kind == KIND_FIELD || kind == KIND_STATIC || kind == KIND_ELEMENT || kind == KIND_CONSTANT ||
           kind == KIND_LOCAL;
}

static int
report_to_python(const HeapWalk *walk, int which, const Reference *reference, const Subject *subject,
                 const Subject *referrer, const Info *info)
{
    PyObject *arguments[MOST_ARGUMENTS], *local = reference->local;
    int count = 0, kind = reference->kind;
    arguments[count++] =
        which == ROOT || which == STACK ? member(walk->root_kinds, kind - FIRST_ROOT) : member(walk->kinds, kind);
    if (which == REFERENCE) {
        arguments[count++] = info_object(walk, reference);
        arguments[count++] = PyLong_FromLongLong(subject->class_tag);
        arguments[count++] = PyLong_FromLongLong(referrer->class_tag);
    } else {
        arguments[count++] = PyLong_FromLongLong(subject->class_tag);
    }
    arguments[count++] = PyLong_FromLongLong(subject->size);
    arguments[count++] = tag_object(walk, subject->thing);
    if (which == REFERENCE) {
        arguments[count++] = referrer->thing == NULL ? Py_NewRef(Py_None) : tag_object(walk, referrer->thing);
        arguments[count++] = PyLong_FromLong(length_of(subject));
    } else if (which == STACK) {
        arguments[count++] = Py_NewRef(PyTuple_GET_ITEM(local, THREAD_TAG));
        arguments[count++] = Py_NewRef(PyTuple_GET_ITEM(local, DEPTH));
        arguments[count++] = Py_NewRef(PyTuple_GET_ITEM(local, METHOD));
        arguments[count++] = Py_NewRef(PyTuple_GET_ITEM(local, SLOT));
    } else if (which == OBJECT_REFERENCE) {
        arguments[count++] = PyLong_FromLongLong(referrer->tag);
        arguments[count++] = PyLong_FromLong(info->index);
    }
    arguments[count++] = Py_NewRef(walk->data);
    return call_python(walk, which, count, arguments);
}

static int
report_to_c(const HeapWalk *walk, int which, const Reference *reference, const Subject *subject,
            const Subject *referrer, Info *info)
{
    int64_t tag = subject->tag, other = referrer->tag;
    int64_t *whose = referrer->thing == NULL ? NULL : referrer->thing == subject->thing ? &tag : &other;
    int kind = reference->kind, answer;
    P data = data_of(walk);
    switch (which) {
    case REFERENCE:
        CALL_C(REFERENCE, (I, P, J, J, J, J *, J *, I, P), kind, has_info(kind) ? info : NULL, subject->class_tag,
               referrer->class_tag, subject->size, &tag, whose, length_of(subject), data);
        break;
    case ROOT:
        CALL_C(ROOT, (I, J, J, J *, P), kind - FIRST_ROOT, subject->class_tag, subject->size, &tag, data);
        break;
    case STACK:
        CALL_C(STACK, (I, J, J, J *, J, I, P, I, P), kind - FIRST_ROOT, subject->class_tag, subject->size, &tag,
               info->local.thread_tag, info->local.depth, info->local.method, info->local.slot, data);
        break;
    default:
        CALL_C(OBJECT_REFERENCE, (I, J, J, J *, J, I, P), kind, subject->class_tag, subject->size, &tag, referrer->tag,
               info->index, data);
    }
    if ((tag != subject->tag && set_tag(walk, subject->thing, tag) < 0) ||
        (other != referrer->tag && set_tag(walk, referrer->thing, other) < 0)) {
        return -1;
    }
    return which == REFERENCE ? answer & (VISIT_OBJECTS | VISIT_ABORT) : older_answer(answer);
}

int
vmscope_report_reference(HeapWalk *walk, const Reference *given)
{
    Reference reference = *given;
    Subject subject, referrer = {.thing = NULL};
    Info info;
    int which = REFERENCE;
    if (walk->older) {
        which = reference.local != NULL ? STACK : reference.referrer == NULL ? ROOT : OBJECT_REFERENCE;
        reference.kind = reference.kind == KIND_SUPERCLASS ? KIND_CLASS : reference.kind; /* which came later */
    }
    if (walk->callbacks[which] == NULL || (!walk->older && !is_of_class(walk, Py_TYPE(reference.referee)))) {
        return VISIT_OBJECTS;
    }
    if (describe(walk, reference.referee, &subject) < 0) {
        return -1;
    }
    if (!walk->older && !is_wanted(walk, &subject)) {
        return VISIT_OBJECTS;
    }
    if (reference.referrer != NULL) {
        referrer.thing = reference.referrer;
        if (tag_of(walk, referrer.thing, &referrer.tag) < 0 ||
            tag_of(walk, (PyObject *)Py_TYPE(referrer.thing), &referrer.class_tag) < 0) {
            return -1;
        }
    }
    if (walk->functions[which] == NULL) {
        info.index = reference.index;
        return report_to_python(walk, which, &reference, &subject, &referrer, &info);
    }
    return fill_info(&info, &reference) < 0 ? -1 : report_to_c(walk, which, &reference, &subject, &referrer, &info);
}

/* -- values ----------------------------------------------------------------------------------------- */

/* The letter of the C type that has room for a value; 0 for none. */
static char
primitive(PyObject *thing, Value *value)
{
    int over = 0;
    value->j = 0;
    if (PyBool_Check(thing)) {
        value->z = thing == Py_True;
        return 'Z';
    }
    if (PyLong_CheckExact(thing)) {
        value->j = PyLong_AsLongLongAndOverflow(thing, &over);
        return over ? 0 : 'J';
    }
    if (PyFloat_CheckExact(thing)) {
        value->d = PyFloat_AS_DOUBLE(thing);
        return 'D';
    }
    return 0;
}

static int
report_field(const HeapWalk *walk, const Subject *subject, const Reference *field)
{
    Value value;
    char letter = primitive(field->referee, &value);
    int answer;
    if (letter == 0 || (field->kind != KIND_FIELD && field->kind != KIND_STATIC)) {
        return VISIT_OBJECTS;
    }
    if (walk->functions[PRIMITIVE_FIELD] == NULL) {
        PyObject *arguments[] = {
            member(walk->kinds, field->kind),
            info_object(walk, field),
            PyLong_FromLongLong(subject->class_tag),
            tag_object(walk, subject->thing),
            Py_NewRef(field->referee),
            primitive_type(walk, letter),
            Py_NewRef(walk->data),
        };
        return call_python(walk, PRIMITIVE_FIELD, 7, arguments);
    }
    Info info = {.index = field->index};
    int64_t tag = subject->tag;
    CALL_C(PRIMITIVE_FIELD, (I, P, J, J *, Value, I, P), field->kind, &info, subject->class_tag, &tag, value, letter,
           data_of(walk));
    return tag != subject->tag && set_tag(walk, subject->thing, tag) < 0 ? -1 : answer & (VISIT_OBJECTS | VISIT_ABORT);
}

/* The letter of an array's elements, by the code that its memory has for them. */
static char
letter_of(char code)
{
    static const struct {
        char codes[5], letter;
    } rows[] = {{"bB", 'B'}, {"uw", 'C'}, {"hH", 'S'}, {"iI", 'I'}, {"lLqQ", 'J'}, {"f", 'F'}, {"d", 'D'}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (code != '\0' && memchr(rows[i].codes, code, sizeof rows[i].codes) != NULL) {
            return rows[i].letter;
        }
    }
    return 0;
}

static int
report_elements(const HeapWalk *walk, const Subject *subject, char letter, Py_ssize_t count, const void *memory,
                Py_ssize_t bytes)
{
    int answer;
    if (walk->functions[ARRAY] == NULL) {
        PyObject *arguments[] = {
            PyLong_FromLongLong(subject->class_tag),
            PyLong_FromLongLong(subject->size),
            tag_object(walk, subject->thing),
            PyLong_FromSsize_t(count),
            primitive_type(walk, letter),
            PyBytes_FromStringAndSize(memory, bytes),
            Py_NewRef(walk->data),
        };
        return call_python(walk, ARRAY, 7, arguments);
    }
    int64_t tag = subject->tag;
    CALL_C(ARRAY, (J, J, J *, I, I, const void *, P), subject->class_tag, subject->size, &tag, (int32_t)count, letter,
           memory, data_of(walk));
    return tag != subject->tag && set_tag(walk, subject->thing, tag) < 0 ? -1 : answer & (VISIT_OBJECTS | VISIT_ABORT);
}

static int
report_array(const HeapWalk *walk, const Subject *subject)
{
    PyObject *thing = subject->thing;
    PyBufferProcs *lends = subject->of->array == NULL ? NULL : subject->of->array->tp_as_buffer;
    Py_buffer view;
    if (PyBytes_Check(thing)) {
        Py_ssize_t count = PyBytes_GET_SIZE(thing);
        return report_elements(walk, subject, 'B', count, PyBytes_AS_STRING(thing), count);
    }
    if (lends == NULL || lends->bf_getbuffer == NULL || PyList_Check(thing) || PyTuple_Check(thing)) {
        return VISIT_OBJECTS;
    }
    if (lends->bf_getbuffer(thing, &view, PyBUF_FORMAT | PyBUF_ND) < 0) {
        PyErr_Clear();
        return VISIT_OBJECTS;
    }
    const char *format = view.format == NULL ? "B" : view.format;
    char letter = view.ndim == 1 && format[0] != '\0' && format[1] == '\0' ? letter_of(format[0]) : 0;
    int answer = VISIT_OBJECTS;
    if (letter != 0 && view.itemsize > 0) {
        answer = report_elements(walk, subject, letter, view.len / view.itemsize, view.buf, view.len);
    }
    if (lends->bf_releasebuffer != NULL) {
        lends->bf_releasebuffer(thing, &view);
    }
    Py_XDECREF(view.obj);
    return answer;
}

static int
report_string(const HeapWalk *walk, const Subject *subject)
{
    int answer;
    if (walk->functions[STRING] == NULL) {
        PyObject *text = subject->thing; /* of the very class str, as it has been promised */
        PyObject *arguments[] = {
            PyLong_FromLongLong(subject->class_tag),
            PyLong_FromLongLong(subject->size),
            tag_object(walk, subject->thing),
            PyUnicode_FromObject(text),
            Py_NewRef(walk->data),
        };
        return call_python(walk, STRING, 5, arguments);
    }
    PyObject *text = PyUnicode_AsEncodedString(subject->thing, "utf-16-le", "surrogatepass");
    if (text == NULL) {
        return -1;
    }
    int64_t tag = subject->tag;
    Native *native = jni_native();
    if (native == NULL) {
        Py_DECREF(text);
        PyErr_NoMemory();
        return -1;
    }
    CALL_C(STRING, (J, J, J *, const void *, I, P), subject->class_tag, subject->size, &tag, PyBytes_AS_STRING(text),
           (int32_t)(PyBytes_GET_SIZE(text) / 2), data_of(walk));
    Py_DECREF(text);
    return tag != subject->tag && set_tag(walk, subject->thing, tag) < 0 ? -1 : answer & (VISIT_OBJECTS | VISIT_ABORT);
}

int
vmscope_report_values(HeapWalk *walk, PyObject *thing, const References *references)
{
    Subject subject;
    int answer = VISIT_OBJECTS;
    if (!is_of_class(walk, Py_TYPE(thing))) {
        return answer;
    }
    if (describe(walk, thing, &subject) < 0) {
        return -1;
    }
    if (!is_wanted(walk, &subject)) {
        return answer;
    }
    for (size_t i = 0; vmscope_reports_fields(walk) && i < references->count; i++) {
        if (tag_of(walk, thing, &subject.tag) < 0) { /* a callback may have set it */
            return -1;
        }
        answer = report_field(walk, &subject, &references->items[i]);
        if (answer < 0 || answer & VISIT_ABORT) {
            return answer;
        }
    }
    if (walk->callbacks[ARRAY] == NULL && walk->callbacks[STRING] == NULL) {
        return answer;
    }
    if (tag_of(walk, thing, &subject.tag) < 0) {
        return -1;
    }
    if (walk->callbacks[ARRAY] != NULL && subject.of->array != NULL) {
        return report_array(walk, &subject);
    }
    return walk->callbacks[STRING] != NULL && PyUnicode_Check(thing) ? report_string(walk, &subject) : answer;
}

#endif
