// SPDX-License-Identifier: Apache-2.0
/*
 * close, close_range, pipe, pipe2, dup, dup2, dup3, fcntl(F_DUPFD*) -> Close, Pipe, Dup.
 *
 * A close of a descriptor that is known to be open frees it whatever it returns (EINTR and EIO
 * included), so its exit need not be seen. Others (sockets, descriptors out of range) must show
 * that they were no EBADF.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>

#include "memory.h"
#include "syscall.h"
#include "tracer.h"

static void put_close(struct task *task, u64 time_ns, int fd)
{
	s64 value = fd;

	event_put_at(task, time_ns, ETRACE_EV_CLOSE, &value, NULL);
}

static bool enter_close(struct task *task)
{
	int fd = (int)task->args[0];

	if (!fd_table_has(task->fds, fd))
		return true;
	fd_table_remove(task->fds, fd);
	put_close(task, monotonic_ns(), fd);
	return false;
}

static void exit_close(struct task *task, s64 result)
{
	if (result != -EBADF)
		put_close(task, monotonic_ns(), (int)task->args[0]);
}

const struct syscall_handler close_handler = { .enter = enter_close, .exit = exit_close };

static void exit_close_range(struct task *task, s64 result)
{
	u32 first = (u32)task->args[0];
	u32 last = (u32)task->args[1];
	u32 flags = (u32)task->args[2];
	u64 now = monotonic_ns();
	int fd;

	if (result < 0)
		return;
	if (flags & CLOSE_RANGE_UNSHARE)
		task_unshare_fds(task);
	if (flags & CLOSE_RANGE_CLOEXEC || first > INT_MAX)
		return;
	for (fd = (int)first; (fd = fd_table_next(task->fds, fd)) >= 0 && (u32)fd <= last; fd++) {
		fd_table_remove(task->fds, fd);
		put_close(task, now, fd);
	}
}

const struct syscall_handler close_range_handler = { .exit = exit_close_range };

static void exit_pipe(struct task *task, s64 result)
{
	int fds[2];
	s64 values[3];

	if (result < 0)
		return;
	if (memory_read(task, task->args[0], fds, sizeof(fds)) != sizeof(fds)) {
		counters.unread_strings++;
		return;
	}
	fd_table_add(task->fds, fds[0]);
	fd_table_add(task->fds, fds[1]);
	values[0] = fds[0];
	values[1] = fds[1];
	values[2] = task->call == CALL_PIPE2 ? (u32)task->args[1] : 0;
	event_put(task, ETRACE_EV_PIPE, values, NULL);
}

const struct syscall_handler pipe_handler = { .exit = exit_pipe };

static void put_dup(struct task *task, s64 newfd, int flags)
{
	s64 values[3] = { (int)task->args[0], newfd, flags };

	if (newfd < 0)
		return;
	fd_table_add(task->fds, (int)newfd);
	event_put(task, ETRACE_EV_DUP, values, NULL);
}

static void exit_dup(struct task *task, s64 newfd)
{
	put_dup(task, newfd, 0);
}

static void exit_dup3(struct task *task, s64 newfd)
{
	put_dup(task, newfd, (int)task->args[2] & O_CLOEXEC);
}

static void exit_fcntl(struct task *task, s64 newfd)
{
	put_dup(task, newfd, (int)task->args[1] == F_DUPFD_CLOEXEC ? O_CLOEXEC : 0);
}

const struct syscall_handler dup_handler = { .exit = exit_dup };
const struct syscall_handler dup3_handler = { .exit = exit_dup3 };
const struct syscall_handler fcntl_handler = { .exit = exit_fcntl };
