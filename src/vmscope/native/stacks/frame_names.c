/* The names of frames. */
#include "stacks/frame_names.h"

#ifdef HAS_STACKS

#include "stacks/memory.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NAME 1000                              /* characters of a function's name */
#define MOST_PATH 4096                              /* and of a file's */
#define MOST_TEXT (4 * (MOST_NAME + MOST_PATH) + 2) /* bytes of both */
#define SPARE 128                                   /* codes and places that there is always room for */
#define SPARE_TEXT (8 * MOST_TEXT)
#ifdef VMSCOPE_REMOTE
#define LARGEST (1 << 22) /* as below: each piece is a call of the kernel's, and no more than these are waited for */
#define PIECE 4096
#else
#define LARGEST (1 << 26) /* code units, and bytes of a line table: no code is that long */
#define PIECE 256         /* what is read at once */
#endif
#define UNKNOWN "?"

/* -- room ----------------------------------------------------------------------------------------- */

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

static size_t
mix(uint64_t word)
{
    word ^= word >> 33;
    word *= 0xff51afd7ed558ccdull;
    return (size_t)(word ^ word >> 33);
}

static size_t
code_hash(uintptr_t address)
{
    return mix(address >> 4);
}

static size_t
place_hash(uint32_t code, int offset)
{
    return mix((uint64_t)code << 32 | (uint32_t)offset);
}

/* Where the newest code at this address is found in the index, or would be. */
static uint32_t *
code_slot(const Names *self, uintptr_t address)
{
    for (size_t at = code_hash(address);; at++) {
        uint32_t *slot = &self->code_index[at & self->code_mask];
        if (*slot == 0 || self->codes[*slot - 1].print.address == address) {
            return slot;
        }
    }
}

static uint32_t *
place_slot(const Names *self, uint32_t code, int offset)
{
    for (size_t at = place_hash(code, offset);; at++) {
        uint32_t *slot = &self->place_index[at & self->place_mask];
        if (*slot == 0 || (self->places[*slot - 1].code == code && self->places[*slot - 1].offset == offset)) {
            return slot;
        }
    }
}

/* An empty index in which this many take half the room at most; 1 where there is one already, 0 without memory. */
static int
make_index(uint32_t **index, size_t *mask, size_t count, int *made)
{
    size_t size = 512;
    *made = 0;
    while (size < 2 * count) {
        size *= 2;
    }
    if (*index != NULL && size <= *mask + 1) {
        return 1;
    }
    uint32_t *larger = calloc(size, sizeof *larger);
    if (larger == NULL) {
        return 0;
    }
    free(*index);
    *index = larger;
    *mask = size - 1;
    *made = 1;
    return 1;
}

int
vmscope_reserve_names(Names *self)
{
    int made;
    if (!grow(&self->codes, &self->code_size, self->code_count + SPARE, sizeof *self->codes) ||
        !grow(&self->places, &self->place_size, self->place_count + SPARE, sizeof *self->places) ||
        !grow(&self->text, &self->text_size, self->text_length + SPARE_TEXT, 1) ||
        !make_index(&self->code_index, &self->code_mask, self->code_count + SPARE, &made)) {
        return 0;
    }
    for (size_t i = 0; made && i < self->code_count; i++) {
        *code_slot(self, self->codes[i].print.address) = (uint32_t)i + 1;
    }
    if (!make_index(&self->place_index, &self->place_mask, self->place_count + SPARE, &made)) {
        return 0;
    }
    for (size_t i = 0; made && i < self->place_count; i++) {
        *place_slot(self, self->places[i].code, self->places[i].offset) = (uint32_t)i + 1;
    }
    return 1;
}

void
vmscope_free_names(Names *self)
{
    free(self->codes);
    free(self->places);
    free(self->text);
    free(self->code_index);
    free(self->place_index);
    memset(self, 0, sizeof *self);
}

/* -- strings -------------------------------------------------------------------------------------- */

static char *
put_character(char *to, uint32_t character)
{
    if (character < 0x80) {
        *to++ = (char)character;
        return to;
    }
    if (character < 0x800) {
        *to++ = (char)(0xC0 | character >> 6);
    } else {
        if (character < 0x10000) {
            *to++ = (char)(0xE0 | character >> 12);
        } else {
            *to++ = (char)(0xF0 | (character >> 18 & 7));
            *to++ = (char)(0x80 | (character >> 12 & 63));
        }
        *to++ = (char)(0x80 | (character >> 6 & 63));
    }
    *to++ = (char)(0x80 | (character & 63));
    return to;
}

