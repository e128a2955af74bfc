/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_FILTER_H
#define ETRACE_PTRACE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "task/calls.h"

/*
 * Install the filter in the calling process, for good and for all its descendants. Without a tracer
 * every call it selects then fails with ENOSYS. Returns 0 or -errno.
 */
int filter_install(bool mounts, bool thread_names);

/* What the filter says of a call: its kind, or CALL_NONE where it does not stop. */
enum call filter_classify(uint32_t audit_arch, uint64_t number, const uint64_t *args);

#endif /* ETRACE_PTRACE_FILTER_H */
