// SPDX-License-Identifier: GPL-2.0-only
/*
 * close, close_range, pipe, pipe2, dup, dup2, dup3, fcntl(F_DUPFD*) -> Close, Pipe, Dup; messages
 * that bring descriptors are counted. Context: sys_exit and kprobes, atomic; pipe once more in
 * task_work when the page of its result is missing.
 */
#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <uapi/linux/close_range.h>

#include "hooks.h"

static void put_close(struct etrace_task *entry, u64 time_ns, int fd)
{
	s64 value = fd;

	etrace_emit(entry->upid, time_ns, ETRACE_EV_CLOSE, &value, NULL);
}

static bool is_open(int fd)
{
	struct etrace_file file = etrace_file_get(fd);

	etrace_file_put(file);
	return file.file;
}

/* EINTR, EIO and the like free the descriptor too; a seccomp filter's answer does not. */
void etrace_exit_close(struct etrace_task *entry, const struct etrace_call *call)
{
	int fd = (int)call->args[0];

	if (call->result < 0 && (call->result == -EBADF || is_open(fd)))
		return;
	put_close(entry, etrace_now(), fd);
}

/* Before the call: which descriptors it closes cannot be told afterwards. */
static void put_close_range(struct etrace_task *entry, u32 first, u32 last)
{
	struct fdtable *fdt = files_fdtable(current->files);
	u32 end = last < fdt->max_fds ? last + 1 : fdt->max_fds;
	u64 now = etrace_now();
	u32 fd;

	for (fd = find_next_bit(fdt->open_fds, end, first); fd < end;
	     fd = find_next_bit(fdt->open_fds, end, fd + 1))
		put_close(entry, now, fd);
}

int etrace_on_close_range(struct kprobe *probe, struct pt_regs *regs)
{
	struct etrace_task *entry;
	u64 args[6];
	u32 first, last, flags;

	rcu_read_lock();
	entry = etrace_task_in_call(ETRACE_CALL_CLOSE_RANGE, ETRACE_CALL_CLOSE_RANGE);
	if (entry) {
		etrace_read_arguments(task_pt_regs(current), args);
		first = args[0];
		last = args[1];
		flags = args[2];
		/* with CLOSE_RANGE_CLOEXEC it closes nothing, with unknown flags it fails */
		if (first <= last && !(flags & ~CLOSE_RANGE_UNSHARE))
			put_close_range(entry, first, last);
	}
	rcu_read_unlock();
	return 0;
}

static int put_pipe(struct etrace_task *entry, const struct etrace_call *call, u64 time_ns,
		    enum etrace_access access)
{
	s64 values[3];
	int fds[2];
	int err = etrace_user_bytes(fds, call->args[0], sizeof(fds), access);

	if (err)
		return err;
	values[0] = fds[0];
	values[1] = fds[1];
	values[2] = call->kind == ETRACE_CALL_PIPE2 ? (u32)call->args[1] : 0;
	etrace_emit(entry->upid, time_ns, ETRACE_EV_PIPE, values, NULL);
	return 0;
}

void etrace_exit_pipe(struct etrace_task *entry, const struct etrace_call *call)
{
	if (call->result == 0 && put_pipe(entry, call, etrace_now(), ETRACE_ATOMIC))
		etrace_defer(entry, call);
}

void etrace_work_pipe(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space)
{
	if (put_pipe(entry, call, call->time_ns, ETRACE_SLEEP))
		etrace_count(ETRACE_COUNT_UNREAD_STRINGS);
}

static void put_dup(struct etrace_task *entry, const struct etrace_call *call, u32 flags)
{
	s64 values[3] = { (int)call->args[0], call->result, flags };

	if (call->result >= 0)
		etrace_emit(entry->upid, etrace_now(), ETRACE_EV_DUP, values, NULL);
}

void etrace_exit_dup(struct etrace_task *entry, const struct etrace_call *call)
{
	u32 flags = call->kind == ETRACE_CALL_DUP3 ? (u32)call->args[2] & O_CLOEXEC : 0;

	put_dup(entry, call, flags);
}

void etrace_exit_fcntl(struct etrace_task *entry, const struct etrace_call *call)
{
	switch ((u32)call->args[1]) {
	case F_DUPFD:
		put_dup(entry, call, 0);
		break;
	case F_DUPFD_CLOEXEC:
		put_dup(entry, call, O_CLOEXEC);
		break;
	}
}

/* Messages without descriptors do not come here: a recvmsg() pays for none of this. */
int etrace_on_detach_fds(struct kprobe *probe, struct pt_regs *regs)
{
	rcu_read_lock();
	if (etrace_task_find(current))
		etrace_count(ETRACE_COUNT_PASSED_FDS);
	rcu_read_unlock();
	return 0;
}
