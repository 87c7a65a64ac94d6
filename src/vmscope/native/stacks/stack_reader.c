/* The reader of stacks. Frames are pushed and popped while they are read, and a popped one stays readable, so that
 * nothing proves by itself that it was read whole. What does:
 *
 * - the innermost frame goes on by itself: its caller is read before and after it;
 * - each of the next levels is read, then the one above it again, which must still be linked and unchanged;
 * - while one of these lives, all below it do: so the rest is read at once, and then that one again;
 * - all of it within so short a time that no thread can have returned and come back to the same places.
 *
 * A frame that is being pushed has its place before it has its contents: so a place is in use up to the innermost frame
 * that is linked, whatever the thread state says of the top. */
#include "stacks/stack_reader.h"

#ifdef HAS_STACKS

#include "stacks/memory.h"

#include <time.h>

#ifdef VMSCOPE_REMOTE
#define CHECKED SIZE_MAX /* there are copies of all of them */
#define SHORT INT64_MAX  /* remote_memory.h looks at how long they took */
#define MOST_STATES (1 << 14)
#else
#define CHECKED 4  /* levels below the anchor that are read again one by one */
#define SHORT 3000 /* ns: what takes longer may have been interrupted */
#define MOST_STATES (1 << 20)
#endif
#define MOST_CHUNKS 256 /* of a thread's stack of frames */

static int64_t
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* -- frames --------------------------------------------------------------------------------------- */

int
vmscope_read_frame(Frame *out, uintptr_t address)
{
    if (!vmscope_can_load(address)) {
        return 0;
    }
    out->address = address;
    out->code = vmscope_word(address + FRAME_CODE) & ~TAG_BITS;
    out->previous = vmscope_word(address + AT_FRAME(previous));
    out->instruction = vmscope_word(address + FRAME_INSTRUCTION);
    out->owner = vmscope_byte(address + AT_FRAME(owner));
    return out->owner <= MOST_OWNER && !vmscope_has_failed();
}

static int
is_unchanged(const Frame *frame, int at_same_instruction)
{
    Frame found;
    return vmscope_read_frame(&found, frame->address) && found.code == frame->code &&
           found.previous == frame->previous && found.owner == frame->owner &&
           (!at_same_instruction || found.instruction == frame->instruction);
}

int
vmscope_find_innermost(uintptr_t state, uintptr_t *frame)
{
    uintptr_t place = state;
    return (STATE_CFRAME == 0 || vmscope_load(state + STATE_CFRAME, &place)) &&
           vmscope_load(place + CURRENT_FRAME, frame);
}

/* Whether a frame's place is in use: to be asked before the frame is read again. */
static int
is_live(uintptr_t state, const Frame *frame)
{
    uintptr_t chunk, size, top, innermost;
    if (frame->owner != FRAME_OWNED_BY_THREAD) {
        return 1; /* it has its place to itself: a generator, or C */
    }
    if (!vmscope_load(state + AT_STATE(datastack_chunk), &chunk) || !vmscope_find_innermost(state, &innermost)) {
        return 0;
    }
    for (int i = 0; i < MOST_CHUNKS && chunk != 0; i++) {
        if (!vmscope_load(chunk + AT_CHUNK(size), &size)) {
            return 0;
        }
        if (frame->address - chunk >= size) {
            if (!vmscope_load(chunk + AT_CHUNK(previous), &chunk)) {
                return 0;
            }
        } else if (innermost - chunk < size) {
            return frame->address <= innermost;
        } else if (i == 0) {
            return vmscope_load(state + AT_STATE(datastack_top), &top) && frame->address < top;
        } else { /* as full as it was when the next one began */
            return vmscope_load(chunk + AT_CHUNK(top), &top) &&
                   frame->address - chunk < AT_CHUNK(data) + top * VMSCOPE_WORD;
        }
    }
    return 0;
}

/* -- a stack -------------------------------------------------------------------------------------- */

/* The innermost frame and the one that called it, whatever C frame stands between: what the thread has pushed or popped
 * meanwhile is above that one. */
static int
read_anchor(Stack *self)
{
    Frame first, entry = {0}, caller, top;
    uintptr_t innermost, instruction;
    self->count = 0;
    if (!vmscope_find_innermost(self->state, &innermost)) {
        return 0;
    }
    if (innermost == 0) {
        return 1;
    }
    if (!vmscope_read_frame(&first, innermost)) {
        return 0;
    }
    if (first.previous == 0) { /* it has no caller */
        self->frames[self->count++] = first;
        vmscope_read_again(1);
        return vmscope_find_innermost(self->state, &innermost) && innermost == first.address;
    }
    if (!vmscope_read_frame(&caller, first.previous)) {
        return 0;
    }
    if (IS_ENTRY(caller.owner) && caller.previous != 0) {
        entry = caller;
        if (!vmscope_read_frame(&caller, entry.previous)) {
            return 0;
        }
    }
    /* As close to each other as can be: a short loop calls the same function again after about 100 ns. */
    if (!vmscope_load(caller.address + FRAME_INSTRUCTION, &caller.instruction)) {
        return 0;
    }
    vmscope_read_again(1);
    if (!vmscope_find_innermost(self->state, &innermost) || !vmscope_read_frame(&top, innermost) ||
        !vmscope_load(caller.address + FRAME_INSTRUCTION, &instruction) || !is_live(self->state, &caller) ||
        !is_unchanged(&caller, 0) || (entry.address != 0 && !is_unchanged(&entry, 0))) {
        return 0;
    }
    self->frames[self->count++] = top;
    if (top.address == caller.address) { /* the first has returned */
        return top.code == caller.code;
    }
    if (top.previous != (entry.address != 0 ? entry.address : caller.address)) {
        return 0;
    }
    if (entry.address != 0) {
        self->frames[self->count++] = entry;
    }
    self->frames[self->count++] = caller;
    return caller.instruction == instruction; /* else its line may be another call's */
}

