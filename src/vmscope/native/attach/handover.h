/* The sockets' way from one I/O thread to the next, past the fork for which an I/O thread ends (handover.c). */
#ifndef VMSCOPE_HANDOVER_H
#define VMSCOPE_HANDOVER_H

#include <stddef.h>
#include <sys/types.h>

/* A descriptor of vmscope's, and which file it is: the program may close it, and have another under its number. -1: none. */
typedef struct {
    int fd;
    dev_t device;
    ino_t inode;
} Socket;

void vmscope_own(Socket *self, int fd);
int vmscope_owns(const Socket *self);
void vmscope_close_own(Socket *self); /* where it is ours */

#define MAX_HANDED_OVER 65 /* sockets: that which accepts, and its connections */

/* The end that the program's table has, and the one that sends, which the I/O thread has; while there is none, it is in flight. */
extern Socket vmscope_handover_end, vmscope_handover_sender;

/* In the program's table, on one of its threads: makes both where they are not there, or not ours any more. True where they
 * were, and with them what is in flight. */
int vmscope_handover_prepare(void);

/* A descriptor table of the thread's own, with nothing in it but that end. False where the kernel cannot do that. */
int vmscope_handover_unshare(void);

/* Puts the sender and this many sockets in flight; the caller closes its descriptors of them. False where that fails. */
int vmscope_handover_send(Socket *const *sockets, size_t count);

/* Takes them from there: the same ones, under new numbers. False where that fails, and then there is none. */
int vmscope_handover_receive(Socket *const *sockets, size_t count);

#endif
