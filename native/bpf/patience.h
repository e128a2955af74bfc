/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_BPF_PATIENCE_H
#define ETRACE_BPF_PATIENCE_H

/*
 * Opens a name below a root directory, or below that of this process if `root` is -1. Returns -1 when it
 * cannot, or when a file system does not answer.
 */
int open_in_time(const char *text, int flags, int root);

#endif
