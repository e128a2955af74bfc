// SPDX-License-Identifier: Apache-2.0
/*
 * open, openat, openat2, creat, open_by_handle_at -> Open. The path is read at the exit, from a task
 * that still stands in its call: half of a build's opens fail and need no reading at all. The
 * resolved path is what /proc says of the new descriptor.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#include "event/syscall.h"
#include "task/memory.h"
#include "tracer.h"

/* /proc/PID/status says where a task may run: see core.h. */
static bool shows_cores(const struct path *path)
{
	const char *name = strrchr(path->text, '/');

	return !strncmp(path->text, "/proc/", 6) && name && !strcmp(name, "/status");
}

/* Count a file that was opened, and find out where the descriptor leads. */
static void take_open(struct task *task, int fd, struct path *resolved)
{
	counters.opens++;
	fd_table_add(task->fds, fd);
	if (!path_of_fd(task, fd, resolved)) {
		counters.unresolved_paths++;
		resolved->len = 0;
		return;
	}
	task->shows_cores |= shows_cores(resolved);
}

static void put_event(struct task *task, int fd, u64 flags, u64 mode, const struct path *resolved,
		      const struct path *original)
{
	s64 values[3] = { (s64)flags, (s64)mode, fd };
	struct etrace_text data[2] = { path_text(resolved), path_text(original) };

	if (!(flags & O_CREAT) && (flags & O_TMPFILE) != O_TMPFILE)
		values[1] = 0; /* not an argument of the call: whatever the register held */
	if (resolved->len) /* or killed meanwhile, or a program that may not be read */
		event_put(task, ETRACE_EV_OPEN, values, data);
}

static void put_open(struct task *task, int fd, int dirfd, u64 address, u64 flags, u64 mode)
{
	struct path resolved;
	struct path original;
	char text[PATH_MAX];
	ssize_t len = memory_read_path(task, address, text);

	take_open(task, fd, &resolved);
	if (len < 0 || !path_join(task, dirfd, text, (size_t)len, &original)) {
		counters.unread_strings++;
		original = resolved;
	}
	put_event(task, fd, flags, mode, resolved.len ? &resolved : &original, &original);
}

static void exit_open(struct task *task, s64 fd)
{
	const u64 *args = task->args;

	if (fd >= 0)
		put_open(task, (int)fd, AT_FDCWD, args[0], (u32)args[1], (u32)args[2]);
}

static void exit_openat(struct task *task, s64 fd)
{
	const u64 *args = task->args;

	if (fd >= 0)
		put_open(task, (int)fd, (int)args[0], args[1], (u32)args[2], (u32)args[3]);
}

static void exit_openat2(struct task *task, s64 fd)
{
	const u64 *args = task->args;
	struct open_how how;

	if (fd < 0)
		return;
	memset(&how, 0, sizeof(how));
	if (memory_read(task, args[2], &how, sizeof(how)) != sizeof(how))
		counters.unread_strings++;
	put_open(task, (int)fd, (int)args[0], args[1], how.flags, how.mode);
}

static void exit_creat(struct task *task, s64 fd)
{
	const u64 *args = task->args;

	if (fd >= 0)
		put_open(task, (int)fd, AT_FDCWD, args[0], O_CREAT | O_WRONLY | O_TRUNC,
			 (u32)args[1]);
}

/* The call has no file name: use the resolved one for both. */
static void exit_open_by_handle(struct task *task, s64 fd)
{
	struct path path;

	if (fd < 0)
		return;
	memory_note_cpu(task);
	take_open(task, (int)fd, &path);
	put_event(task, (int)fd, (u32)task->args[2], 0, &path, &path);
}

const struct syscall_handler open_handler = { .exit = exit_open };
const struct syscall_handler openat_handler = { .exit = exit_openat };
const struct syscall_handler openat2_handler = { .exit = exit_openat2 };
const struct syscall_handler open_by_handle_handler = { .exit = exit_open_by_handle };
const struct syscall_handler creat_handler = { .exit = exit_creat };
