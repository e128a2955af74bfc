// SPDX-License-Identifier: Apache-2.0
/* From the class that the filter gave a call to the functions that know the call. */
#include "event/event.h"

#include <string.h>

#include "capture/program.h"
#include "capture/trace.h"
#include "task/lookup.h"

#define ARGUMENT(n) (1u << (n))

#define CALL_HANDLERS
#include "task/calls.h"

static bool strings_are_there(struct task *task)
{
	unsigned int strings = strings_of[task->call];
	unsigned int i;

	for (i = 0; strings >> i; i++)
		if (strings & ARGUMENT(i) && task->args[i] && !lookup_string(task, task->args[i]))
			return false;
	return true;
}

bool syscall_enter(struct task *task, enum call call, const uint64_t *args)
{
	const struct syscall_handler *handler = call < N_CALLS ? handlers[call] : NULL;

	if (!handler) /* a filter of the build itself asked for a tracer: not for this one */
		return false;
	memcpy(task->args, args, sizeof(task->args));
	task->call = call;
	if (!strings_are_there(task))
		return true;
	if (!handler->enter || handler->enter(task))
		return true;
	task->call = CALL_NONE;
	return false;
}

void syscall_exit(struct task *task, s64 result)
{
	const struct syscall_handler *handler = handlers[task->call];

	handler->exit(task, result);
	if (!lookup_is_pending(task))
		task->call = CALL_NONE;
}

void event_put_at(struct task *task, u64 time_ns, enum etrace_event event, const s64 *values,
		  const struct etrace_text *data)
{
	struct etrace_prefix prefix;

	if (!trace_is_open())
		return;
	etrace_prefix_init(&prefix, task->upid, task->cpu, time_ns);
	trace_put(&prefix, event, values, data);
}

void event_put(struct task *task, enum etrace_event event, const s64 *values,
	       const struct etrace_text *data)
{
	event_put_at(task, monotonic_ns(), event, values, data);
}
