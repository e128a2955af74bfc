// SPDX-License-Identifier: Apache-2.0
/* From the class that the filter gave a call to the functions that know the call. */
#include "event/event.h"

#include <stdlib.h>
#include <string.h>

#include "capture/options.h"
#include "capture/program.h"
#include "capture/trace.h"
#include "task/lookup.h"
#include "task/memory.h"

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

/*
 * The strings of a call, one after the other, and their lengths with their ends; none when one of
 * them cannot be read without waiting.
 */
static size_t read_strings(const struct task *task, char **strings)
{
	unsigned int arguments = strings_of[task->call];
	char text[PATH_MAX];
	size_t size = 0;
	unsigned int i;

	*strings = NULL;
	for (i = 0; arguments >> i; i++) {
		ssize_t len;

		if (!(arguments & ARGUMENT(i)) || !task->args[i])
			continue;
		len = memory_read_string_again(task, task->args[i], text);
		if (len < 0) {
			free(*strings);
			*strings = NULL;
			return 0;
		}
		*strings = must_realloc(*strings, size + (size_t)len + 1);
		memcpy(*strings + size, text, (size_t)len + 1);
		size += (size_t)len + 1;
	}
	return size;
}

/*
 * The kernel read the names after the entry and before the exit: where they are the same at both,
 * they are those that it used, unless somebody changed them twice in between.
 */
static void compare_strings(struct task *task)
{
	struct names *names = &task->names;
	char *strings;
	size_t size = read_strings(task, &strings);

	counters.changed_arguments +=
		strings && (size != names->n_given || memcmp(strings, names->given, size));
	free(strings);
	free(names->given);
	names->given = NULL;
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
	if (!handler->enter)
		return true;
	if (handler->enter(task)) {
		if (handler->keeps_strings && !lookup_is_pending(task))
			task->names.n_given = read_strings(task, &task->names.given);
		return true;
	}
	task->call = CALL_NONE;
	return false;
}

void syscall_exit(struct task *task, s64 result)
{
	const struct syscall_handler *handler = handlers[task->call];

	if (task->names.given && result >= 0)
		compare_strings(task);
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
