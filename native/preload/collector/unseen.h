/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that were executed without the library: which, and why. */
#ifndef ETRACE_PRELOAD_UNSEEN_H
#define ETRACE_PRELOAD_UNSEEN_H

#include "names.h"

/* Argument 2 of RING_INTENT: whether the library cannot be read there, or the socket heard of it. */
enum hidden { HIDDEN_NOT, HIDDEN_NO_LIBRARY, HIDDEN_OUTSIDE };

/* One execution; `interpreter` becomes the program that the kernel loaded for `path`. */
void unseen_add(const struct etrace_text *path, int hidden, struct name *interpreter);

/* One that was loaded and told nothing: it makes its own system calls. */
void unseen_add_silent(const char *path);

/* One that cannot open the shared memory: it is in another namespace. */
void unseen_add_outside(const struct etrace_text *path);

/* Say each kind once, with its names. */
void unseen_report(void (*warn)(const char *format, ...));

u64 unseen_count(void);

/* Of these, those that may have started programs of which nothing is known. */
u64 unseen_untraced(void);

#endif /* ETRACE_PRELOAD_UNSEEN_H */
