/* SPDX-License-Identifier: GPL-2.0-only */
/* The names of an execution. */
#ifndef ETRACE_EXEC_NAME_H
#define ETRACE_EXEC_NAME_H

#include "record/scratch.h"
#include "task/entry.h"

/* The paths PI and PP; `path`, `third` and the first half of `other` of space hold them. Sleeps. */
void etrace_exec_names(const struct etrace_exec *exec, struct etrace_scratch *space,
		       struct etrace_text *interpreter, struct etrace_text *program);

#endif /* ETRACE_EXEC_NAME_H */
