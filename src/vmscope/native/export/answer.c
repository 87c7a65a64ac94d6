/* The numbers of many VMs on their way into an exporter's answer: added up by columns, and written into a text.
 *
 * The numbers are what other processes have in their regions: any 64 bits. Sums are exact. */
#include "native.h"

#include <math.h>
#include <stdbool.h>

#define WORD sizeof(int64_t)
#define LONGEST 24 /* characters of a number: 20, and a sign, a point and a zero */
#define MOST_DIGITS 18
#define BLOCK 8

static bool
has_words(const Py_buffer *view, const char *what)
{
    if (view->itemsize != (Py_ssize_t)WORD || view->len % (Py_ssize_t)WORD != 0) {
        PyErr_Format(PyExc_TypeError, "%s must be integers of 8 bytes", what);
        return false;
    }
    return true;
}

static inline int64_t
word_at(const Py_buffer *view, Py_ssize_t index)
{
    int64_t word;
    memcpy(&word, (const char *)view->buf + (size_t)index * WORD, sizeof word);
    return word;
}

/* -- sums ------------------------------------------------------------------------------------------- */

static PyObject *
wide_int(__int128 number)
{
    if (number >= INT64_MIN && number <= INT64_MAX) {
        return PyLong_FromLongLong((long long)number);
    }
    PyObject *high = PyLong_FromLongLong((long long)(number >> 64));
    PyObject *low = PyLong_FromUnsignedLongLong((unsigned long long)number);
    PyObject *bits = PyLong_FromLong(64);
    PyObject *shifted = high == NULL || bits == NULL ? NULL : PyNumber_Lshift(high, bits);
    PyObject *result = shifted == NULL || low == NULL ? NULL : PyNumber_Or(shifted, low);
    Py_XDECREF(high);
    Py_XDECREF(low);
    Py_XDECREF(bits);
    Py_XDECREF(shifted);
    return result;
}

/* Adds a number to a sum, its lower and its upper half for itself: neither overflows in 2^32 additions. Without its sign:
 * each is 2^63 more. */
static inline void
add_word(uint64_t *low, uint64_t *high, const char *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    word ^= (uint64_t)1 << 63;
    *low += word & UINT32_MAX;
    *high += word >> 32;
}

static void
add_rows(uint64_t *restrict low, uint64_t *restrict high, const char *restrict numbers, size_t rows, size_t width)
{
    for (size_t row = 0; row < rows; row++) {
        size_t i = 0;
        for (; i + BLOCK <= width; i += BLOCK) {
            for (size_t j = i; j < i + BLOCK; j++) { /* as many as the compiler makes one instruction of */
                add_word(&low[j], &high[j], numbers + j * WORD);
            }
        }
        for (; i < width; i++) {
            add_word(&low[i], &high[i], numbers + i * WORD);
        }
        numbers += width * WORD;
    }
}

static PyObject *
add_columns(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "add_columns() takes 2 arguments, not %zd", count);
    }
    Py_ssize_t width = PyLong_AsSsize_t(args[1]);
    Py_buffer numbers;
    if ((width == -1 && PyErr_Occurred()) || PyObject_GetBuffer(args[0], &numbers, PyBUF_ND | PyBUF_FORMAT) < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    uint64_t *sums = NULL;
    Py_ssize_t words = numbers.len / (Py_ssize_t)WORD, rows = width > 0 ? words / width : 0;
    if (has_words(&numbers, "numbers")) {
        if (width <= 0 || rows * width != words || rows > UINT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%zd numbers are not rows of %zd", words, width);
        } else if ((sums = PyMem_Calloc((size_t)width, 2 * sizeof *sums)) == NULL) {
            PyErr_NoMemory();
        } else {
            add_rows(sums, sums + width, numbers.buf, (size_t)rows, (size_t)width);
            result = PyList_New(width);
        }
    }
    for (Py_ssize_t i = 0; result != NULL && i < width; i++) {
        __int128 sum = ((__int128)sums[width + i] << 32) + sums[i] - ((__int128)rows << 63);
        PyObject *number = wide_int(sum);
        PyList_SET_ITEM(result, i, number);
        if (number == NULL) {
            Py_CLEAR(result);
        }
    }
    PyMem_Free(sums);
    PyBuffer_Release(&numbers);
    return result;
}

