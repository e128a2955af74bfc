/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers, linkers, archivers and launchers, by their names. */
#ifndef ETRACE_PTRACE_TOOL_H
#define ETRACE_PTRACE_TOOL_H

#include <stdbool.h>

#include "etrace_format.h"

/* Whether a program's name, less a version, is a tool's, or ends in one after the prefix of a cross tool. */
bool tool_is_named(const struct etrace_text *program);

#endif /* ETRACE_PTRACE_TOOL_H */
