/* The sampler of stacks. It neither waits for the GIL nor stops a thread.
 *
 * A thread is sampled as running where it has the GIL, or where the kernel says that it runs; as waiting where it does
 * neither. A stack can have changed only if its thread has used CPU since it was read, so the others are not read again:
 * how long they wait is written once, when that is over. While no thread has taken the GIL from another, all but its
 * holder, and those that ran without it, are as they were. */
#define _GNU_SOURCE
#include "flight/recorder.h"

#ifdef HAS_STACKS

#include <time.h>

#define WHOLE_ROUNDS 16 /* so often all threads are looked at, though the GIL has not changed hands */
#define MOST_CODES 100000
#define MOST_TEXT (16 << 20) /* bytes of names, before they are read anew */

/* -- stacks as constants of the chunk ------------------------------------------------------------- */

/* The module of a file: what is left of its path when the longest folder of sys.path is taken off, with dots. */
static void
module_of(const SearchPath *path, const char *file, char *to, size_t room)
{
    size_t length = strlen(file), skipped = 0;
    if (length > 8 && memcmp(file, "<frozen ", 8) == 0) {
        file += 8;
        length -= 9;
    } else {
        for (size_t i = 0; i < path->count && skipped == 0; i++) {
            size_t folder = strlen(path->folders[i]);
            if (folder < length && memcmp(file, path->folders[i], folder) == 0 && file[folder] == '/') {
                skipped = folder + 1;
            }
        }
        if (skipped == 0 && file[0] == '/') { /* the last part; of a package's own file the last two */
            const char *last = strrchr(file, '/');
            const char *end = strcmp(last, "/__init__.py") == 0 && last > file ? last - 1 : last;
            while (end > file && *end != '/') {
                end--;
            }
            skipped = (size_t)(end + 1 - file);
        }
        file += skipped;
        length -= skipped;
        if (length > 3 && memcmp(file + length - 3, ".py", 3) == 0) {
            length -= 3;
        }
        if (length > 9 && memcmp(file + length - 9, "/__init__", 9) == 0) {
            length -= 9;
        }
    }
    length = length < room - 1 ? length : room - 1;
    for (size_t i = 0; i < length; i++) {
        to[i] = file[i] == '/' ? '.' : file[i];
    }
    to[length] = '\0';
}

int
vmscope_flight_is_own(const Recorder *self, const StackSource *source, uint32_t place)
{
    const char *file = vmscope_filename(&source->snapshot->names, place);
    size_t length = strlen(self->own_folder);
    return strncmp(file, self->own_folder, length) == 0 && file[length] == '/';
}

#define OWN_METHOD UINT32_MAX

static uint32_t
method_of(Recorder *self, StackSource *source, uint32_t place)
{
    const Names *names = &source->snapshot->names;
    uint32_t code = names->places[place].code;
    if (source->chunk != self->chunk_number) {
        memset(source->methods, 0, source->room * sizeof *source->methods);
        source->chunk = self->chunk_number;
    }
    if (code >= source->room) {
        size_t room = 2 * source->room > names->code_count ? 2 * source->room : names->code_count + 256;
        uint32_t *methods = realloc(source->methods, room * sizeof *methods);
        if (methods == NULL) {
            return 0;
        }
        memset(methods + source->room, 0, (room - source->room) * sizeof *methods);
        source->methods = methods;
        source->room = room;
    }
    if (source->methods[code] == 0 && vmscope_flight_is_own(self, source, place)) {
        source->methods[code] = OWN_METHOD;
    }
    if (source->methods[code] == 0) {
        char module[1024];
        module_of(&self->path, vmscope_filename(names, place), module, sizeof module);
        source->methods[code] = vmscope_chunk_method(&self->chunk, module, vmscope_qualname(names, place));
    }
    return source->methods[code];
}

