/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job object that has every process of the build, and reports each new one. Windows gives the
 * events of a process to one debugger only, so we get none of those that the build itself debugs;
 * the job does. A thread reads its messages.
 */
#ifndef WINDOWS_WATCH_H
#define WINDOWS_WATCH_H

#include <stdint.h>
#include <windows.h>

#include "trace/parameters.h"

struct watched {
	unsigned long pid;
	HANDLE process; /* NULL: it was gone */
	uint64_t time_ns;
	bool is_read;
	int n_empty; /* times that it had no command line */
	bool is_traced; /* the debug events had it */
	struct buffer image;
	struct parameters parameters;
	struct watched *next;
};

struct watch {
	HANDLE job;
	HANDLE port;
	HANDLE thread;
	CRITICAL_SECTION lock;
	struct watched *first, **end;
	bool wants_environment;
};

/* Watch a process that does not run yet. False when it cannot be put into a job. */
bool watch_begin(struct watch *watch, HANDLE process, bool wants_environment);
typedef void watch_call(void *context, struct watched *watched);
/* The debug events reported this process. */
void watch_traced(struct watch *watch, unsigned long pid);
/* End the thread, then call for each process that the debug events did not report, in order. */
void watch_end(struct watch *watch, watch_call *call, void *context);

#endif /* WINDOWS_WATCH_H */
