/* Snapshots of all threads. */
#define _GNU_SOURCE
#include "stacks/racy_snapshot.h"

#ifdef HAS_STACKS

#include "signals/guard.h"

#include <stdlib.h>
#include <string.h>

#define TRIES 12       /* of one stack */
#define ROOMS 64       /* made for the names of one stack, of which ten are enough */
#define LIST_TRIES 8   /* of the list of states */
#define LEAST_FRAMES 8 /* that there is room for, whatever the limit: those at which a stack is read twice */
#define ANYWHERE ((uintptr_t)0), UINTPTR_MAX

typedef enum {
    READ,
    AGAIN, /* it was torn */
    ROOM,  /* there is none for new names */
    ENDED, /* there is no such thread any more */
} Outcome;

/* -- room ----------------------------------------------------------------------------------------- */

static int
reserve(void *array, size_t *size, size_t wanted, size_t each)
{
    if (wanted > *size) {
        size_t larger = 2 * *size < wanted ? wanted : 2 * *size;
        void *moved = realloc(*(void **)array, larger * each);
        if (moved == NULL) {
            return 0;
        }
        *(void **)array = moved;
        *size = larger;
    }
    return 1;
}

Snapshot *
vmscope_new_snapshot(void)
{
    return calloc(1, sizeof(Snapshot));
}

void
vmscope_free_snapshot(Snapshot *self)
{
    if (self != NULL) {
        vmscope_free_names(&self->names);
        free(self->threads);
        free(self->frames);
        free(self->states);
        free(self->stack.frames);
        free(self);
    }
}

/* -- one thread ----------------------------------------------------------------------------------- */

static Outcome
read_thread(Snapshot *self, uintptr_t state, SnapshotThread *thread)
{
    memset(thread, 0, sizeof *thread);
    thread->begin = self->frame_count;
    if (!vmscope_is_listed(self->interpreter, state) || !vmscope_read_state(self->interpreter, state, &thread->state)) {
        return ENDED;
    }
    self->reads++;
    if (!vmscope_read_stack(&self->stack, state)) {
        return AGAIN;
    }
    NameOutcome outcome = vmscope_name_stack(&self->names, &self->stack, self->limit, self->frames + thread->begin,
                                             &thread->count, &thread->cut);
    if (outcome != NAMED) {
        return outcome == NO_ROOM ? ROOM : AGAIN;
    }
    return vmscope_is_listed(self->interpreter, state) ? READ : AGAIN;
}

/* The same under the guard. */
static __attribute__((noinline)) Outcome
try_thread(Snapshot *self, uintptr_t state, SnapshotThread *thread)
{
    Guard guard;
    if (sigsetjmp(guard.jump, 0) != 0) {
        vmscope_guard_clear();
        self->faults++;
        return AGAIN;
    }
    vmscope_guard_set(&guard, ANYWHERE);
    Outcome outcome = read_thread(self, state, thread);
    vmscope_guard_clear();
    return outcome;
}

int
vmscope_take_thread(Snapshot *self, uintptr_t state)
{
    SnapshotThread thread;
    Outcome outcome = AGAIN;
    vmscope_guard_renew(GUARD_MEMORY);
    for (int tries = 0, rooms = 0; tries < TRIES && rooms < ROOMS && outcome != READ && outcome != ENDED;) {
        if (!reserve(&self->frames, &self->frame_size, self->frame_count + self->limit, sizeof *self->frames) ||
            !reserve(&self->threads, &self->thread_size, self->thread_count + 1, sizeof *self->threads) ||
            !vmscope_reserve_names(&self->names)) {
            return 0;
        }
        outcome = try_thread(self, state, &thread);
        tries += outcome == AGAIN;
        rooms += outcome == ROOM;
        self->torn += outcome == AGAIN;
    }
    if (outcome == AGAIN || outcome == ROOM) {
        thread.count = 0;
        thread.cut = 0;
        thread.lost = 1;
    }
    if (outcome != ENDED && thread.state.address != 0) { /* else there was nothing to be read of it */
        self->threads[self->thread_count++] = thread;
        self->frame_count += thread.count;
    }
    return 1;
}

/* -- all threads ---------------------------------------------------------------------------------- */

static __attribute__((noinline)) int
try_list(Snapshot *self, size_t *count)
{
    Guard guard;
    if (sigsetjmp(guard.jump, 0) != 0) {
        vmscope_guard_clear();
        self->faults++;
        return 0;
    }
    vmscope_guard_set(&guard, ANYWHERE);
    int listed = vmscope_list_states(self->interpreter, self->states, self->state_size, count);
    vmscope_guard_clear();
    return listed;
}

__attribute__((noinline)) int
vmscope_see_state(Snapshot *self, uintptr_t address, State *out)
{
    Guard guard;
    if (sigsetjmp(guard.jump, 0) != 0) {
        vmscope_guard_clear();
        self->faults++;
        return 0;
    }
    vmscope_guard_set(&guard, ANYWHERE);
    int read = vmscope_read_state(self->interpreter, address, out);
    vmscope_guard_clear();
    return read;
}

int
vmscope_take_states(Snapshot *self, size_t *found)
{
    *found = 0;
    for (int tries = 0; tries < LIST_TRIES;) {
        size_t count = 0;
        if (!try_list(self, &count)) {
            tries++;
        } else if (count <= self->state_size) {
            *found = count;
            return 1;
        } else if (!reserve(&self->states, &self->state_size, count + 16, sizeof *self->states)) {
            return 0;
        }
    }
    return 1;
}

