/* frame_names.c once more, for another process's memory. */
#define VMSCOPE_REMOTE
#include "stacks/frame_names.c"