static PyObject *
picked(const Py_buffer *numbers, const Py_buffer *places)
{
    Py_ssize_t size = places->len / (Py_ssize_t)WORD, end = numbers->len / (Py_ssize_t)WORD;
    PyObject *result = PyList_New(size);
    for (Py_ssize_t i = 0; result != NULL && i < size; i++) {
        int64_t place = word_at(places, i);
        PyObject *number = NULL;
        if (place < 0 || place >= end) {
            PyErr_Format(PyExc_IndexError, "there is no number at %lld", (long long)place);
        } else {
            number = PyLong_FromLongLong(word_at(numbers, (Py_ssize_t)place));
        }
        PyList_SET_ITEM(result, i, number);
        if (number == NULL) {
            Py_CLEAR(result);
        }
    }
    return result;
}

static PyObject *
pick(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer numbers, places = {.obj = NULL};
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "pick() takes 2 arguments, not %zd", count);
    }
    if (PyObject_GetBuffer(args[0], &numbers, PyBUF_ND | PyBUF_FORMAT) < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    if (PyObject_GetBuffer(args[1], &places, PyBUF_ND | PyBUF_FORMAT) == 0 && has_words(&numbers, "numbers") &&
        has_words(&places, "places")) {
        result = picked(&numbers, &places);
    }
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&places);
    return result;
}

/* -- text ------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject *bytes; /* NULL after an error */
    char *at, *end;
} Text;

/* Room for `length` more bytes. */
static bool
make_room(Text *text, size_t length)
{
    if ((size_t)(text->end - text->at) >= length) {
        return true;
    }
    Py_ssize_t used = text->at - PyBytes_AS_STRING(text->bytes);
    Py_ssize_t size = used + (Py_ssize_t)length + (used >> 2);
    if (_PyBytes_Resize(&text->bytes, size) < 0) {
        return false;
    }
    text->at = PyBytes_AS_STRING(text->bytes) + used;
    text->end = PyBytes_AS_STRING(text->bytes) + size;
    return true;
}

static bool
add_text(Text *text, const char *from, size_t length)
{
    if (!make_room(text, length)) {
        return false;
    }
    memcpy(text->at, from, length);
    text->at += length;
    return true;
}

/* A number, divided by ten `digits` times: then with a point, and behind it no more zeros than one. */
static bool
add_number(Text *text, int64_t number, unsigned digits)
{
    char buffer[LONGEST], *at = buffer + sizeof buffer;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    if (digits > 0) {
        bool shown = false;
        for (unsigned i = digits; i > 0; i--) {
            char digit = (char)('0' + left % 10);
            left /= 10;
            shown = shown || digit != '0' || i == 1;
            if (shown) {
                *--at = digit;
            }
        }
        *--at = '.';
    }
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) {
        *--at = '-';
    }
    return add_text(text, at, (size_t)(buffer + sizeof buffer - at));
}

static bool
add_double(Text *text, double number)
{
    if (!isfinite(number)) {
        const char *word = isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf";
        return add_text(text, word, strlen(word));
    }
    char *written = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    if (written == NULL) {
        PyErr_NoMemory();
        return false;
    }
    bool added = add_text(text, written, strlen(written));
    PyMem_Free(written);
    return added;
}

/* What Python has computed: an int, a float, or bytes. */
static bool
add_object(Text *text, PyObject *object)
{
    if (PyFloat_Check(object)) {
        return add_double(text, PyFloat_AS_DOUBLE(object));
    }
    if (PyBytes_Check(object)) {
        return add_text(text, PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object));
    }
    if (!PyLong_Check(object)) {
        PyErr_Format(PyExc_TypeError, "a value is an int, a float or bytes, not %.100s", Py_TYPE(object)->tp_name);
        return false;
    }
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
        return !(number == -1 && PyErr_Occurred()) && add_number(text, number, 0);
    }
    PyObject *written = PyObject_Str(object);
    Py_ssize_t length = 0;
    const char *utf8 = written == NULL ? NULL : PyUnicode_AsUTF8AndSize(written, &length);
    bool added = utf8 != NULL && add_text(text, utf8, (size_t)length);
    Py_XDECREF(written);
    return added;
}

typedef struct {
    Py_buffer numbers, sources, digits;
    PyObject *others;
} Values;

