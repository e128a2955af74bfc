/* SPDX-License-Identifier: Apache-2.0 */
/* The response files that were read: what `.nfsdb.rsp` is made of (docs/compilations.md). */
#ifndef ETRACE_PTRACE_SAVED_H
#define ETRACE_PTRACE_SAVED_H

#include <stddef.h>

#include "etrace_format.h"

struct saved;

/* One file of a command; NULL when there are too many. */
struct saved *saved_make(s64 upid, const char *path, size_t path_len, const char *text, size_t len);

/* It goes into the side file. */
void saved_keep(struct saved *saved);

/* Write the side file, when there is anything to write. */
void saved_put(void);

#endif /* ETRACE_PTRACE_SAVED_H */
