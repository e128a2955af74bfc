/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that were executed without the library: which, and why. */
#ifndef ETRACE_PRELOAD_UNSEEN_H
#define ETRACE_PRELOAD_UNSEEN_H

#include "names.h"

/* One execution; `interpreter` becomes the program that the kernel loaded for `path`. */
void unseen_add(const struct etrace_text *path, struct name *interpreter);

/* Say each kind once, with its names. */
void unseen_report(void (*warn)(const char *format, ...));

u64 unseen_count(void);

#endif /* ETRACE_PRELOAD_UNSEEN_H */
