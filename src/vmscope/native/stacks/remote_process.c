/* Rounds through another process's threads. */
#define _GNU_SOURCE
#include "stacks/remote_stacks.h"

#ifdef HAS_REMOTE_STACKS

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES 12
#define MISSES 48          /* of what was not known to be looked at, of one stack */
#define LIST_TRIES 8       /* of the list of threads */
#define MOST_THREADS 16384 /* of one interpreter */
#define MOST_CHUNKS 64
#define MOST_CHUNK (1 << 20) /* bytes */
#define MOST_STACK (4 << 20) /* bytes, of all chunks */
#define MOST_TEXT (64 << 20) /* bytes of names: no program has more */
#define SLACK 1024           /* bytes behind the innermost frame, for those that are pushed meanwhile */
#define KEPT 32              /* frames outside the chunks that are kept, although they were not met */

typedef enum { DONE, AGAIN, MISSED, ROOM, ENDED, FAILED } Outcome;

static int
grow(void *array, size_t *size, size_t wanted, size_t each)
{
    if (wanted <= *size) {
        return 1;
    }
    size_t larger = 2 * *size < wanted ? wanted : 2 * *size;
    void *moved = realloc(*(void **)array, larger * each);
    if (moved == NULL) {
        return 0;
    }
    *(void **)array = moved;
    *size = larger;
    return 1;
}

/* -- what is read now ----------------------------------------------------------------------------- */

static void
look(RemoteProcess *self, RemoteView view)
{
    vmscope_remote = &self->memory;
    vmscope_layout = &self->layout;
    self->memory.view = view;
    self->memory.failed = 0;
}

/* -- interpreters and threads --------------------------------------------------------------------- */

/* By calls of their own, as their number has changed. */
static int
list_interpreters(RemoteProcess *self)
{
    uintptr_t address;
    size_t count = 0;
    if (!vmscope_load(self->layout.runtime + self->layout.runtime_interpreters, &address)) {
        return 0;
    }
    for (; address != 0 && count < VMSCOPE_MOST_INTERPRETERS; count++) {
        uintptr_t gil = self->layout.runtime + self->layout.runtime_gil;
        RemoteInterpreter *interpreter = &self->interpreters[count];
        if (self->layout.interpreter_gil != 0 && !vmscope_load(address + self->layout.interpreter_gil, &gil)) {
            return 0;
        }
        if (count >= self->interpreter_count || interpreter->address != address || interpreter->gil != gil) {
            *interpreter = (RemoteInterpreter){.address = address, .gil = gil, .moved = 1};
        }
        if (!vmscope_load(address + self->layout.interpreter_next, &address)) {
            return 0;
        }
    }
    self->interpreter_count = count;
    return count > 0;
}

static void
free_thread(RemoteThread *thread)
{
    if (thread->task_file >= 0) {
        close(thread->task_file);
    }
    free(thread->chunks);
    free(thread->others);
    free(thread->frames);
}

