/* SPDX-License-Identifier: Apache-2.0 */
/* Where the preload libraries are, and which programs did not load one. */
#ifndef ETRACE_PRELOAD_LIBRARY_H
#define ETRACE_PRELOAD_LIBRARY_H

#include <stdbool.h>

#include "names.h"

/* The folder of the libraries; NULL: the one beside this program. Ends the program without one. */
void library_find(const char *folder);

/* What LD_PRELOAD has to name. */
const char *library_name(void);

/* Whether there is one for programs of the other word size. */
bool library_has_other_size(void);

/* Remove what was made for this capture. */
void library_release(void);

/* ---- unseen.c: programs that were executed without the library: which, and why ---- */

/* Argument 2 of RING_INTENT: whether the library cannot be read there, or what the socket reported. */
enum hidden { HIDDEN_NOT, HIDDEN_NO_LIBRARY, HIDDEN_OUTSIDE, HIDDEN_LIMITED };

/* One execution; `interpreter` becomes the program that the kernel loaded for `path`. */
void unseen_add(pid_t pid, const struct etrace_text *path, int hidden, struct name *interpreter);

/* One that was loaded and recorded nothing: it makes its own system calls. */
void unseen_add_silent(const char *path);

/* One without the shared memory: it is in another namespace, or HIDDEN_LIMITED: has no room for it. */
void unseen_add_outside(pid_t pid, const struct etrace_text *path, int hidden);

/* Warn once for each kind, with the names. */
void unseen_report(void);

u64 unseen_count(void);

/* Of these, those that may have started programs of which nothing is known. */
u64 unseen_untraced(void);

#endif /* ETRACE_PRELOAD_LIBRARY_H */