/* Appends a str of this many characters at most, without its NULs; where it stands. There is room. */
static size_t
copy_string(Names *self, uintptr_t string, size_t most)
{
    StringHead head;
    uint32_t piece[PIECE];
    size_t begin = self->text_length;
    char *to = self->text + begin;
    if (!vmscope_load_bytes(&head, string, STRING_HEAD_SIZE) || !STRING_IS_COMPACT(&head) || STRING_LENGTH(&head) < 0 ||
        (STRING_KIND(&head) != 1 && STRING_KIND(&head) != 2 && STRING_KIND(&head) != 4)) {
        memcpy(to, UNKNOWN, sizeof UNKNOWN);
        self->text_length += sizeof UNKNOWN;
        return begin;
    }
    uintptr_t from = string + STRING_DATA(STRING_IS_ASCII(&head));
    size_t length = (size_t)STRING_LENGTH(&head), left = length < most ? length : most, kind = STRING_KIND(&head);
    while (left > 0) {
        size_t count = left < PIECE ? left : PIECE;
        if (!vmscope_load_bytes(piece, from, count * kind)) {
            break;
        }
        for (size_t i = 0; i < count; i++) {
            uint32_t character = kind == 1   ? ((unsigned char *)piece)[i]
                                 : kind == 2 ? ((uint16_t *)piece)[i]
                                             : piece[i];
            to = character == 0 ? to : put_character(to, character);
        }
        from += count * kind;
        left -= count;
    }
    *to++ = '\0';
    self->text_length = (size_t)(to - self->text);
    return begin;
}

/* -- lines ---------------------------------------------------------------------------------------- */

/* What an object of variable size begins with. */
typedef struct {
    int64_t references;
    uintptr_t type;
    int64_t size;
} SizedHead;

#define BYTES_DATA (sizeof(SizedHead) + sizeof(int64_t)) /* behind the hash */

/* A code object's line table, read byte by byte: an entry begins with a byte of which the highest bit is set. */
typedef struct {
    uintptr_t next;
    size_t left; /* that are still to be read */
    size_t at, count;
    unsigned char piece[PIECE];
} Table;

/* The next byte; -1: there is none. */
static int
peek(Table *table)
{
    if (table->at == table->count) {
        table->at = 0;
        table->count = table->left < PIECE ? table->left : PIECE;
        if (table->count == 0 || !vmscope_load_bytes(table->piece, table->next, table->count)) {
            table->count = table->left = 0;
            return -1;
        }
        table->next += table->count;
        table->left -= table->count;
    }
    return table->piece[table->at];
}

static int
next_byte(Table *table)
{
    int byte = peek(table);
    table->at += byte >= 0;
    return byte;
}

