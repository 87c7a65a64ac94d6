/* What frames are called: function, file and line, read from their code objects as memory, and kept as text.
 *
 * Nothing keeps a code object alive. One is known by its address and by what stands in it, so that another which takes
 * its place is another. What was read of a code object that was being freed may be wrong: so whoever finds a name
 * `fresh` looks whether the frame is still there (stack_reader.h), and reads the stack again where it is not. A name that is
 * met again is right: it is the same code object still, and so has been there when it was read. */
#ifndef VMSCOPE_NAMES_H
#define VMSCOPE_NAMES_H

#include "stacks/stack_reader.h"

#ifdef HAS_STACKS

/* What distinguishes a code object from another at the same address. */
typedef struct {
    uintptr_t address, qualname, filename, lines, constants, names;
    uintptr_t qualname_hash, filename_hash; /* of CPython 3.11, where rebuilt code gets the very same addresses */
    int64_t size;
    uint32_t version;
    int32_t first_line;
} CodePrint;

typedef struct {
    CodePrint print;
    size_t qualname, filename; /* where they stand in the text */
    int first_traceable;
} CodeName;

typedef struct {
    uint32_t code; /* its place among the codes */
    int offset;    /* of the instruction, in bytes */
    int line;
} Place;

typedef struct {
    CodeName *codes;
    Place *places;
    char *text; /* strings of UTF-8, surrogates as three bytes each, with a NUL at the end of each */
    uint32_t *code_index, *place_index; /* by hash: one more than the number of the code or place; 0: free */
    size_t code_count, code_size, place_count, place_size, text_length, text_size, code_mask, place_mask;
} Names;

/* A frame that has names. */
typedef struct {
    uintptr_t frame, code; /* addresses, which say whether a frame is still the same */
    int offset;            /* of the instruction, in bytes */
    uint32_t place;        /* where it has names */
} SnapshotFrame;

typedef enum {
    NAMED,
    TORN,       /* it is not a code object, or has changed meanwhile */
    INCOMPLETE, /* the frame does not execute yet, and is not to be seen */
    NO_ROOM     /* before vmscope_reserve_names is called again */
} NameOutcome;

/* Room for what a stack may have; 0 without memory. All else of it is done under a guard, and allocates nothing. */
int vmscope_reserve_names(Names *self);

/* The place of a frame, and whether anything of it was read just now. */
NameOutcome vmscope_name_frame(Names *self, const Frame *frame, uint32_t *place, int *fresh);

/* Those of a stack that was read just now, without the frames of C; `limit` of them at most, and whether there are more.
 * There is room for them. */
NameOutcome
vmscope_name_stack(Names *self, const Stack *stack, size_t limit, SnapshotFrame *rows, size_t *count, int *cut);

void vmscope_free_names(Names *self);

static inline const char *
vmscope_qualname(const Names *self, uint32_t place)
{
    return self->text + self->codes[self->places[place].code].qualname;
}

static inline const char *
vmscope_filename(const Names *self, uint32_t place)
{
    return self->text + self->codes[self->places[place].code].filename;
}

#endif
#endif
