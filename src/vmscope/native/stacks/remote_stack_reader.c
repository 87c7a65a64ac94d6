/* stack_reader.c once more, for another process's memory. */
#define VMSCOPE_REMOTE
#include "stacks/stack_reader.c"
