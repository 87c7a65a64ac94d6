/* Where the CPython of another process has what the reader of stacks needs: as region/layout.h, but as values, which that
 * process may have chosen: so all are checked before they are used (remote_layout.c).
 *
 * The files of the reader are compiled once more with VMSCOPE_REMOTE, under other names. */
#ifndef VMSCOPE_REMOTE_LAYOUT_H
#define VMSCOPE_REMOTE_LAYOUT_H

#include "native.h"

#ifdef __linux__
#define HAS_STACKS 1
#define HAS_REMOTE_STACKS 1

#define vmscope_list_states vmscope_remote_list_states
#define vmscope_read_state vmscope_remote_read_state
#define vmscope_is_listed vmscope_remote_is_listed
#define vmscope_find_innermost vmscope_remote_find_innermost
#define vmscope_read_frame vmscope_remote_read_frame
#define vmscope_read_stack vmscope_remote_read_stack
#define vmscope_is_there vmscope_remote_is_there
#define vmscope_reserve_names vmscope_remote_reserve_names
#define vmscope_name_frame vmscope_remote_name_frame
#define vmscope_free_names vmscope_remote_free_names
#define vmscope_name_stack vmscope_remote_name_stack

/* Each with the largest that it may be, and what it must be a multiple of. */
#define VMSCOPE_LAYOUT_FIELDS(X)                                                                                       \
    X(runtime_interpreters, 65536, 8)                                                                                  \
    X(runtime_gil, 65536, 8)                                                                                           \
    X(interpreter_next, 1 << 20, 8)                                                                                    \
    X(interpreter_threads, 1 << 20, 8)                                                                                 \
    X(interpreter_gil, 1 << 20, 8)                                                                                     \
    X(gil_locked, 256, 8)                                                                                              \
    X(gil_holder, 256, 8)                                                                                              \
    X(gil_switches, 256, 8)                                                                                            \
    X(state_prev, 2048, 8)                                                                                             \
    X(state_next, 2048, 8)                                                                                             \
    X(state_interp, 2048, 8)                                                                                           \
    X(state__initialized, 2048, 4)                                                                                     \
    X(state_cframe, 2048, 8)                                                                                           \
    X(current_frame, 2048, 8)                                                                                          \
    X(state_thread_id, 2048, 8)                                                                                        \
    X(state_native_thread_id, 2048, 8)                                                                                 \
    X(state_id, 2048, 8)                                                                                               \
    X(state_datastack_chunk, 2048, 8)                                                                                  \
    X(state_datastack_top, 2048, 8)                                                                                    \
    X(chunk_previous, 64, 8)                                                                                           \
    X(chunk_size, 64, 8)                                                                                               \
    X(chunk_top, 64, 8)                                                                                                \
    X(chunk_data, 64, 8)                                                                                               \
    X(frame_code, 128, 8)                                                                                              \
    X(frame_instruction, 128, 8)                                                                                       \
    X(frame_previous, 128, 8)                                                                                          \
    X(frame_owner, 128, 1)                                                                                             \
    X(code_filename, 496, 8)                                                                                           \
    X(code_qualname, 496, 8)                                                                                           \
    X(code_linetable, 496, 8)                                                                                          \
    X(code_consts, 496, 8)                                                                                             \
    X(code_names, 496, 8)                                                                                              \
    X(code_firstlineno, 496, 4)                                                                                        \
    X(code_firsttraceable, 496, 4)                                                                                     \
    X(code_version, 496, 4)                                                                                            \
    X(code_size, 512, 8)                                                                                               \
    X(string_length, 56, 8)                                                                                            \
    X(string_hash, 56, 8)                                                                                              \
    X(string_state, 60, 4)                                                                                             \
    X(string_ascii, 64, 8)                                                                                             \
    X(string_compact, 128, 8)                                                                                          \
    X(string_kind_bit, 24, 1)                                                                                          \
    X(string_compact_bit, 31, 1)                                                                                       \
    X(string_ascii_bit, 31, 1)                                                                                         \
    X(entry_owner, 256, 1)                                                                                             \
    X(minor, 15, 1)