static int
next_signed(Table *table)
{
    unsigned value = 0, shift = 0;
    int byte;
    do {
        byte = next_byte(table);
        value |= byte < 0 ? 0 : (unsigned)(byte & 63) << shift;
        shift += 6;
    } while (byte >= 0 && byte & 64 && shift < 30);
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

enum { SHORT_FORMS = 10, ONE_LINE_FORMS = 13, LONG_FORM = 15 };

/* The line of an instruction; the function's first where it has none. */
static int
find_line(const CodePrint *print, int offset)
{
    SizedHead head;
    Table table = {.next = print->lines + BYTES_DATA};
    int line = print->first_line, byte;
    int64_t end = 0;
    if (offset < 0 || !vmscope_load_bytes(&head, print->lines, sizeof head) || head.size < 0 || head.size > LARGEST) {
        return print->first_line;
    }
    table.left = (size_t)head.size;
    while ((byte = next_byte(&table)) >= 0) {
        int form = byte >> 3 & 15;
        if (form >= SHORT_FORMS && form < ONE_LINE_FORMS) {
            line += form - SHORT_FORMS;
        } else if (form >= ONE_LINE_FORMS && form < LONG_FORM) {
            line += next_signed(&table);
        }
        end += 2 * ((byte & 7) + 1);
        if (offset < end) {
            return form == LONG_FORM ? print->first_line : line;
        }
        while ((byte = peek(&table)) >= 0 && byte < 128) { /* columns */
            table.at++;
        }
    }
    return print->first_line;
}

/* -- code objects --------------------------------------------------------------------------------- */

static int
is_code(const SizedHead *head, const CodeHead *code)
{
    int64_t references = head->references;
    if (REFERENCES_HAVE_FLAGS) {
        if (references >> 32 & 0xFFFF) {
            return 0;
        }
        references &= 0xFFFFFFFF;
    }
    return head->type == CODE_TYPE && references > 0 && references < (int64_t)1 << 33 && head->size > 0 &&
           head->size < LARGEST && CODE_FIRST_LINE(code) >= 0 && CODE_FIRST_TRACEABLE(code) >= 0;
}

static int
read_code(uintptr_t address, CodePrint *print, int *first_traceable)
{
    CodeHead code;
    SizedHead head;
    if (!vmscope_load_bytes(&code, address, CODE_SIZE)) {
        return 0;
    }
    memcpy(&head, &code, sizeof head);
    if (!is_code(&head, &code)) {
        return 0;
    }
    memset(print, 0, sizeof *print);
    print->address = address;
    print->qualname = CODE_WORD(&code, qualname);
    print->filename = CODE_WORD(&code, filename);
    print->lines = CODE_WORD(&code, linetable);
    print->constants = CODE_WORD(&code, consts);
    print->names = CODE_WORD(&code, names);
    print->size = head.size;
    print->version = CODE_VERSION(&code);
    print->first_line = CODE_FIRST_LINE(&code);
    *first_traceable = CODE_FIRST_TRACEABLE(&code);
    return !CODE_NEEDS_HASHES || (vmscope_load(print->qualname + STRING_HASH, &print->qualname_hash) &&
                                  vmscope_load(print->filename + STRING_HASH, &print->filename_hash));
}

static NameOutcome
find_code(Names *self, uintptr_t address, uint32_t *found, int *fresh)
{
    CodePrint print;
    int first_traceable;
    if (!read_code(address, &print, &first_traceable)) {
        return TORN;
    }
    uint32_t *slot = code_slot(self, address);
    if (*slot != 0 && memcmp(&self->codes[*slot - 1].print, &print, sizeof print) == 0) {
        *found = *slot - 1;
        return NAMED;
    }
    if (self->code_count == self->code_size || self->text_size - self->text_length < MOST_TEXT) {
        return NO_ROOM;
    }
    CodeName *name = &self->codes[self->code_count];
    name->print = print;
    name->first_traceable = first_traceable;
    name->qualname = copy_string(self, print.qualname, MOST_NAME);
    name->filename = copy_string(self, print.filename, MOST_PATH);
    if (vmscope_has_failed()) {
        return TORN;
    }
    *found = (uint32_t)self->code_count++;
    *slot = *found + 1;
    *fresh = 1;
    return NAMED;
}

NameOutcome
vmscope_name_frame(Names *self, const Frame *frame, uint32_t *place, int *fresh)
{
    uint32_t code;
    *fresh = 0;
    NameOutcome outcome = find_code(self, frame->code, &code, fresh);
    if (outcome != NAMED) {
        return outcome;
    }
    const CodeName *name = &self->codes[code];
    int64_t offset = (int64_t)(frame->instruction - (frame->code + CODE_SIZE));
    if (offset < -2 || offset > 2 * name->print.size || offset & 1) {
        return TORN;
    }
    if (frame->owner != FRAME_OWNED_BY_GENERATOR && offset < 2 * name->first_traceable) {
        return INCOMPLETE;
    }
    uint32_t *slot = place_slot(self, code, (int)offset);
    if (*slot == 0) {
        if (self->place_count == self->place_size) {
            return NO_ROOM;
        }
        self->places[self->place_count] = (Place){code, (int)offset, find_line(&name->print, (int)offset)};
        if (vmscope_has_failed()) {
            return TORN;
        }
        *slot = (uint32_t)++self->place_count;
        *fresh = 1;
    }
    *place = *slot - 1;
    return NAMED;
}

NameOutcome
vmscope_name_stack(Names *self, const Stack *stack, size_t limit, SnapshotFrame *rows, size_t *count, int *cut)
{
    *count = 0;
    *cut = stack->cut;
    for (size_t i = 0; i < stack->count; i++) {
        const Frame *frame = &stack->frames[i];
        uint32_t place;
        int fresh;
        if (IS_ENTRY(frame->owner)) {
            continue;
        }
        if (*count == limit) {
            *cut = 1;
            break;
        }
        NameOutcome outcome = vmscope_name_frame(self, frame, &place, &fresh);
        if (outcome == NO_ROOM) {
            return NO_ROOM;
        }
        if (outcome == INCOMPLETE && (CALLERS_MAY_BE_INCOMPLETE || *count == 0)) {
            continue;
        }
        if (outcome != NAMED || (fresh && !vmscope_is_there(stack, frame))) {
            return TORN;
        }
        rows[(*count)++] = (SnapshotFrame){frame->address, frame->code, self->places[place].offset, place};
    }
    return NAMED;
}

#endif
