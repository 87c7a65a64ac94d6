/* Whose code a signal that ends the process came in, where that is a native agent's. */
#ifndef VMSCOPE_PROBLEMATIC_FRAME_H
#define VMSCOPE_PROBLEMATIC_FRAME_H

#include "native.h"

#include <signal.h>

/* On the thread that opens it: the library at `path` is being opened; NULL: it has been. */
void vmscope_open_problematic_frame(const char *path);
/* With the GIL: from now on the code of this library, as dlopen gave it, is an agent's. */
void vmscope_add_problematic_frame(void *library);
/* With the GIL, after a library was closed: forgets those that are gone. */
void vmscope_check_agent_code(void);
/* In a signal's handler: a line on standard error that names the agent whose code it is, or that called that code. */
void vmscope_name_problematic_frame(int signum, const siginfo_t *info, const void *context);
/* Handlers for signals that end the process from now on, whether or not there is a region. (crash_handler.c) */
void vmscope_watch_agent_code(void);

#endif