/* Its number, as /proc here has it, of a thread that has another in its own namespace. */
static long
find_task(const RemoteProcess *self, unsigned long inside)
{
    long found = 0;
    int folder = openat(self->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *tasks = folder < 0 ? NULL : fdopendir(folder);
    if (tasks == NULL) {
        return 0;
    }
    for (struct dirent *entry; found == 0 && (entry = readdir(tasks)) != NULL;) {
        char path[300], text[4096];
        snprintf(path, sizeof path, "%.200s/status", entry->d_name);
        int file = entry->d_name[0] == '.' ? -1 : openat(self->proc, path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
        if (file >= 0) {
            close(file);
        }
        text[got < 0 ? 0 : got] = '\0';
        char *line = strstr(text, "\nNSpid:"), *end = line == NULL ? NULL : strchr(line + 1, '\n'), *last;
        if (end != NULL) {
            *end = '\0';
            last = strrchr(line, '\t');
            found = last != NULL && strtoul(last, NULL, 10) == inside ? strtol(entry->d_name, NULL, 10) : 0;
        }
    }
    closedir(tasks);
    return found;
}

/* The threads whose states have these addresses; what is known of them stays. */
static int
replace_threads(RemoteProcess *self, const State *states, const size_t *interpreters, size_t count)
{
    RemoteThread *threads = calloc(count + 1, sizeof *threads);
    if (threads == NULL) {
        return 0;
    }
    for (size_t i = 0, next = 0; i < count; i++) {
        RemoteThread *thread = &threads[i];
        for (size_t j = 0; j < self->thread_count && thread->state.address == 0; j++, next++) {
            RemoteThread *old = &self->threads[next % self->thread_count];
            if (memcmp(&old->state, &states[i], sizeof *states) == 0 && old->interpreter == interpreters[i]) {
                *thread = *old;
                memset(old, 0, sizeof *old);
                old->task_file = -1;
            }
        }
        if (thread->state.address == 0) {
            thread->state = states[i];
            thread->interpreter = interpreters[i];
            thread->number = self->numbers++;
            thread->task_file = -1;
            thread->task = self->namespaced ? find_task(self, states[i].native_id) : (long)states[i].native_id;
        }
    }
    for (size_t i = 0; i < self->thread_count; i++) {
        free_thread(&self->threads[i]);
    }
    free(self->threads);
    self->threads = threads;
    self->thread_count = count;
    return 1;
}

/* By calls of their own, as threads have come or gone. */
static Outcome
list_threads(RemoteProcess *self)
{
    State *states = NULL;
    size_t *interpreters = NULL, count = 0, size = 0, also = 0;
    Outcome outcome = AGAIN;
    look(self, LIVE);
    if (!list_interpreters(self)) {
        return AGAIN;
    }
    for (size_t i = 0; i < self->interpreter_count; i++) {
        uintptr_t address = self->interpreters[i].address;
        size_t found;
        if (!grow(&self->addresses, &self->address_size, 64, sizeof *self->addresses)) {
            goto failed;
        }
        do {
            if (!vmscope_list_states(address, self->addresses, self->address_size, &found) || found > MOST_THREADS) {
                goto done;
            }
        } while (found > self->address_size &&
                 grow(&self->addresses, &self->address_size, found + 16, sizeof *self->addresses));
        if (found > self->address_size || !grow(&states, &size, count + found + 1, sizeof *states) ||
            !grow(&interpreters, &also, count + found + 1, sizeof *interpreters)) {
            goto failed;
        }
        for (size_t j = 0; j < found; j++) {
            if (vmscope_read_state(address, self->addresses[j], &states[count])) {
                interpreters[count++] = i;
            } else if (self->memory.failed) {
                goto done;
            }
        }
    }
    outcome = replace_threads(self, states, interpreters, count) ? DONE : FAILED;
    goto done;
failed:
    outcome = FAILED;
done:
    free(states);
    free(interpreters);
    return outcome;
}

/* Whether the copies have the threads that are known, and no others; and what GILs were like. */
static int
check_list(RemoteProcess *self)
{
    const RemoteLayout *layout = &self->layout;
    uintptr_t address, next;
    size_t at = 0;
    if (!vmscope_load(layout->runtime + layout->runtime_interpreters, &next)) {
        return 0;
    }
    for (size_t i = 0; i < self->interpreter_count; i++) {
        RemoteInterpreter *interpreter = &self->interpreters[i];
        uintptr_t gil = interpreter->gil, holder, switches, locked;
        size_t count;
        address = next;
        if (address != interpreter->address || !vmscope_load(address + layout->interpreter_next, &next) ||
            (layout->interpreter_gil != 0 && !vmscope_load(address + layout->interpreter_gil, &gil)) ||
            gil != interpreter->gil || !vmscope_list_states(address, self->addresses, self->address_size, &count) ||
            count > self->address_size || !vmscope_load(gil + layout->gil_holder, &holder) ||
            !vmscope_load(gil + layout->gil_switches, &switches) || !vmscope_load(gil + layout->gil_locked, &locked)) {
            return 0;
        }
        interpreter->moved |= holder != interpreter->holder || switches != interpreter->switches;
        interpreter->locked = (int32_t)locked == 1;
        interpreter->holder = holder;
        interpreter->switches = switches;
        for (size_t j = 0; j < count; j++) {
            State state;
            if (!vmscope_read_state(address, self->addresses[j], &state)) {
                if (self->memory.failed) {
                    return 0;
                }
                continue; /* it is being made */
            }
            if (at == self->thread_count || memcmp(&state, &self->threads[at].state, sizeof state) != 0) {
                return 0;
            }
            (void)vmscope_load(state.address + layout->state_datastack_top, &self->threads[at].top);
            at++;
        }
    }
    return next == 0 && at == self->thread_count;
}

/* All that says which threads there are, and who has the GIL, by one call. */
static Outcome
look_at_threads(RemoteProcess *self)
{
    const RemoteLayout *layout = &self->layout;
    RemoteMemory *memory = &self->memory;
    vmscope_remote_clear(memory);
    int there = vmscope_remote_add(memory, layout->runtime + layout->runtime_interpreters, sizeof(uintptr_t));
    for (size_t i = 0, at = 0; there && i < self->interpreter_count; i++) {
        const RemoteInterpreter *interpreter = &self->interpreters[i];
        there = vmscope_remote_add(memory, interpreter->address + layout->interpreter_next, sizeof(uintptr_t)) &&
                (layout->interpreter_gil == 0 ||
                 vmscope_remote_add(memory, interpreter->address + layout->interpreter_gil, sizeof(uintptr_t))) &&
                vmscope_remote_add(memory, interpreter->address + layout->interpreter_threads, sizeof(uintptr_t));
        for (; there && at < self->thread_count && self->threads[at].interpreter == i; at++) {
            there = vmscope_remote_add(memory, self->threads[at].state.address, layout->state_size);
        }
        there = there && vmscope_remote_add(memory, interpreter->gil, layout->gil_size);
    }
    look(self, FIRST_COPY);
    int copied = there ? vmscope_remote_copy(memory, 0) : -1;
    if (copied < 0) {
        return FAILED;
    }
    return copied && check_list(self) ? DONE : AGAIN;
}

/* -- one thread ----------------------------------------------------------------------------------- */

static int
is_in(const RemotePiece *pieces, size_t count, uintptr_t address)
{
    for (size_t i = 0; i < count; i++) {
        if (address - pieces[i].from < pieces[i].size) {
            return 1;
        }
    }
    return 0;
}

/* What is to be copied: the frames that change most are next to the thread's state, where the two copies meet. */
static int
add_pieces(RemoteProcess *self, const RemoteThread *thread)
{
    RemoteMemory *memory = &self->memory;
    int there = 1;
    vmscope_remote_clear(memory);
    for (size_t i = thread->other_count; there && i > 0; i--) {
        there = vmscope_remote_add(memory, thread->others[i - 1].from, thread->others[i - 1].size);
    }
    for (size_t i = thread->chunk_count; there && i > 0; i--) {
        const RemotePiece *chunk = &thread->chunks[i - 1];
        size_t size = chunk->size, used = thread->top - chunk->from;
        if (i == 1 && used < size && used + SLACK < size) {
            size = used + SLACK;
        }
        there = vmscope_remote_add(memory, chunk->from, size);
    }
    return there && vmscope_remote_add(memory, thread->state.address, self->layout.state_size);
}

static int
learn_chunks(RemoteProcess *self, RemoteThread *thread)
{
    const RemoteLayout *layout = &self->layout;
    uintptr_t chunk, size, total = 0;
    thread->chunk_count = 0;
    if (!vmscope_load(thread->state.address + layout->state_datastack_top, &thread->top) ||
        !vmscope_load(thread->state.address + layout->state_datastack_chunk, &chunk)) {
        return 1;
    }
    while (chunk != 0 && thread->chunk_count < MOST_CHUNKS) {
        if (!vmscope_load(chunk + layout->chunk_size, &size) || size > MOST_CHUNK || size < layout->chunk_data ||
            size % VMSCOPE_WORD != 0 || (total += size) > MOST_STACK) {
            return 1;
        }
        if (!grow(&thread->chunks, &thread->chunk_size, thread->chunk_count + 1, sizeof *thread->chunks)) {
            return 0;
        }
        thread->chunks[thread->chunk_count++] = (RemotePiece){.from = chunk, .size = size};
        if (!vmscope_load(chunk + layout->chunk_previous, &chunk)) {
            return 1;
        }
    }
    return 1;
}

static int
learn_other(RemoteThread *thread, uintptr_t from, size_t size)
{
    if (is_in(thread->chunks, thread->chunk_count, from) || is_in(thread->others, thread->other_count, from)) {
        return 1;
    }
    if (!grow(&thread->others, &thread->other_size, thread->other_count + 1, sizeof *thread->others)) {
        return 0;
    }
    thread->others[thread->other_count++] = (RemotePiece){.from = from, .size = size};
    return 1;
}

/* Looks for what has to be copied of a thread: it follows its frames, call by call. */
static int
learn(RemoteProcess *self, RemoteThread *thread)
{
    const RemoteLayout *layout = &self->layout;
    uintptr_t place = thread->state.address, frame;
    if (thread->other_count > KEPT) {
        thread->other_count = 0;
    }
    look(self, LIVE);
    if (!learn_chunks(self, thread)) {
        return 0;
    }
    look(self, LIVE);
    if (layout->state_cframe != 0) {
        if (!vmscope_load(place + layout->state_cframe, &place)) {
            return 1;
        }
        if (!learn_other(thread, place, layout->current_frame + VMSCOPE_WORD)) {
            return 0;
        }
    }
    if (!vmscope_load(place + layout->current_frame, &frame)) {
        return 1;
    }
    for (size_t i = 0; frame != 0 && i < self->limit; i++) {
        if (!vmscope_can_load(frame)) {
            return 1;
        }
        if (!learn_other(thread, frame, layout->frame_size)) {
            return 0;
        }
        if (!vmscope_load(frame + layout->frame_previous, &frame)) {
            return 1;
        }
    }
    return 1;
}

/* The names of the stack that was read. */
static Outcome
name_thread(RemoteProcess *self, RemoteThread *thread)
{
    const Stack *stack = &self->stack;
    size_t codes = 0;
    if (!grow(&self->addresses, &self->address_size, stack->count + 1, sizeof *self->addresses) ||
        !grow(&thread->frames, &thread->frame_size, self->limit < stack->count ? self->limit : stack->count,
              sizeof *thread->frames)) {
        return FAILED;
    }
    for (size_t i = 0; i < stack->count; i++) {
        if (!IS_ENTRY(stack->frames[i].owner)) {
            self->addresses[codes++] = stack->frames[i].code;
        }
    }
    look(self, LIVE);
    if (!vmscope_remote_copy_codes(&self->memory, self->addresses, codes)) {
        return FAILED;
    }
    NameOutcome outcome =
        vmscope_name_stack(&self->names, stack, self->limit, thread->frames, &thread->frame_count, &thread->cut);
    return outcome == NAMED ? DONE : outcome == NO_ROOM ? ROOM : AGAIN;
}

static Outcome
try_thread(RemoteProcess *self, RemoteThread *thread)
{
    State state;
    self->reads++;
    if (!add_pieces(self, thread)) {
        return FAILED;
    }
    int copied = vmscope_remote_copy(&self->memory, 1);
    if (copied < 0) {
        return FAILED;
    }
    look(self, FIRST_COPY);
    if (!copied) { /* something is no longer there: what is known may be of the past */
        thread->chunk_count = thread->other_count = 0;
        return AGAIN;
    }
    if (!vmscope_read_stack(&self->stack, thread->state.address)) {
        return self->memory.failed ? MISSED : AGAIN;
    }
    uintptr_t interpreter = self->interpreters[thread->interpreter].address;
    (void)vmscope_load(thread->state.address + self->layout.state_datastack_top, &thread->top);
    if (!vmscope_read_state(interpreter, thread->state.address, &state) ||
        memcmp(&state, &thread->state, sizeof state) != 0) {
        return ENDED;
    }
    return name_thread(self, thread);
}

/* 0 without memory. */
static int
read_thread(RemoteProcess *self, RemoteThread *thread)
{
    Outcome outcome = AGAIN;
    thread->known = 0;
    memset(thread->row, 0, sizeof thread->row);
    for (int tries = 0, misses = 0; tries < TRIES && misses < MISSES && outcome != DONE && outcome != ENDED;) {
        if (self->names.text_length > MOST_TEXT) {
            break;
        }
        if (!vmscope_reserve_names(&self->names) ||
            ((thread->chunk_count == 0 || outcome == MISSED) && !learn(self, thread))) {
            return 0;
        }
        outcome = try_thread(self, thread);
        if (outcome == FAILED) {
            return 0;
        }
        tries += outcome == AGAIN;
        misses += outcome == MISSED || outcome == ROOM;
        self->torn += outcome == AGAIN;
    }
    thread->known = thread->fresh = outcome == DONE;
    self->lost += outcome != DONE && outcome != ENDED;
    if (!thread->known) {
        thread->frame_count = 0;
    }
    return 1;
}

/* -- a round -------------------------------------------------------------------------------------- */

static int
has_ended(const RemoteProcess *self)
{
    struct pollfd ended = {.fd = self->ended, .events = POLLIN};
    return self->ended >= 0 && poll(&ended, 1, 0) == 1;
}

RoundOutcome
vmscope_read_round(RemoteProcess *self, int all)
{
    Outcome outcome = AGAIN;
    self->rounds++;
    if (has_ended(self)) {
        return ROUND_GONE;
    }
    for (int tries = 0; tries < LIST_TRIES && outcome == AGAIN; tries++) {
        if ((self->interpreter_count == 0 || tries > 0) && list_threads(self) == FAILED) {
            return ROUND_NO_MEMORY;
        }
        outcome = look_at_threads(self);
    }
    if (outcome == FAILED) {
        return ROUND_NO_MEMORY;
    }
    if (outcome == AGAIN) {
        self->interpreter_count = 0;
        return has_ended(self) ? ROUND_GONE : ROUND_TORN;
    }
    for (size_t i = 0; i < self->thread_count; i++) {
        RemoteThread *thread = &self->threads[i];
        const RemoteInterpreter *interpreter = &self->interpreters[thread->interpreter];
        /* Only who has the GIL changes its stack: where it has not gone to another thread, that one alone. */
        if (all || !thread->known || interpreter->moved || interpreter->holder == thread->state.address) {
            if (!read_thread(self, thread)) {
                return ROUND_NO_MEMORY;
            }
        }
    }
    for (size_t i = 0; i < self->interpreter_count; i++) {
        self->interpreters[i].moved = 0;
    }
    return ROUND_READ;
}

int
vmscope_holds_gil(const RemoteProcess *self, const RemoteThread *thread)
{
    const RemoteInterpreter *interpreter = &self->interpreters[thread->interpreter];
    return interpreter->locked && interpreter->holder == thread->state.address;
}

/* -- what /proc says of a thread ------------------------------------------------------------------ */

static ssize_t
read_task(const RemoteProcess *self, const RemoteThread *thread, const char *name, char *text, size_t size, int *file)
{
    char path[64];
    if (*file < 0) {
        snprintf(path, sizeof path, "%ld/%s", thread->task, name);
        *file = openat(self->proc, path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t got = *file < 0 ? -1 : pread(*file, text, size - 1, 0);
    text[got < 0 ? 0 : got] = '\0';
    return got;
}

char
vmscope_task_state(RemoteProcess *self, RemoteThread *thread)
{
    char text[512];
    int file = -1;
    (void)read_task(self, thread, "stat", text, sizeof text, &file);
    if (file >= 0) {
        close(file);
    }
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' && end[2] != '\0' ? end[2] : '?';
}

char
vmscope_task_runs(RemoteProcess *self, RemoteThread *thread)
{
    char text[256];
    if (read_task(self, thread, "syscall", text, sizeof text, &thread->task_file) <= 0) {
        return vmscope_task_state(self, thread);
    }
    return text[0] == 'r' ? 'R' : 'S'; /* running */
}

/* -- its beginning and its end -------------------------------------------------------------------- */

int
vmscope_open_process(RemoteProcess *self, size_t limit)
{
    self->limit = limit;
    self->memory.pid = self->pid;
    return grow(&self->stack.frames, &self->stack.size, 2 * limit + 8, sizeof *self->stack.frames) &&
           grow(&self->addresses, &self->address_size, 64, sizeof *self->addresses);
}

void
vmscope_close_process(RemoteProcess *self)
{
    for (size_t i = 0; i < self->thread_count; i++) {
        free_thread(&self->threads[i]);
    }
    free(self->threads);
    free(self->addresses);
    free(self->stack.frames);
    vmscope_remote_free(&self->memory);
    vmscope_free_names(&self->names);
    memset(self, 0, sizeof *self);
}

#endif
