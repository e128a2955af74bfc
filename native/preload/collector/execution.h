/* SPDX-License-Identifier: Apache-2.0 */
/* Executed programs -> New_proc. */
#ifndef ETRACE_PRELOAD_EXECUTION_H
#define ETRACE_PRELOAD_EXECUTION_H

#include "process.h"

/* A program with the library tells that it was loaded. */
void execution_put_start(struct process *process, struct event *event);

/* A compiler tells what a response file holds. */
void execution_put_response(const struct process *process, const struct event *event);

/* A program is about to be executed; whether it was is told by what follows. Takes the event. */
void execution_expect(struct process *process, struct event *event);

/* It was not. */
void execution_forget(struct process *process);

/* It was, without the library: nothing else followed. */
void execution_settle(struct process *process);

/* Objects that the dynamic linker opened later. */
void execution_put_objects(struct process *process, struct event *event);

#endif /* ETRACE_PRELOAD_EXECUTION_H */