static bool
add_value(Text *text, const Values *values, Py_ssize_t place, bool computed)
{
    Py_ssize_t count = values->sources.len / (Py_ssize_t)WORD;
    if (place >= count || values->digits.len != count) {
        PyErr_Format(PyExc_ValueError, "there are %zd sources and %zd digits, and more places", count,
                     values->digits.len);
        return false;
    }
    int64_t source = word_at(&values->sources, place);
    if (source >= 0 && !computed) {
        unsigned digits = ((const unsigned char *)values->digits.buf)[place];
        if (source >= values->numbers.len / (Py_ssize_t)WORD || digits > MOST_DIGITS) {
            PyErr_Format(PyExc_ValueError, "there is no number at %lld, or %u digits are too many", (long long)source,
                         digits);
            return false;
        }
        return add_number(text, word_at(&values->numbers, (Py_ssize_t)source), digits);
    }
    PyObject *key = PyLong_FromSsize_t(place);
    PyObject *object = key == NULL ? NULL : PyObject_GetItem(values->others, key);
    bool added = object != NULL && add_object(text, object);
    Py_XDECREF(key);
    Py_XDECREF(object);
    return added;
}

static bool
add_all(Text *text, const char *from, size_t length, const Values *values)
{
    const char *end = from + length;
    Py_ssize_t place = 0;
    while (from < end) {
        const char *mark = memchr(from, '%', (size_t)(end - from));
        size_t plain = (size_t)((mark == NULL ? end : mark) - from);
        if (!add_text(text, from, plain)) {
            return false;
        }
        if (mark == NULL) {
            break;
        }
        char kind = mark + 1 < end ? mark[1] : '\0';
        if (kind == '\0' || strchr("%dab", kind) == NULL) {
            PyErr_SetString(PyExc_ValueError, "a template has %d, %a, %b and %% alone");
            return false;
        }
        if (kind == '%' ? !add_text(text, "%", 1) : !add_value(text, values, place++, kind == 'b')) {
            return false;
        }
        from = mark + 2;
    }
    if (place != values->sources.len / (Py_ssize_t)WORD) {
        PyErr_Format(PyExc_ValueError, "the template has %zd places, and there are more sources", place);
        return false;
    }
    return true;
}

static PyObject *
fill(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer template, end;
    Values values;
    Py_ssize_t room;
    if (!PyArg_ParseTuple(args, "y*y*y*y*Oy*n:fill", &template, &values.numbers, &values.sources, &values.digits,
                          &values.others, &end, &room)) {
        return NULL;
    }
    Text text = {NULL, NULL, NULL};
    if (values.numbers.len % (Py_ssize_t)WORD != 0 || values.sources.len % (Py_ssize_t)WORD != 0) {
        PyErr_SetString(PyExc_TypeError, "numbers and sources must be integers of 8 bytes");
    } else {
        room = room > 0 ? room : template.len + 8 * values.digits.len + end.len;
        text.bytes = PyBytes_FromStringAndSize(NULL, room);
        if (text.bytes != NULL) {
            text.at = PyBytes_AS_STRING(text.bytes);
            text.end = text.at + room;
        }
    }
    if (text.bytes != NULL) {
        if (add_all(&text, template.buf, (size_t)template.len, &values) && add_text(&text, end.buf, (size_t)end.len)) {
            _PyBytes_Resize(&text.bytes, text.at - PyBytes_AS_STRING(text.bytes));
        } else {
            Py_CLEAR(text.bytes);
        }
    }
    PyBuffer_Release(&template);
    PyBuffer_Release(&values.numbers);
    PyBuffer_Release(&values.sources);
    PyBuffer_Release(&values.digits);
    PyBuffer_Release(&end);
    return text.bytes;
}

static PyMethodDef answer_functions[] = {
    {"add_columns", (PyCFunction)(void (*)(void))add_columns, METH_FASTCALL,
     "add_columns(numbers, width, /)\n--\n\nThe sum of each column of int64 numbers that stand in rows of `width`."},
    {"pick", (PyCFunction)(void (*)(void))pick, METH_FASTCALL,
     "pick(numbers, places, /)\n--\n\nThe int64 numbers at these places, which are int64 too, as a list."},
    {"fill", fill, METH_VARARGS,
     "fill(template, numbers, sources, digits, others, end, room, /)\n--\n\nThe template with a value for each `%d`, "
     "`%a` "
     "and `%b`, `%` for `%%`, and `end` behind it. For each of these\nplaces `sources` (int64) says which of the int64 "
     "`numbers` stands there, divided by ten as often as\n`digits` (bytes) says; -1, and each `%b`: what `others` "
     "has for the place, an int, a float or bytes. `room`: how many bytes that may be, 0 where nobody knows."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_answer(PyObject *module)
{
    return PyModule_AddFunctions(module, answer_functions);
}
