/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command and what outlives it, for a tracer that need not wait at each step of the build. This
 * process is the subreaper of the build: whatever loses its parent becomes its child, and so it learns
 * how that ends and when all have ended.
 */
#ifndef ETRACE_CAPTURE_SUPERVISE_H
#define ETRACE_CAPTURE_SUPERVISE_H

#include <stdbool.h>
#include <sys/types.h>

#include "etrace_format.h"
#include "capture/capture.h"

struct supervised {
	void (*forking)(void); /* the next child is the command; or NULL */
	void (*prepare)(void); /* in the command's process, before it executes; or NULL */
	void (*start)(pid_t root, u64 time_ns); /* the command runs */
	void (*end)(pid_t pid, int wait_status); /* a child of this process has ended; or NULL */
	void (*tick)(u64 now); /* every few milliseconds, or when `fd` has something to read */
	void (*kill)(void); /* a second signal asks for the end of the whole build */
	size_t (*n_live)(void); /* processes that the records show; seldom called */
	void (*drain)(void); /* the last of these: nothing is recorded from here on */
	int fd; /* -1: none */
};

/* Start the command. Returns 0, or the exit status when it cannot be started. */
int supervise_start(const struct supervised *parts);

/* Until the command and, for a moment or with --wait-all forever, what it left have ended. */
void supervise_run(void);

/* The wait status of the command. */
int supervise_status(void);

/* How it ended. */
enum ending supervise_ending(void);

/* Whether the parents of a process lead to this one, the subreaper. */
bool supervise_is_of_build(pid_t pid);

/* Kill a process if it is of the build, and no other that may get its number meanwhile. */
void supervise_kill(pid_t pid);

#endif /* ETRACE_CAPTURE_SUPERVISE_H */
