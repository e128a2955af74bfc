/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_BPF_PATIENCE_H
#define ETRACE_BPF_PATIENCE_H

#include "capture/rights.h"

/* As rights_open(), but -1 also when a file system does not answer. */
int open_in_time(const struct rights *rights, const char *text, int flags, int root);

#endif
