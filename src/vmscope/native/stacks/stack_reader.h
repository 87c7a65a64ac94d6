/* The stacks of Python's threads, read as memory while they run: no GIL is waited for, no thread is stopped.
 *
 * All of it is called under a guard (guard.h), and answers 0 where what was read cannot have been one stack at one
 * moment: then it is read again. Nothing here allocates. */
#ifndef VMSCOPE_STACKS_H
#define VMSCOPE_STACKS_H

#ifdef VMSCOPE_REMOTE
#include "stacks/remote_layout.h"
#else
#include "region/layout.h"
#endif

#ifdef HAS_STACKS

/* One frame as it was read; a reader keeps it for as long as it likes, as it refers to nothing. */
typedef struct {
    uintptr_t address, code, previous, instruction;
    unsigned char owner;
} Frame;

/* The stack that was read last, the innermost frame first, with those that C made. */
typedef struct {
    uintptr_t state; /* of its thread */
    Frame *frames;
    size_t size, count;
    int cut; /* there are more, for which there is no room */
} Stack;

/* One thread state. */
typedef struct {
    uintptr_t address;
    uint64_t id; /* which no other state gets */
    unsigned long ident, native_id;
} State;

/* The states of an interpreter, the newest first, as many as there is room for; `count` says how many there are. */
int vmscope_list_states(uintptr_t interpreter, uintptr_t *states, size_t size, size_t *count);

/* 0 where there is no longer such a state in the interpreter. */
int vmscope_read_state(uintptr_t interpreter, uintptr_t address, State *out);

/* Whether the state still stands in its interpreter's list: to be asked after all else. */
int vmscope_is_listed(uintptr_t interpreter, uintptr_t address);

/* The innermost frame of a thread; 0: it has none. */
int vmscope_find_innermost(uintptr_t state, uintptr_t *frame);
int vmscope_read_frame(Frame *out, uintptr_t address);

/* Fills in the stack of the thread with this state. */
int vmscope_read_stack(Stack *self, uintptr_t state);

/* Whether a frame that was read is still there, and has been all the time. */
int vmscope_is_there(const Stack *self, const Frame *frame);

#ifndef VMSCOPE_REMOTE

/* The main interpreter's GIL: the address of the state of the thread that has it, 0: none; and how often it has gone
 * from one thread to another. No guard is needed, as this memory is never given back. */
typedef struct {
    uintptr_t holder;
    unsigned long switches;
} GilSeen;

GilSeen vmscope_see_gil(void);

/* Whether a word that a thread waits for is the main interpreter's GIL's. */
int vmscope_is_in_gil(uintptr_t address);

#endif
#endif
#endif
