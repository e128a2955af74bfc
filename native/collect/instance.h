/* SPDX-License-Identifier: Apache-2.0 */
/* The ftrace instance that is read, or its saved copy. */
#ifndef ETRACE_COLLECT_INSTANCE_H
#define ETRACE_COLLECT_INSTANCE_H

#include "etrace_format.h"

struct page_layout;

/* One CPU's ring buffer. */
struct cpu_buffer {
	int fd;
	int stats_fd; /* -1: there are none (a saved instance) */
	u32 number;
	u64 bytes; /* its capacity */
};

/* Open the directory that the options name and read the layout; ends the program with a reason. */
void instance_open(struct page_layout *layout);

/* Open the buffers of all possible CPUs, ordered by number; ends the program with a reason. */
size_t instance_open_buffers(struct cpu_buffer **buffers);

/*
 * How many records a CPU's buffer had no room for since it was made or emptied; false where that
 * cannot be read (a saved instance).
 */
bool instance_dropped(const struct cpu_buffer *buffer, u64 *n);

/* Percentage of a buffer that wakes a poll(); 0: any record does, or not known. */
unsigned int instance_wake_percent(void);

/* For messages. */
const char *instance_name(void);

#endif /* ETRACE_COLLECT_INSTANCE_H */
