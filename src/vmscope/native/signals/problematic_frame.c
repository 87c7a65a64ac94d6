/* Which agent's code a signal came in. All that is looked at then was written when the agent was loaded: where its code
 * is, and what it is called. */
#define _GNU_SOURCE
#include "signals/problematic_frame.h"
#include "jni/interface.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST_LIBRARIES 64
#define LONGEST_NAME 256 /* a file's */
#define STACK_WORDS 1024 /* of the stack, in which a return address into an agent's code is looked for */
#define WORDS_AT_ONCE 64
#define READER_WAIT 1000 /* ms that whoever reads the line gets to make room for it */

typedef struct {
    _Atomic uintptr_t begin, end; /* of its code; 0: free */
    uintptr_t base;
    char name[LONGEST_NAME];
} Code;

static Code codes[MOST_LIBRARIES];
/* The file's name of the library that this thread opens: its constructors run before it is known where its code is. */
static VMSCOPE_THREAD_LOCAL const char *opening;

/* -- when an agent is loaded ------------------------------------------------------------------------- */

static int
add(struct dl_phdr_info *info, size_t Py_UNUSED(size), void *wanted)
{
    const struct link_map *map = wanted;
    if (info->dlpi_addr != map->l_addr || strcmp(info->dlpi_name, map->l_name) != 0) {
        return 0;
    }
    const char *slash = strrchr(map->l_name, '/'), *name = slash == NULL ? map->l_name : slash + 1;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) {
            continue;
        }
        Code *code = codes, *last = &codes[MOST_LIBRARIES];
        while (code < last && code->begin != 0 && code->begin != begin) {
            code++;
        }
        size_t length = strlen(name);
        if (code < last && code->begin == 0 && length < sizeof code->name) {
            code->base = info->dlpi_addr;
            memcpy(code->name, name, length + 1);
            atomic_store(&code->end, begin + header->p_memsz);
            atomic_store(&code->begin, begin);
        }
    }
    return 1;
}

void
vmscope_open_problematic_frame(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    opening = name != NULL && strlen(name) < LONGEST_NAME ? name : NULL;
    if (opening != NULL) {
        vmscope_watch_agent_code();
    }
}

void
vmscope_add_problematic_frame(void *library)
{
    struct link_map *map;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0') { /* "": the program */
        (void)dl_iterate_phdr(add, map);
        vmscope_watch_agent_code();
    }
}

/* Whether it is a loaded library's code still. */
static int
is_loaded(struct dl_phdr_info *info, size_t Py_UNUSED(size), void *code)
{
    size_t length = strlen(((const Code *)code)->name), whole = strlen(info->dlpi_name);
    return info->dlpi_addr == ((const Code *)code)->base && whole >= length &&
           strncmp(info->dlpi_name + whole - length, ((const Code *)code)->name, length) == 0;
}

void
vmscope_check_agent_code(void)
{
    for (Code *code = codes; code < &codes[MOST_LIBRARIES]; code++) {
        if (code->begin != 0 && !dl_iterate_phdr(is_loaded, code)) {
            atomic_store(&code->begin, 0);
        }
    }
}

/* -- in the handler ---------------------------------------------------------------------------------- */

static const Code *
code_at(uintptr_t address)
{
    for (const Code *code = codes; code < &codes[MOST_LIBRARIES]; code++) {
        uintptr_t begin = atomic_load(&code->begin);
        if (begin != 0 && begin <= address && address < atomic_load(&code->end)) {
            return code;
        }
    }
    return NULL;
}

/* Whether this thread may have been called by an agent, or is its own. */
static int
may_be_agent(void)
{
    return jni_here == NULL ? PyGILState_GetThisThreadState() == NULL : jni_here->depth > 0 || jni_here->without_python;
}

/* The innermost word of the stack that is an address in an agent's code, or 0. It is read by the kernel, which does not
 * mind where the stack ends. */
