/* Where CPython has what the reader of stacks needs: offsets within its internal structures, which differ by version. */
#ifndef VMSCOPE_LAYOUT_H
#define VMSCOPE_LAYOUT_H

#include "native.h"

#ifndef Py_GIL_DISABLED

#define HAS_STACKS 1

#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED
#include "internal/pycore_frame.h"
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe_structs.h"
#endif
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#undef Py_BUILD_CORE

#define THREADS_HEAD (offsetof(PyInterpreterState, threads) + offsetof(struct pythreads, head))
#define AT_STATE(field) offsetof(PyThreadState, field)
#define AT_CHUNK(field) offsetof(_PyStackChunk, field)
#define AT_FRAME(field) offsetof(_PyInterpreterFrame, field)
#define AT_CODE(field) offsetof(PyCodeObject, field)

/* -- thread states: 3.11 lists one before it fills it in; up to 3.12 the frame stands in a structure of its own */

#if PY_VERSION_HEX >= 0x030C0000
#define STATE_INITIALIZED 0
#else
#define STATE_INITIALIZED AT_STATE(_initialized)
#endif
#if PY_VERSION_HEX >= 0x030D0000
#define STATE_CFRAME 0
#define CURRENT_FRAME AT_STATE(current_frame)
#else
#define STATE_CFRAME AT_STATE(cframe)
#define CURRENT_FRAME offsetof(_PyCFrame, current_frame)
#endif

/* -- frames */

#if PY_VERSION_HEX >= 0x030D0000
#define FRAME_CODE AT_FRAME(f_executable)
#define FRAME_INSTRUCTION AT_FRAME(instr_ptr)
#else
#define FRAME_CODE AT_FRAME(f_code)
#define FRAME_INSTRUCTION AT_FRAME(prev_instr)
#endif

/* From 3.14 on a word of a frame that refers to an object has a tag in its lowest bits. */
#if PY_VERSION_HEX >= 0x030E0000
#define TAG_BITS ((uintptr_t)3)
#define IS_OBJECT(word) (((word) & TAG_BITS) != TAG_BITS) /* else it is a number */
#else
#define TAG_BITS ((uintptr_t)0)
#define IS_OBJECT(word) 1
#endif

/* Frames that C makes when it enters the interpreter: they have no code of their own. In 3.11 there are none. */
#if PY_VERSION_HEX >= 0x030E0000
#define IS_ENTRY(owner) ((owner) >= FRAME_OWNED_BY_INTERPRETER)
#elif PY_VERSION_HEX >= 0x030C0000
#define IS_ENTRY(owner) ((owner) == FRAME_OWNED_BY_CSTACK)
#else
#define IS_ENTRY(owner) 0
#endif
#define MOST_OWNER 4

/* The outermost frame: one of these, as a generator's that has just been suspended has none below it either. */
#if PY_VERSION_HEX >= 0x030C0000
#define MAY_BE_LAST(owner) IS_ENTRY(owner)
#define CALLERS_MAY_BE_INCOMPLETE 1 /* as the one below an __init__ that the interpreter calls by itself */
#else
#define MAY_BE_LAST(owner) ((owner) != FRAME_OWNED_BY_GENERATOR)
#define CALLERS_MAY_BE_INCOMPLETE 0
#endif

/* -- code objects: all of them before their instructions */

typedef PyCodeObject CodeHead;

#define CODE_SIZE AT_CODE(co_code_adaptive)
#define CODE_TYPE ((uintptr_t)&PyCode_Type)
#define CODE_WORD(code, field) ((uintptr_t)(code)->co_##field)
#define CODE_FIRST_LINE(code) ((code)->co_firstlineno)
#define CODE_FIRST_TRACEABLE(code) ((code)->_co_firsttraceable)
#if PY_VERSION_HEX >= 0x030C0000
#define CODE_VERSION(code) ((code)->co_version) /* which no other has, until they have been used up */
#else
#define CODE_VERSION(code) 0
#endif

/* In 3.11 rebuilt code gets the very same addresses. */
#if PY_VERSION_HEX >= 0x030C0000
#define CODE_NEEDS_HASHES 0
#else
#define CODE_NEEDS_HASHES 1
#endif

/* In the upper half of a word of references are flags; in a block that was freed a pointer stands there. */
#if PY_VERSION_HEX >= 0x030E0000
#define REFERENCES_HAVE_FLAGS 1
#else
#define REFERENCES_HAVE_FLAGS 0
#endif

/* -- strings */

#define STRING_HASH offsetof(PyASCIIObject, hash)
#define STRING_DATA(ascii) ((ascii) ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject))

typedef PyASCIIObject StringHead;

#define STRING_HEAD_SIZE sizeof(PyASCIIObject)
#define STRING_LENGTH(head) ((head)->length)
#define STRING_KIND(head) ((head)->state.kind)
#define STRING_IS_COMPACT(head) ((head)->state.compact)
#define STRING_IS_ASCII(head) ((head)->state.ascii)

/* -- the GIL of an interpreter */

typedef struct _gil_runtime_state GilState;

#if PY_VERSION_HEX >= 0x030C0000
#define INTERPRETER_GIL (offsetof(PyInterpreterState, ceval) + offsetof(struct _ceval_state, gil)) /* a pointer to it */
#endif
#if PY_VERSION_HEX >= 0x030D0000
#define GIL_LOCKED(gil) ((gil)->locked)
#define GIL_HOLDER(gil) ((uintptr_t)(gil)->last_holder)
#else
#define GIL_LOCKED(gil) ((gil)->locked._value)
#define GIL_HOLDER(gil) ((gil)->last_holder._value)
#endif

#endif
#endif