uint32_t
vmscope_flight_stack(Recorder *self, StackSource *source, const SnapshotThread *thread)
{
    Bytes frames = {0};
    size_t count = 0;
    for (size_t i = 0; i < thread->count; i++) {
        const SnapshotFrame *frame = &source->snapshot->frames[thread->begin + i];
        uint32_t method = method_of(self, source, frame->place);
        if (method != OWN_METHOD) {
            vmscope_put_frame(&frames, method, source->snapshot->names.places[frame->place].line, frame->offset,
                              FRAME_INTERPRETED);
            count++;
        }
    }
    uint32_t number = count == 0 ? 0 : vmscope_chunk_stack(&self->chunk, &frames, count, thread->cut);
    bytes_free(&frames);
    return number;
}

/* -- threads as they were seen last --------------------------------------------------------------- */

static Sampled *
find_sampled(StackSampler *self, uint64_t state_id)
{
    for (size_t at = (size_t)(state_id * 0x9E3779B97F4A7C15ull >> 32);; at++) {
        Sampled *found = &self->threads[at & self->mask];
        if (found->state_id == 0 || found->state_id == state_id) {
            return found;
        }
    }
}

/* Makes the table anew with room for twice as many threads as there are now. 0 without memory. */
static int
make_table(StackSampler *self, size_t wanted)
{
    size_t size = 64;
    while (size < 4 * wanted) {
        size *= 2;
    }
    Sampled *before = self->threads, *threads = calloc(size, sizeof *threads);
    size_t before_size = before == NULL ? 0 : self->mask + 1;
    if (threads == NULL) {
        return 0;
    }
    self->threads = threads;
    self->mask = size - 1;
    self->count = 0;
    for (size_t i = 0; i < before_size; i++) {
        if (before[i].state_id != 0) {
            *find_sampled(self, before[i].state_id) = before[i];
            self->count++;
        }
    }
    free(before);
    return 1;
}

static Sampled *
meet_thread(StackSampler *self, const State *state)
{
    if ((self->threads == NULL || 2 * (self->count + 1) > self->mask + 1) && !make_table(self, self->count + 16)) {
        return NULL;
    }
    Sampled *found = find_sampled(self, state->id);
    if (found->state_id == 0) {
        *found = (Sampled){.state_id = state->id, .cpu = -1};
        self->count++;
    }
    found->state = state->address;
    found->ident = state->ident;
    found->native_id = (int64_t)state->native_id;
    return found;
}

void
vmscope_flight_sampler_free(StackSampler *self)
{
    free(self->threads);
    free(self->busy);
    memset(self, 0, sizeof *self);
}

/* -- what a thread does --------------------------------------------------------------------------- */

