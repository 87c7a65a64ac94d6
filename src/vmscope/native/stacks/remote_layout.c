/* A layout from numbers that another process may have chosen. */
#define VMSCOPE_REMOTE
#include "stacks/remote_layout.h"

#ifdef HAS_REMOTE_STACKS

VMSCOPE_THREAD_LOCAL __attribute__((visibility("hidden"))) const RemoteLayout *vmscope_layout;

static int
read_number(PyObject *numbers, const char *name, unsigned long long most, unsigned of, unsigned long long *out)
{
    PyObject *number = PyDict_GetItemString(numbers, name);
    *out = number == NULL ? 0 : PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) {
        return 0;
    }
    if (*out > most || *out % of != 0) {
        PyErr_Format(PyExc_ValueError, "%s cannot be %llu", name, *out);
        return 0;
    }
    return 1;
}

/* Where the last of these words ends. */
static uint32_t
end_of(const uint32_t *words, size_t count)
{
    uint32_t end = 0;
    for (size_t i = 0; i < count; i++) {
        end = words[i] > end ? words[i] : end;
    }
    return end + (uint32_t)sizeof(uintptr_t);
}

int
vmscope_read_layout(RemoteLayout *out, PyObject *numbers)
{
    unsigned long long number;
#define X(name, most, of)                                                                                              \
    if (!read_number(numbers, #name, most, of, &number)) {                                                             \
        return 0;                                                                                                      \
    }                                                                                                                  \
    out->name = (uint32_t)number;
    VMSCOPE_LAYOUT_FIELDS(X)
#undef X
    if (!read_number(numbers, "runtime", UINTPTR_MAX, 8, &number)) {
        return 0;
    }
    out->runtime = (uintptr_t)number;
    if (!read_number(numbers, "code_type", UINTPTR_MAX, 8, &number)) {
        return 0;
    }
    out->code_type = (uintptr_t)number;
    const uint32_t state[] = {out->state_prev,         out->state_next,
                              out->state_interp,       out->state__initialized,
                              out->state_cframe,       out->state_cframe ? 0 : out->current_frame,
                              out->state_thread_id,    out->state_native_thread_id,
                              out->state_id,           out->state_datastack_chunk,
                              out->state_datastack_top},
                   frame[] = {out->frame_code, out->frame_instruction, out->frame_previous, out->frame_owner & ~7u},
                   gil[] = {out->gil_locked, out->gil_holder, out->gil_switches};
    out->state_size = end_of(state, sizeof state / sizeof *state);
    out->frame_size = end_of(frame, sizeof frame / sizeof *frame);
    out->gil_size = end_of(gil, sizeof gil / sizeof *gil);
    const uint32_t in_code[] = {out->code_filename, out->code_qualname,    out->code_linetable,      out->code_consts,
                                out->code_names,    out->code_firstlineno, out->code_firsttraceable, out->code_version};
    for (size_t i = 0; i < sizeof in_code / sizeof *in_code; i++) {
        if (in_code[i] + sizeof(uintptr_t) > out->code_size + (i > 4 ? sizeof(int32_t) : 0)) {
            PyErr_Format(PyExc_ValueError, "code_size cannot be %u", (unsigned)out->code_size);
            return 0;
        }
    }
    if (out->string_length + sizeof(int64_t) > out->string_ascii || out->string_state + 4 > out->string_ascii ||
        out->chunk_data < sizeof(uintptr_t) || out->minor < 11) {
        PyErr_SetString(PyExc_ValueError, "string_ascii, chunk_data or minor cannot be that");
        return 0;
    }
    return 1;
}

#endif
