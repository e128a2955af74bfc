// SPDX-License-Identifier: Apache-2.0
/* From the class that the filter gave a call to the functions that know the call. */
#include "event/syscall.h"

#include <string.h>

#include "output/trace_file.h"
#include "task/lookup.h"
#include "tracer.h"

static const struct syscall_handler *const handlers[N_CALLS] = {
	[CALL_OPEN] = &open_handler,
	[CALL_OPENAT] = &openat_handler,
	[CALL_OPENAT2] = &openat2_handler,
	[CALL_OPEN_BY_HANDLE] = &open_by_handle_handler,
	[CALL_CREAT] = &creat_handler,
	[CALL_CLOSE] = &close_handler,
	[CALL_CLOSE_RANGE] = &close_range_handler,
	[CALL_PIPE] = &pipe_handler,
	[CALL_PIPE2] = &pipe_handler,
	[CALL_DUP] = &dup_handler,
	[CALL_DUP2] = &dup2_handler,
	[CALL_DUP3] = &dup3_handler,
	[CALL_FCNTL] = &fcntl_handler,
	[CALL_RENAME] = &rename_handler,
	[CALL_RENAMEAT] = &rename_handler,
	[CALL_RENAMEAT2] = &rename_handler,
	[CALL_LINK] = &link_handler,
	[CALL_LINKAT] = &link_handler,
	[CALL_SYMLINK] = &symlink_handler,
	[CALL_SYMLINKAT] = &symlink_handler,
	[CALL_CLONE] = &clone_handler,
	[CALL_CLONE3] = &clone_handler,
	[CALL_EXECVEAT] = &execveat_handler,
	[CALL_CHDIR] = &chdir_handler,
	[CALL_CHROOT] = &chroot_handler,
	[CALL_UNSHARE] = &unshare_handler,
	[CALL_SETNS] = &setns_handler,
	[CALL_PTRACE] = &ptrace_handler,
	[CALL_IO_URING_SETUP] = &count_handler,
	[CALL_SECCOMP] = &seccomp_handler,
	[CALL_FOREIGN_ABI] = &count_handler,
	[CALL_AFFINITY] = &affinity_handler,
	[CALL_MOUNT] = &mount_handler,
	[CALL_OLDUMOUNT] = &umount_handler,
	[CALL_UMOUNT2] = &umount_handler,
	[CALL_SET_NAME] = &set_name_handler,
};

#define ARGUMENT(n) (1u << (n))

/* Arguments that are strings and are read at the entry: nothing has touched them so far. */
static unsigned int strings_of(enum call call)
{
	switch (call) {
	case CALL_RENAME:
	case CALL_LINK:
		return ARGUMENT(0) | ARGUMENT(1);
	case CALL_RENAMEAT:
	case CALL_RENAMEAT2:
	case CALL_LINKAT:
		return ARGUMENT(1) | ARGUMENT(3);
	case CALL_EXECVEAT:
	case CALL_SET_NAME:
		return ARGUMENT(1);
	case CALL_MOUNT:
		return ARGUMENT(0) | ARGUMENT(1) | ARGUMENT(2);
	case CALL_OLDUMOUNT:
	case CALL_UMOUNT2:
		return ARGUMENT(0);
	default:
		return 0;
	}
}

static bool strings_are_there(struct task *task)
{
	unsigned int strings = strings_of(task->call);
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
