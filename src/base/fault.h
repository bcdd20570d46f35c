/*
 * fault.h - named points at which tests inject failures. Compiled out without -Dfaults=true.
 *
 *     if (FAULT("pg.commit.before")) return fail(reterr, ERR_UNAVAILABLE, "fault at pg.commit.before");
 *
 * The fault loop arms the n-th pass over any point, runs the test, checks its invariants, and goes on with n + 1
 * until a run meets no fault. PAWL_FAULT=name:action[:count[:skip]] arms one point in a child process: fail, or kill
 * (SIGKILL to itself), `count` times (default 1) after `skip` passes (default 0). "process.*" stands for all points
 * that begin so.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>

#ifdef PAWL_FAULTS
#define FAULT(name)       fault_hit(name)
#define FAULT_NAMED(name) fault_hit_named(name)
#else
#define FAULT(name)       false
#define FAULT_NAMED(name) false
#endif

bool fault_hit(const char *name);       /* name must live for ever: a literal */
bool fault_hit_named(const char *name); /* likewise, but no point of the fault loop: fails only when armed by name */
/* Each arm replaces the one before. */
void        fault_arm_nth(long n); /* the n-th pass from now fails, counted over all points; 0 disarms */
void        fault_arm(const char *name, long count);
bool        fault_was_hit(void); /* since the last arm */
const char *fault_last(void);    /* its name, for messages; NULL: none was hit */

#endif
