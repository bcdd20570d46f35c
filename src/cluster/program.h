/*
 * program.h - run one of PostgreSQL's programs to its end, within a deadline, as the user that owns the server.
 *
 * Invariants
 *   1. The program inherits nothing but three descriptors: standard input is empty, output and errors are captured. So
 *      no lock of ours lives on in a server that it leaves behind.
 *   2. It has a session of its own (Ctrl-C in our terminal does not reach it), no blocked signals, a small environment
 *      in English and umask 077. When the deadline passes, its whole process group is killed; when the
 *      thread that waits for it dies, it gets SIGTERM.
 * Threads: any. Between fork and exec only async-signal-safe calls are made.
 */
#ifndef CLUSTER_PROGRAM_H
#define CLUSTER_PROGRAM_H

#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

typedef struct {
    uid_t       uid;
    gid_t       gid;
    const char *name;
} Account;

typedef struct {
    const char *const *argv;      /* argv[0] is a path; NULL ends the list */
    const char        *directory; /* where it runs */
    Account            account;   /* whom it runs as; root may choose, everyone else is himself */
    const char        *variable;  /* "NAME=value", one more in its environment; NULL: none */
} Program;

/*
 * OK: it ended with status 0. ERR_TIMEOUT: killed at the deadline. ERR_DENIED: the account may not enter the directory.
 * ERR_UNAVAILABLE: it failed; the error quotes its complaint. ret_output holds what it wrote in every case.
 */
must_check ErrorCode program_run(const Program *program, Deadline deadline, Text *ret_output, Error *reterr);

/*
 * The line of an output or of a server log that says what went wrong: the first one with a severity (PANIC, FATAL,
 * error; what follows are consequences), without what stands before it; else the last line; else "". The result lives
 * in the arena.
 */
const char *program_complaint(const char *output, Arena *arena);

#endif
