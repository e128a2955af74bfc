/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that cannot open the shared memory say by a socket that they were loaded. */
#ifndef ETRACE_PRELOAD_OUTSIDE_FILE_H
#define ETRACE_PRELOAD_OUTSIDE_FILE_H

#include "ring_file.h"

/* Make the socket; `variable` is the value that the library gets. */
void outside_open(const char *variable);

/* To wait for; -1 when there is none. */
int outside_fd(void);

/* Hand on a record for each program that has said so. */
void outside_take(void (*receive)(struct event *event));

#endif /* ETRACE_PRELOAD_OUTSIDE_FILE_H */