/* ns of CPU that the thread has used; -1: it has ended. */
static int64_t
cpu_of(int64_t native_id)
{
    struct timespec time;
    clockid_t clock = (clockid_t)(~(unsigned int)native_id << 3 | 6); /* the one that Linux has for a thread's number */
    return clock_gettime(clock, &time) < 0 ? -1 : (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* -- events --------------------------------------------------------------------------------------- */

static void
put_sample(Recorder *self, FlightType type, int64_t now, const Sampled *thread)
{
    Bytes *events = &self->chunk.events;
    if (self->periods[type] == 0 || self->types[type] == 0 || thread->stack == 0) {
        return;
    }
    size_t at = begin_event(events, self->types[type]);
    put_number(events, (uint64_t)now);
    put_number(events, thread->thread);
    put_number(events, thread->stack);
    put_number(events, STATE_RUNNABLE);
    end_event(events, at);
    self->samples++;
}

/* Writes how long it has waited, if it has, and forgets that. */
static void
end_wait(Recorder *self, Sampled *thread, int64_t now, int goes_on)
{
    Bytes *events = &self->chunk.events;
    FlightType type = thread->doing.activity == WAITS_FOR_GIL ? OF_GIL_WAIT : OF_WAIT_SAMPLE;
    uint64_t rounds = self->sampler.round - thread->since_round;
    if (thread->doing.activity == RUNS || thread->stack == 0 || thread->chunk != self->chunk_number || rounds == 0) {
        return;
    }
    if (self->periods[type] != 0 && self->types[type] != 0) {
        size_t at = begin_event(events, self->types[type]);
        put_number(events, (uint64_t)thread->since);
        put_number(events, (uint64_t)(now - thread->since));
        put_number(events, thread->thread);
        put_number(events, thread->stack);
        if (type == OF_WAIT_SAMPLE) {
            put_number(events, (uint64_t)thread->doing.state);
            put_number(events, rounds);
        }
        end_event(events, at);
        self->samples += rounds;
    }
    if (!goes_on) {
        vmscope_flight_put_wait(self, thread, now);
    }
}

static void
begin_wait(Recorder *self, Sampled *thread, int64_t now)
{
    thread->since = now;
    thread->since_round = self->sampler.round;
}

void
vmscope_flight_end_waits(Recorder *self, int64_t now, int64_t shortest)
{
    StackSampler *sampler = &self->sampler;
    for (size_t i = 0; sampler->threads != NULL && i <= sampler->mask; i++) {
        Sampled *thread = &sampler->threads[i];
        if (thread->state_id != 0 && thread->doing.activity != RUNS && now - thread->since >= shortest) {
            end_wait(self, thread, now, 1);
            begin_wait(self, thread, now);
        }
    }
}

/* With the mutex: what was read of a thread becomes an event, or a wait that begins or goes on. */
static void
note_thread(Recorder *self, Sampled *thread, const SnapshotThread *read, const Doing *doing, int has_gil, int64_t now)
{
    const Snapshot *snapshot = self->sampled.snapshot;
    int own = read->count > 0 && vmscope_flight_is_own(self, &self->sampled, snapshot->frames[read->begin].place);
    uint32_t stack = own ? 0 : vmscope_flight_stack(self, &self->sampled, read);
    if (thread->chunk != self->chunk_number) {
        thread->thread = vmscope_chunk_thread(&self->chunk, thread->state_id, thread->ident, thread->native_id);
        thread->chunk = self->chunk_number;
        thread->stack = 0;
        thread->doing.activity = RUNS;
    }
    if (doing->activity != RUNS && doing->activity == thread->doing.activity && stack == thread->stack &&
        doing->state == thread->doing.state && doing->address == thread->doing.address) {
        vmscope_flight_put_wait(self, thread, now); /* it has run meanwhile, and waits for the same again */
        thread->began = now;
        return;
    }
    end_wait(self, thread, now, 0);
    thread->stack = stack;
    thread->doing = *doing;
    thread->had_gil = has_gil;
    thread->in_condition =
        read->count > 0 &&
        strcmp(vmscope_qualname(&snapshot->names, snapshot->frames[read->begin].place), "Condition.wait") == 0;
    thread->began = now;
    if (doing->activity != RUNS) {
        begin_wait(self, thread, now);
    } else {
        put_sample(self, has_gil ? OF_EXECUTION_SAMPLE : OF_NATIVE_METHOD_SAMPLE, now, thread);
    }
}

/* -- a round -------------------------------------------------------------------------------------- */

/* Reads one thread, if there is anything new of it. */
static void
sample_thread(Recorder *self, uintptr_t address, uintptr_t holder, int64_t now)
{
    StackSampler *sampler = &self->sampler;
    Snapshot *snapshot = self->sampled.snapshot;
    State state;
    if (!vmscope_see_state(snapshot, address, &state) || state.id == 0 || state.native_id == 0 ||
        vmscope_is_own_thread((pid_t)state.native_id)) {
        return;
    }
    Sampled *thread = meet_thread(sampler, &state);
    if (thread == NULL) {
        return;
    }
    thread->round = sampler->round;
    int64_t cpu = cpu_of(thread->native_id);
    int has_gil = address == holder, moved = cpu != thread->cpu;
    if (!has_gil && !moved && thread->chunk == self->chunk_number) {
        return;
    }
    Doing doing = {.activity = RUNS, .type = FLIGHT_TYPE_COUNT};
    if (!has_gil) {
        vmscope_flight_look_at(thread->native_id, &doing);
    }
    snapshot->thread_count = snapshot->frame_count = 0;
    if (!vmscope_take_thread(snapshot, address) || snapshot->thread_count == 0) {
        return;
    }
    thread->cpu = cpu;
    if (snapshot->threads[0].lost) {
        sampler->stacks_lost++;
        return;
    }
    pthread_mutex_lock(&self->mutex);
    note_thread(self, thread, &snapshot->threads[0], &doing, has_gil, now);
    pthread_mutex_unlock(&self->mutex);
}

/* Forgets those that are no longer there; and finds those that run without the GIL. */
static void
end_round(Recorder *self, int64_t now)
{
    StackSampler *sampler = &self->sampler;
    size_t ended = 0;
    sampler->busy_count = 0;
    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; sampler->threads != NULL && i <= sampler->mask; i++) {
        Sampled *thread = &sampler->threads[i];
        if (thread->state_id != 0 && thread->round != sampler->round) {
            end_wait(self, thread, now, 0);
            if (thread->chunk == self->chunk_number && thread->thread != 0) {
                self->chunk.threads[thread->thread - 1].ended = 1;
            }
            ended++;
        } else if (thread->doing.activity == RUNS && !thread->had_gil && sampler->busy_count < sampler->busy_room) {
            sampler->busy[sampler->busy_count++] = thread->state;
        }
    }
    pthread_mutex_unlock(&self->mutex);
    if (ended > 0) {
        for (size_t i = 0; i <= sampler->mask; i++) {
            if (sampler->threads[i].round != sampler->round) {
                sampler->threads[i].state_id = 0;
            }
        }
        make_table(sampler, sampler->count - ended); /* what collided has moved; without memory some are met anew */
    }
}

static void
forget_names(Recorder *self, StackSource *source)
{
    Names *names = &source->snapshot->names;
    if (names->code_count > MOST_CODES || names->text_length > MOST_TEXT) {
        vmscope_free_names(names);
        pthread_mutex_lock(&self->mutex);
        memset(source->methods, 0, source->room * sizeof *source->methods);
        pthread_mutex_unlock(&self->mutex);
    }
}

void
vmscope_flight_sample(Recorder *self, int64_t now)
{
    StackSampler *sampler = &self->sampler;
    Snapshot *snapshot = self->sampled.snapshot;
    GilSeen gil = vmscope_see_gil();
    int same = gil.switches == sampler->gil.switches && sampler->round % WHOLE_ROUNDS != 0 &&
               sampler->chunk == self->chunk_number;
    size_t count = 0;
    sampler->round++;
    forget_names(self, &self->sampled);
    if (!vmscope_begin_snapshot(snapshot, PyInterpreterState_Main(), self->depth)) {
        return;
    }
    if (same) {
        for (size_t i = 0; i < sampler->busy_count; i++) {
            sample_thread(self, sampler->busy[i], gil.holder, now);
        }
        if (gil.holder != 0) {
            sample_thread(self, gil.holder, gil.holder, now);
        }
    } else if (vmscope_take_states(snapshot, &count)) {
        for (size_t i = 0; i < count; i++) {
            sample_thread(self, snapshot->states[i], gil.holder, now);
        }
        if (count > sampler->busy_room) {
            uintptr_t *busy = realloc(sampler->busy, 2 * count * sizeof *busy);
            sampler->busy_room = busy == NULL ? sampler->busy_room : 2 * count;
            sampler->busy = busy == NULL ? sampler->busy : busy;
        }
        end_round(self, now);
    } else {
        sampler->lists_lost++;
    }
    vmscope_end_snapshot(snapshot);
    sampler->gil = gil;
    sampler->chunk = self->chunk_number;
}

#endif
