/* SPDX-License-Identifier: Apache-2.0 */
/* The debug events of the build, from its first process to the end of the last one. */
#ifndef WINDOWS_LOOP_H
#define WINDOWS_LOOP_H

#include "trace/record.h"
#include "trace/watch.h"

struct loop {
	struct recorder *recorder;
	struct processes *processes;
	struct watch *watch;
	unsigned long root; /* process id of the command */
	bool has_root_ended;
	DWORD status; /* of the command, once it has ended */
	uint64_t root_end_ns;
	bool has_said_waiting;
};

/* Until no process is left, or those that are left may be left. */
void loop_run(struct loop *loop);

#endif /* WINDOWS_LOOP_H */
