/* Names in folders where others may make some, as in /tmp: looked at without a wait (shared_folder.c). All async-signal-safe. */
#ifndef VMSCOPE_NAMED_H
#define VMSCOPE_NAMED_H

#include <sys/stat.h>
#include <sys/types.h>

#define LONGEST_NAMED 4096 /* bytes of a path, with its NUL */

/* A descriptor of what a folder has under this name, on the folder's own mount; -1 with errno: EXDEV where a file system
 * is mounted there, ELOOP for a symbolic link. */
int vmscope_open_beneath(int folder, const char *name, int flags);

/* The same for a path: its folder is trusted, its last name may be anybody's. */
int vmscope_open_named(const char *path, int flags);

/* The same, in one system call where nothing has the name, as most often. */
int vmscope_find_named(const char *path, int flags);

/* What lstat says of such a path; -1 with errno. */
int vmscope_stat_named(const char *path, struct stat *found);

/* What lstat says of a name in a folder; -1 with errno. */
int vmscope_stat_beneath(int folder, const char *name, struct stat *found);

/* Appends the number to the text; snprintf is not for signal handlers. */
void vmscope_append_number(char *text, int number);

#endif