static void
begin(Snapshot *self, PyInterpreterState *interpreter, size_t limit)
{
    self->interpreter = (uintptr_t)interpreter;
    self->limit = limit;
    self->thread_count = self->frame_count = 0;
}

int
vmscope_begin_snapshot(Snapshot *self, PyInterpreterState *interpreter, size_t limit)
{
    begin(self, interpreter, limit);
    /* Twice: with the frames of C between them. */
    if (!reserve(&self->stack.frames, &self->stack.size, 2 * limit + LEAST_FRAMES, sizeof *self->stack.frames)) {
        return 0;
    }
    vmscope_guard_enter(GUARD_MEMORY, &self->mask);
    return 1;
}

void
vmscope_end_snapshot(Snapshot *self)
{
    vmscope_guard_leave(GUARD_MEMORY, &self->mask);
}

int
vmscope_take_snapshot(Snapshot *self, PyInterpreterState *interpreter, size_t limit)
{
    size_t count;
    if (!vmscope_begin_snapshot(self, interpreter, limit)) {
        return 0;
    }
    int taken = vmscope_take_states(self, &count);
    for (size_t i = 0; taken && i < count; i++) {
        taken = vmscope_take_thread(self, self->states[i]);
    }
    vmscope_end_snapshot(self);
    return taken;
}

/* -- with the GIL: what is read stands still ------------------------------------------------------ */

/* 0 without memory. */
static int
copy_stack(Snapshot *self, SnapshotThread *thread, const _PyInterpreterFrame *frame)
{
    for (; frame != NULL; frame = frame->previous) {
        if (IS_ENTRY(frame->owner)) {
            continue;
        }
        uintptr_t code = *(const uintptr_t *)((uintptr_t)frame + FRAME_CODE) & ~TAG_BITS;
        uintptr_t instruction = *(const uintptr_t *)((uintptr_t)frame + FRAME_INSTRUCTION);
        int offset = (int)(instruction - (code + CODE_SIZE));
        if (frame->owner != FRAME_OWNED_BY_GENERATOR && offset < 2 * ((const PyCodeObject *)code)->_co_firsttraceable) {
            continue;
        }
        if (thread->count == self->limit) {
            thread->cut = 1;
            break;
        }
        size_t at = thread->begin + thread->count++;
        if (at == self->frame_size && !reserve(&self->frames, &self->frame_size, at + 1, sizeof *self->frames)) {
            return 0;
        }
        self->frames[at] = (SnapshotFrame){(uintptr_t)frame, code, offset, 0};
    }
    return 1;
}

static const _PyInterpreterFrame *
innermost_of(const PyThreadState *state)
{
    uintptr_t innermost = 0;
    (void)vmscope_find_innermost((uintptr_t)state, &innermost);
    return (const _PyInterpreterFrame *)innermost;
}

int
vmscope_copy_snapshot(Snapshot *self, PyInterpreterState *interpreter, size_t limit, uint64_t only)
{
    begin(self, interpreter, limit);
    /* Whoever has the GIL may follow the states: meanwhile new ones come at the head only, and none goes. */
    for (PyThreadState *state = vmscope_first_state(interpreter); state != NULL; state = state->next) {
        if (only != 0 && state->id != only) {
            continue;
        }
        if (!reserve(&self->threads, &self->thread_size, self->thread_count + 1, sizeof *self->threads)) {
            return 0;
        }
        if (state->next != NULL) {
            __builtin_prefetch(innermost_of(state->next));
        }
        SnapshotThread *thread = &self->threads[self->thread_count++];
        *thread = (SnapshotThread){.state = {(uintptr_t)state, state->id, state->thread_id, state->native_thread_id},
                                   .begin = self->frame_count};
        if (!copy_stack(self, thread, innermost_of(state))) {
            return 0;
        }
        self->frame_count += thread->count;
    }
    return 1;
}

/* The places that were found last: most frames of many threads are at a few. */
typedef struct {
    uintptr_t code;
    int offset;
    uint32_t place;
} Recent;

#define RECENT 64

int
vmscope_name_snapshot(Snapshot *self)
{
    Recent recent[RECENT] = {{0, 0, 0}};
    for (size_t i = 0; i < self->frame_count; i++) {
        SnapshotFrame *row = &self->frames[i];
        Recent *last = &recent[(row->code >> 4 ^ (uintptr_t)row->offset) % RECENT];
        if (last->code != row->code || last->offset != row->offset) {
            Frame frame = {.code = row->code,
                           .instruction = row->code + CODE_SIZE + (uintptr_t)row->offset,
                           .owner = FRAME_OWNED_BY_GENERATOR}; /* that it executes has been seen */
            int fresh;
            if (!vmscope_reserve_names(&self->names) ||
                vmscope_name_frame(&self->names, &frame, &row->place, &fresh) != NAMED) {
                return 0;
            }
            *last = (Recent){row->code, row->offset, row->place};
        }
        row->place = last->place;
    }
    return 1;
}

static int
touch(void *array, size_t *size, size_t wanted, size_t each)
{
    size_t before = *size;
    if (!reserve(array, size, wanted, each)) {
        return 0;
    }
    memset(*(char **)array + before * each, 0, (*size - before) * each);
    return 1;
}

int
vmscope_reserve_snapshot(Snapshot *self, size_t threads, size_t frames)
{
    return touch(&self->threads, &self->thread_size, threads, sizeof *self->threads) &&
           touch(&self->frames, &self->frame_size, frames, sizeof *self->frames);
}

#endif
