/*
 * shell.h - a program as a line of the shell: check it, start it.
 *
 * Threads: any.
 */
#ifndef BUS_SHELL_H
#define BUS_SHELL_H

#include <sys/types.h>

#include "base/error.h"

/* Can the program of this line be run, as far as that is known without running it? ERR_USAGE: no. */
must_check ErrorCode shell_check(const char *line, Error *reterr);
/* The line, with exec where the shell can become the program: then signals reach the program alone, and the exit status after SIGTERM is its
 * own. The caller frees it. */
char *shell_line(const char *line);
/* Start it in a process group of its own, with no signal blocked or ignored, and with no file of ours but these, as 0, 1, 2 and so on. 0, or an
 * errno. */
int shell_spawn(const char *line, char **environment, const int *fds, int count, pid_t *ret_pid);

/* What runs, by the process id of its group, for a process that ends on the spot. Between shell_began() and shell_ended() it must not be reaped. */
void shell_began(pid_t pid);
void shell_ended(pid_t pid);
/* Kill all of it. May be called by a signal handler. */
void shell_kill_all(void);

#endif