typedef struct {
#define X(name, most, of) uint32_t name;
    VMSCOPE_LAYOUT_FIELDS(X)
#undef X
    uint32_t state_size, frame_size, gil_size; /* bytes of each that are looked at */
    uintptr_t runtime, code_type;
} RemoteLayout;

/* From a dict of numbers; 0 with ValueError where one is missing or cannot be. */
int vmscope_read_layout(RemoteLayout *out, PyObject *numbers);

/* What this thread reads. */
extern VMSCOPE_THREAD_LOCAL __attribute__((visibility("hidden"))) const RemoteLayout *vmscope_layout;

enum { FRAME_OWNED_BY_THREAD = 0, FRAME_OWNED_BY_GENERATOR = 1 };

#define MOST_CODE_HEAD 512
#define MOST_STRING_HEAD 64

static inline uintptr_t
vmscope_word_in(const unsigned char *bytes, uint32_t at)
{
    uintptr_t word;
    __builtin_memcpy(&word, bytes + at, sizeof word);
    return word;
}

static inline int32_t
vmscope_number_in(const unsigned char *bytes, uint32_t at)
{
    int32_t number;
    __builtin_memcpy(&number, bytes + at, sizeof number);
    return number;
}

#define THREADS_HEAD vmscope_layout->interpreter_threads
#define AT_STATE(field) vmscope_layout->state_##field
#define AT_CHUNK(field) vmscope_layout->chunk_##field
#define AT_FRAME(field) vmscope_layout->frame_##field

#define STATE_INITIALIZED vmscope_layout->state__initialized
#define STATE_CFRAME vmscope_layout->state_cframe
#define CURRENT_FRAME vmscope_layout->current_frame

#define FRAME_CODE vmscope_layout->frame_code
#define FRAME_INSTRUCTION vmscope_layout->frame_instruction
#define TAG_BITS ((uintptr_t)(vmscope_layout->minor >= 14 ? 3 : 0))
#define IS_ENTRY(owner) ((owner) >= vmscope_layout->entry_owner)
#define MOST_OWNER 4
#define MAY_BE_LAST(owner) (vmscope_layout->minor >= 12 ? IS_ENTRY(owner) : (owner) != FRAME_OWNED_BY_GENERATOR)
#define CALLERS_MAY_BE_INCOMPLETE (vmscope_layout->minor >= 12)

typedef struct {
    unsigned char bytes[MOST_CODE_HEAD];
} CodeHead;

#define CODE_SIZE vmscope_layout->code_size
#define CODE_TYPE vmscope_layout->code_type
#define CODE_WORD(code, field) vmscope_word_in((code)->bytes, vmscope_layout->code_##field)
#define CODE_FIRST_LINE(code) vmscope_number_in((code)->bytes, vmscope_layout->code_firstlineno)
#define CODE_FIRST_TRACEABLE(code) vmscope_number_in((code)->bytes, vmscope_layout->code_firsttraceable)
#define CODE_VERSION(code)                                                                                             \
    (vmscope_layout->minor >= 12 ? (uint32_t)vmscope_number_in((code)->bytes, vmscope_layout->code_version) : 0)
#define CODE_NEEDS_HASHES (vmscope_layout->minor < 12)
#define REFERENCES_HAVE_FLAGS (vmscope_layout->minor >= 14)

typedef struct {
    unsigned char bytes[MOST_STRING_HEAD];
} StringHead;

#define STRING_HASH vmscope_layout->string_hash
#define STRING_DATA(ascii) ((ascii) ? vmscope_layout->string_ascii : vmscope_layout->string_compact)
#define STRING_HEAD_SIZE vmscope_layout->string_ascii
#define STRING_STATE(head) ((uint32_t)vmscope_number_in((head)->bytes, vmscope_layout->string_state))
#define STRING_LENGTH(head) ((int64_t)vmscope_word_in((head)->bytes, vmscope_layout->string_length))
#define STRING_KIND(head) (STRING_STATE(head) >> vmscope_layout->string_kind_bit & 7)
#define STRING_IS_COMPACT(head) (STRING_STATE(head) >> vmscope_layout->string_compact_bit & 1)
#define STRING_IS_ASCII(head) (STRING_STATE(head) >> vmscope_layout->string_ascii_bit & 1)

#endif
#endif
