#include "flight/chunk.h"

#include <stdio.h>
#include <unistd.h>

#define TICKS 1000000000 /* a second: of CLOCK_MONOTONIC */
#define MOST_CLASS 4096  /* bytes of a class's name */
#define DESCRIPTOR "()V" /* of every function: the tools print none that Java does not have */
#define MODIFIERS 1      /* public */

/* -- constants ------------------------------------------------------------------------------------ */

/* A row that is made here of a few numbers. */
static uint32_t
row_of(Pool *pool, const uint64_t *values, int count)
{
    unsigned char room[5 * LONGEST_NUMBER];
    Bytes row = {.data = room, .room = sizeof room};
    for (int i = 0; i < count; i++) {
        put_number(&row, values[i]);
    }
    return vmscope_pool_row(pool, row.data, row.size);
}

#define ROW(pool, ...)                                                                                                 \
    row_of(pool, (const uint64_t[]){__VA_ARGS__}, (int)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

uint32_t
vmscope_chunk_symbol(Chunk *self, const char *text, size_t length)
{
    Bytes row = {0};
    put_string(&row, text, length);
    uint32_t number = row.failed ? 0 : vmscope_pool_row(&self->symbols, row.data, row.size);
    bytes_free(&row);
    return number;
}

static uint32_t
package_of(Chunk *self, const char *class_name, size_t length)
{
    while (length > 0 && class_name[length - 1] != '/') {
        length--;
    }
    uint32_t name = length == 0 ? 0 : vmscope_chunk_symbol(self, class_name, length - 1);
    return name == 0 ? 0 : ROW(&self->packages, name, 0, 1);
}

uint32_t
vmscope_chunk_class(Chunk *self, const char *class_name, size_t length)
{
    uint32_t name = vmscope_chunk_symbol(self, class_name, length);
    uint32_t package = package_of(self, class_name, length);
    return ROW(&self->classes, 0, name, package, MODIFIERS, 0);
}

/* Appends a part of a class's name; a dot in it separates as well. */
static size_t
append_part(char *to, size_t length, const char *part, size_t count)
{
    if (count == 0 || length + count + 1 >= MOST_CLASS) {
        return length;
    }
    if (length > 0) {
        to[length++] = '/';
    }
    for (size_t i = 0; i < count; i++) {
        to[length++] = part[i] == '.' ? '/' : part[i];
    }
    return length;
}

#define LOCALS "<locals>"

uint32_t
vmscope_chunk_method(Chunk *self, const char *module, const char *qualname)
{
    char class_name[MOST_CLASS];
    size_t length = append_part(class_name, 0, module, strlen(module));
    const char *dot;
    while ((dot = strchr(qualname, '.')) != NULL && dot[1] != '\0') {
        size_t count = (size_t)(dot - qualname);
        if (count != strlen(LOCALS) || memcmp(qualname, LOCALS, count) != 0) {
            length = append_part(class_name, length, qualname, count);
        }
        qualname = dot + 1;
    }
    uint32_t of = vmscope_chunk_class(self, class_name, length);
    uint32_t name = vmscope_chunk_symbol(self, qualname, strlen(qualname));
    uint32_t descriptor = vmscope_chunk_symbol(self, DESCRIPTOR, strlen(DESCRIPTOR));
    return ROW(&self->methods, of, name, descriptor, MODIFIERS, 0);
}

void
vmscope_put_frame(Bytes *row, uint32_t method, int line, int offset, int type)
{
    put_number(row, method);
    put_number(row, (uint64_t)(line < 0 ? 0 : line));
    put_number(row, (uint64_t)(offset < 0 ? 0 : offset));
    put_number(row, (uint64_t)type);
}

uint32_t
vmscope_chunk_stack(Chunk *self, const Bytes *frames, size_t count, int truncated)
{
    Bytes row = {0};
    put_byte(&row, (unsigned char)(truncated != 0));
    put_number(&row, count);
    put_bytes(&row, frames->data, frames->size);
    uint32_t number = row.failed || frames->failed ? 0 : vmscope_pool_row(&self->stacks, row.data, row.size);
    bytes_free(&row);
    return number;
}

/* -- threads -------------------------------------------------------------------------------------- */

static FlightThread *
add_thread(Chunk *self)
{
    for (size_t i = 0; i < self->thread_count; i++) {
        if (self->threads[i].ended && !self->threads[i].used) {
            return &self->threads[i];
        }
    }
    if (self->thread_count == self->thread_room) {
        size_t room = self->thread_room == 0 ? 64 : 2 * self->thread_room;
        FlightThread *threads = realloc(self->threads, room * sizeof *threads);
        if (threads == NULL) {
            return NULL;
        }
        self->threads = threads;
        self->thread_room = room;
    }
    return &self->threads[self->thread_count++];
}

uint32_t
vmscope_chunk_thread(Chunk *self, uint64_t state_id, unsigned long ident, int64_t native_id)
{
    FlightThread *thread = NULL;
    for (size_t i = 0; i < self->thread_count && thread == NULL; i++) {
        thread = self->threads[i].state_id == state_id ? &self->threads[i] : NULL;
    }
    if (thread == NULL) {
        thread = add_thread(self);
        if (thread == NULL) {
            return 0;
        }
        *thread = (FlightThread){.state_id = state_id, .ident = ident, .native_id = native_id};
    }
    thread->used = 1;
    return (uint32_t)(thread - self->threads) + 1;
}

static void
put_threads(const Chunk *self, uint64_t type, Bytes *to)
{
    size_t used = 0;
    for (size_t i = 0; i < self->thread_count; i++) {
        used += self->threads[i].used != 0;
    }
    put_number(to, type);
    put_number(to, used);
    for (size_t i = 0; i < self->thread_count; i++) {
        const FlightThread *thread = &self->threads[i];
        if (thread->used) {
            char unnamed[32];
            snprintf(unnamed, sizeof unnamed, "Thread %lld", (long long)thread->native_id);
            const char *name = thread->name != NULL                     ? thread->name
                               : thread->native_id == (int64_t)getpid() ? "MainThread"
                                                                        : unnamed;
            put_number(to, i + 1);
            put_string(to, name, strlen(name)); /* of the system: the same */
            put_number(to, (uint64_t)thread->native_id);
            put_string(to, name, strlen(name));
            put_number(to, i + 1); /* as Java counts them */
            put_number(to, 0);     /* its group */
            put_byte(to, 0);       /* it is not virtual */
        }
    }
}

/* -- the whole ------------------------------------------------------------------------------------ */

void
vmscope_chunk_clear(Chunk *self, int64_t now, int64_t time)
{
    self->events.size = 0;
    self->written = 0;
    self->start = now;
    self->start_time = time;
    vmscope_pool_clear(&self->symbols);
    vmscope_pool_clear(&self->packages);
    vmscope_pool_clear(&self->classes);
    vmscope_pool_clear(&self->methods);
    vmscope_pool_clear(&self->stacks);
    for (size_t i = 0; i < self->thread_count; i++) {
        FlightThread *thread = &self->threads[i];
        thread->used = 0;
        if (thread->ended) {
            free(thread->name);
            thread->name = NULL;
            thread->state_id = UINT64_MAX;
        }
    }
}

void
vmscope_chunk_free(Chunk *self)
{
    bytes_free(&self->events);
    vmscope_pool_free(&self->symbols);
    vmscope_pool_free(&self->packages);
    vmscope_pool_free(&self->classes);
    vmscope_pool_free(&self->methods);
    vmscope_pool_free(&self->stacks);
    for (size_t i = 0; i < self->thread_count; i++) {
        free(self->threads[i].name);
    }
    free(self->threads);
    memset(self, 0, sizeof *self);
}

uint64_t
vmscope_chunk_size(const Chunk *self)
{
    return self->written + self->events.size + vmscope_pool_size(&self->symbols) + vmscope_pool_size(&self->packages) +
           vmscope_pool_size(&self->classes) + vmscope_pool_size(&self->methods) + vmscope_pool_size(&self->stacks);
}

static void
put_names(Bytes *to, uint64_t type, const char *const *names, size_t count)
{
    put_number(to, type);
    put_number(to, count);
    for (size_t i = 0; i < count; i++) {
        put_number(to, i + 1);
        put_string(to, names[i], strlen(names[i]));
    }
}

#define LENGTH(array) (sizeof(array) / sizeof *(array))

void
vmscope_put_checkpoint(const Chunk *self, const uint32_t *types, Bytes *to)
{
    static const char *const frame_types[] = {"Interpreted", "Native"};
    static const char *const states[] = {"STATE_RUNNABLE", "STATE_SLEEPING", "STATE_PARKED", "STATE_IN_SYSTEM_CALL"};
    const struct {
        FlightType type;
        const Pool *pool;
    } pools[] = {{OF_SYMBOL, &self->symbols},
                 {OF_PACKAGE, &self->packages},
                 {OF_CLASS, &self->classes},
                 {OF_METHOD, &self->methods},
                 {OF_STACK_TRACE, &self->stacks}};
    size_t filled = 3;
    for (size_t i = 0; i < LENGTH(pools); i++) {
        filled += pools[i].pool->count > 0; /* jfr print fails at one without rows */
    }
    int threads = 0;
    for (size_t i = 0; i < self->thread_count; i++) {
        threads |= self->threads[i].used;
    }
    size_t at = begin_event(to, 1);
    put_number(to, (uint64_t)self->start);
    put_number(to, 0);                          /* its duration */
    put_number(to, 0);                          /* to the checkpoint before: there is none */
    put_byte(to, 1);                            /* flags: as jdk's own at the end of a chunk */
    put_number(to, filled - (threads ? 0 : 1)); /* pools */
    put_names(to, types[OF_FRAME_TYPE], frame_types, LENGTH(frame_types));
    put_names(to, types[OF_THREAD_STATE], states, LENGTH(states));
    if (threads) {
        put_threads(self, types[OF_THREAD], to);
    }
    for (size_t i = 0; i < LENGTH(pools); i++) {
        if (pools[i].pool->count > 0) {
            vmscope_pool_put(pools[i].pool, types[pools[i].type], to);
        }
    }
    end_event(to, at);
}

void
vmscope_put_header(const Chunk *self, int64_t now, uint64_t size, uint64_t checkpoint, uint64_t metadata, Bytes *to)
{
    put_bytes(to, "FLR", 4);
    put_word(to, 2, 2);
    put_word(to, 1, 2);
    put_word(to, size, 8);
    put_word(to, checkpoint, 8);
    put_word(to, metadata, 8);
    put_word(to, (uint64_t)self->start_time, 8);
    put_word(to, (uint64_t)(now - self->start), 8);
    put_word(to, (uint64_t)self->start, 8);
    put_word(to, TICKS, 8);
    put_word(to, 1, 4); /* generation 0: finished; 0, 0; numbers are compressed */
}