static uintptr_t
caller(uintptr_t stack)
{
    uintptr_t words[WORDS_AT_ONCE], end = (stack & ~(uintptr_t)7) + STACK_WORDS * sizeof *words;
    for (stack &= ~(uintptr_t)7; stack < end; stack += sizeof words - stack % sizeof words) {
        size_t size = sizeof words - stack % sizeof words; /* never across a page's end */
        struct iovec to = {words, size}, from = {(void *)stack, size};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)size) {
            return 0;
        }
        for (size_t word = 0; word < size / sizeof *words; word++) {
            if (code_at(words[word]) != NULL) {
                return words[word];
            }
        }
    }
    return 0;
}

static char *
put(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

/* A file's name, of whatever bytes: what a terminal might obey, or take for another character, is a question mark. */
static char *
put_name(char *at, const char *name)
{
    for (; *name != '\0'; name++) {
        *at++ = ' ' <= *name && *name <= '~' ? *name : '?';
    }
    return at;
}

static char *
put_number(char *at, uintptr_t number, unsigned base)
{
    char digits[32], *digit = &digits[sizeof digits - 1];
    *digit = '\0';
    do {
        *--digit = "0123456789abcdef"[number % base];
    } while ((number /= base) != 0);
    return put(put(at, base == 16 ? "0x" : ""), digit);
}

static const char *
name_of(int signum)
{
    switch (signum) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGABRT:
        return "SIGABRT";
    case SIGFPE:
        return "SIGFPE";
    default:
        return "SIGILL";
    }
}

static uintptr_t
pc_of(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static uintptr_t
stack_of(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return context->uc_mcontext.sp;
#else
    return (uintptr_t)&context;
#endif
}

/* Where a handler that came first has passed the signal on to us: what that one interrupted. It stands above, on the
 * alternate stack, and says of that stack what vmscope's does. */
static const ucontext_t *
innermost(const ucontext_t *own)
{
    uintptr_t begin = (uintptr_t)own->uc_stack.ss_sp, end = begin + own->uc_stack.ss_size;
    uintptr_t at = (stack_of(own) + 7) & ~(uintptr_t)7;
    for (; at >= begin && at < end && end - at >= sizeof *own; at += 8) {
        const ucontext_t *other = (const ucontext_t *)at;
        if (other->uc_stack.ss_sp == own->uc_stack.ss_sp && other->uc_stack.ss_size == own->uc_stack.ss_size) {
            return other;
        }
    }
    return own;
}

void
vmscope_name_problematic_frame(int signum, const siginfo_t *info, const void *given)
{
    if (info->si_code <= 0 && info->si_pid != getpid()) {
        return; /* sent by another process, whatever runs here */
    }
    const ucontext_t *context = innermost(given);
    uintptr_t pc = pc_of(context);
    uintptr_t found = code_at(pc) != NULL ? pc : may_be_agent() ? caller(stack_of(context)) : 0;
    const Code *code = code_at(found);
    if (code == NULL && opening == NULL) {
        return;
    }
    char line[256 + LONGEST_NAME], *at = put(put(line, "vmscope: "), name_of(signum));
    at = put(put_number(put(at, " ("), (uintptr_t)signum, 16), ") at pc=");
    at = put(put_number(at, pc, 16), ", pid=");
    at = put(put_number(at, (uintptr_t)getpid(), 10), ", tid=");
    at = put_number(at, (uintptr_t)syscall(SYS_gettid), 10);
    if (code == NULL) {
        at = put(put_name(put(at, ", while the native agent is opened: C  ["), opening), "]\n");
    } else {
        at = put(put(at, found == pc ? ", in" : ", called from"), " the native agent: C  [");
        at = put(put_number(put(put_name(at, code->name), "+"), found - code->base, 16), "]\n");
    }
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, READER_WAIT) == 1) {
        (void)!write(STDERR_FILENO, line, (size_t)(at - line));
    }
}
