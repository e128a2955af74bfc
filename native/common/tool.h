/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers, linkers, archivers and launchers, by their names. */
#ifndef ETRACE_TOOL_H
#define ETRACE_TOOL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether a program's name of `len` bytes, less a version, is a tool's, or ends in one after the
 * prefix of a cross tool.
 */
bool tool_is_named(const char *program, size_t len);

#endif /* ETRACE_TOOL_H */
