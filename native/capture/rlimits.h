/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of resources, setrlimit(2): a program of etrace raises its own as far as it may, and the
 * command gets the original ones. A program that becomes another one of etrace leaves them in a
 * variable of the environment, which the command does not get.
 */
#ifndef ETRACE_CAPTURE_RLIMITS_H
#define ETRACE_CAPTURE_RLIMITS_H

#include <sys/resource.h>

#define LIMITS_VARIABLE "ETRACE_LIMITS" /* etrace/capture/limits.py reads it, too */

/* Note the original limits, which the variable has or else this process, and raise them. */
void limits_raise(void);

/* End the program, before anything is written, if a trace of any size cannot be made. */
void limits_check(void);

/* In the process of the command, right before it executes. */
void limits_restore(void);

/* Leave the original limits to the program that this one becomes. */
void limits_hand_on(void);

/* Why fewer than `needed` of a resource are too few here; NULL when there are enough. */
const char *limits_lack(int resource, rlim_t needed);

/* What follows the reason of a failed call when a limit is to blame; else "". */
const char *limits_blame(int error);

#endif /* ETRACE_CAPTURE_RLIMITS_H */