/* From the anchor on. `since` is when that was begun. */
static int
read_callers(Stack *self, int64_t since)
{
    size_t first = self->count, held = 0, checked = 0;
    const Frame *live = NULL, *held_live = NULL;
    int64_t until = 0;
    self->cut = 0;
    for (;;) {
        Frame *frame = &self->frames[self->count - 1];
        live = frame->owner == FRAME_OWNED_BY_THREAD ? frame : live;
        if (frame->previous == 0) {
            if (!MAY_BE_LAST(frame->owner)) {
                return 0;
            }
            break;
        }
        if (self->count == self->size) {
            self->cut = 1;
            break;
        }
        vmscope_read_again(0);
        if (!vmscope_read_frame(frame + 1, frame->previous)) {
            return 0;
        }
        vmscope_read_again(1);
        if (checked < CHECKED) {
            if ((live != NULL && !is_live(self->state, live)) || !is_unchanged(frame, self->count > first)) {
                return 0;
            }
            held = self->count - 1;
            held_live = live;
            until = ++checked == CHECKED ? now() : 0;
        }
        self->count++;
    }
    if (checked == CHECKED && self->count > held + 2 &&
        ((held_live != NULL && !is_live(self->state, held_live)) ||
         !is_unchanged(&self->frames[held], held >= first))) {
        return 0;
    }
    return (until != 0 ? until : now()) - since <= SHORT;
}

int
vmscope_read_stack(Stack *self, uintptr_t state)
{
    int64_t since = now();
    self->state = state;
    self->cut = 0;
    vmscope_read_again(0);
    return read_anchor(self) && (self->count == 0 || read_callers(self, since));
}

int
vmscope_is_there(const Stack *self, const Frame *frame)
{
    const Frame *live = frame;
    while (live->owner != FRAME_OWNED_BY_THREAD && live > self->frames) {
        live--; /* what it called */
    }
    return is_live(self->state, live) && is_unchanged(frame, 0);
}

/* -- thread states -------------------------------------------------------------------------------- */

int
vmscope_list_states(uintptr_t interpreter, uintptr_t *states, size_t size, size_t *count)
{
    uintptr_t state, before = 0, previous, of;
    *count = 0;
    if (!vmscope_load(interpreter + THREADS_HEAD, &state)) {
        return 0;
    }
    while (state != 0) {
        if (!vmscope_load(state + AT_STATE(prev), &previous) || !vmscope_load(state + AT_STATE(interp), &of) ||
            previous != before || of != interpreter) {
            return 0;
        }
        if (*count < size) {
            states[*count] = state;
        }
        if (++*count == MOST_STATES) {
            return 0;
        }
        before = state;
        if (!vmscope_load(state + AT_STATE(next), &state)) {
            return 0;
        }
    }
    return 1;
}

int
vmscope_read_state(uintptr_t interpreter, uintptr_t address, State *out)
{
    uintptr_t of, id, ident, native_id;
    int filled;
    if (STATE_INITIALIZED != 0 &&
        (!vmscope_load_bytes(&filled, address + STATE_INITIALIZED, sizeof filled) || !filled)) {
        return 0;
    }
    if (!vmscope_load(address + AT_STATE(interp), &of) || of != interpreter ||
        !vmscope_load(address + AT_STATE(id), &id) || !vmscope_load(address + AT_STATE(thread_id), &ident) ||
        !vmscope_load(address + AT_STATE(native_thread_id), &native_id)) {
        return 0;
    }
    *out = (State){address, id, ident, native_id};
    return 1;
}

int
vmscope_is_listed(uintptr_t interpreter, uintptr_t address)
{
    uintptr_t previous, next = 0;
    return vmscope_load(address + AT_STATE(prev), &previous) &&
           vmscope_load(previous == 0 ? interpreter + THREADS_HEAD : previous + AT_STATE(next), &next) &&
           next == address;
}

#ifndef VMSCOPE_REMOTE
/* -- the GIL -------------------------------------------------------------------------------------- */

/* Where it stands; 0: nowhere. */
static uintptr_t
gil_address(void)
{
#ifdef INTERPRETER_GIL
    uintptr_t at;
    return vmscope_load((uintptr_t)PyInterpreterState_Main() + INTERPRETER_GIL, &at) ? at : 0;
#else
    return (uintptr_t)&_PyRuntime.ceval.gil;
#endif
}

GilSeen
vmscope_see_gil(void)
{
    GilState gil;
    uintptr_t at = gil_address();
    if (!vmscope_load_bytes(&gil, at, offsetof(GilState, switch_number) + sizeof gil.switch_number)) {
        return (GilSeen){0, 0};
    }
    return (GilSeen){GIL_LOCKED(&gil) == 1 ? GIL_HOLDER(&gil) : 0, gil.switch_number};
}

int
vmscope_is_in_gil(uintptr_t address)
{
    return address - gil_address() < sizeof(GilState);
}
#endif

#endif
