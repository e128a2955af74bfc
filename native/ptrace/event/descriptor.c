// SPDX-License-Identifier: Apache-2.0
/*
 * close, close_range, pipe, pipe2, dup, dup2, dup3, fcntl(F_DUPFD*) -> Close, Pipe, Dup.
 *
 * What a close or dup does follows from the descriptors that are open, so where nobody else can
 * change those meanwhile (a table of one task) it is known at the entry: no exit need be seen. A
 * close of an open descriptor frees it whatever it returns (EINTR and EIO included); a dup takes
 * the lowest free one. A pipe can fail for reasons of the whole system: its exit is seen.
 */
#include "event/event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "task/lookup.h"
#include "task/memory.h"

/* Below it a table has room from the start (NR_OPEN_DEFAULT): no dup fails for lack of memory. */
#define SMALL_FD 64

/* With /proc mounted hidepid=2 a task that may not be read has no entry at all. */
static enum descriptor_state free_or_hidden(const struct task *task)
{
	char name[PROC_NAME_MAX];
	struct stat st;

	proc_name(name, task->tid, "fd");
	return lstat(name, &st) == 0 ? DESCRIPTOR_FREE : DESCRIPTOR_UNKNOWN;
}

enum descriptor_state descriptor_look_up(const struct task *task, int fd)
{
	char name[PROC_NAME_MAX];
	struct stat st;

	proc_fd_name(name, task->tid, fd);
	if (lstat(name, &st) == 0)
		return DESCRIPTOR_OPEN;
	return errno == ENOENT ? free_or_hidden(task) : DESCRIPTOR_UNKNOWN;
}

/* The state of a descriptor until the call that the task makes has run. */
static enum descriptor_state state_of(const struct task *task, int fd)
{
	if (fd < 0)
		return DESCRIPTOR_FREE;
	if (task->fds->was_shared || task->fds->is_doubtful)
		return DESCRIPTOR_UNKNOWN;
	return fd_table_has(task->fds, fd) ? DESCRIPTOR_OPEN : descriptor_look_up(task, fd);
}

static void put_close(struct task *task, u64 time_ns, int fd)
{
	s64 value = fd;

	event_put_at(task, time_ns, ETRACE_EV_CLOSE, &value, NULL);
}

static bool enter_close(struct task *task)
{
	int fd = (int)task->args[0];
	enum descriptor_state state =
		fd_table_has(task->fds, fd) ? DESCRIPTOR_OPEN : state_of(task, fd);

	if (state == DESCRIPTOR_OPEN) {
		fd_table_remove(task->fds, fd);
		put_close(task, monotonic_ns(), fd);
	}
	return state == DESCRIPTOR_UNKNOWN;
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

/* Whether these numbers are those of a pipe: another thread may have overwritten what the kernel wrote. */
static bool is_pipe(const struct task *task, const int fds[2])
{
	struct stat ends[2];
	char name[PROC_NAME_MAX];
	int i;

	for (i = 0; i < 2; i++) {
		proc_fd_name(name, task->tid, fds[i]);
		if (!lookup_stat_link(name, &ends[i]))
			return descriptor_look_up(task, fds[i]) == DESCRIPTOR_UNKNOWN;
	}
	return S_ISFIFO(ends[0].st_mode) && ends[0].st_ino == ends[1].st_ino &&
	       ends[0].st_dev == ends[1].st_dev;
}

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
	if (!is_pipe(task, fds)) {
		counters.changed_arguments++;
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
	fd_table_add_copy(task->fds, (int)task->args[0], (int)newfd);
	event_put(task, ETRACE_EV_DUP, values, NULL);
}

/* How many descriptors the task may have, at most SMALL_FD, or 0 when that cannot be known. */
static int small_limit(const struct task *task)
{
	struct rlimit limit;

	if (prlimit(task->tid, RLIMIT_NOFILE, NULL, &limit) < 0)
		return 0;
	return limit.rlim_cur < SMALL_FD ? (int)limit.rlim_cur : SMALL_FD;
}

/* The lowest descriptor from `lowest` on that is free, or -1 when that cannot be known. */
static int lowest_free(const struct task *task, u64 lowest)
{
	int limit = small_limit(task);
	int fd;

	if (lowest >= (u64)limit)
		return -1;
	for (fd = (int)lowest; fd < limit; fd++) {
		enum descriptor_state state = state_of(task, fd);

		if (state != DESCRIPTOR_OPEN)
			return state == DESCRIPTOR_FREE ? fd : -1;
	}
	return -1;
}

/* A dup of the call's descriptor to `newfd`, or to one that only the exit shows (-1). */
static bool enter_dup_to(struct task *task, int newfd, int flags)
{
	enum descriptor_state state = state_of(task, (int)task->args[0]);

	if (state == DESCRIPTOR_OPEN && newfd >= 0)
		put_dup(task, newfd, flags);
	return state == DESCRIPTOR_UNKNOWN || (state == DESCRIPTOR_OPEN && newfd < 0);
}

static bool enter_dup(struct task *task)
{
	return enter_dup_to(task, lowest_free(task, 0), 0);
}

static int given_target(const struct task *task)
{
	int newfd = (int)task->args[1];

	return newfd >= 0 && newfd < small_limit(task) ? newfd : -1;
}

static bool enter_dup2(struct task *task)
{
	return enter_dup_to(task, given_target(task), 0);
}

static bool enter_dup3(struct task *task)
{
	int flags = (int)task->args[2];
	bool may_fail = (flags & ~O_CLOEXEC) || (int)task->args[0] == (int)task->args[1];

	return may_fail || enter_dup_to(task, given_target(task), flags);
}

static int flags_of_fcntl(const struct task *task)
{
	return (int)task->args[1] == F_DUPFD_CLOEXEC ? O_CLOEXEC : 0;
}

static bool enter_fcntl(struct task *task)
{
	return enter_dup_to(task, lowest_free(task, task->args[2]), flags_of_fcntl(task));
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
	put_dup(task, newfd, flags_of_fcntl(task));
}

const struct syscall_handler dup_handler = { enter_dup, exit_dup, false };
const struct syscall_handler dup2_handler = { enter_dup2, exit_dup, false };
const struct syscall_handler dup3_handler = { enter_dup3, exit_dup3, false };
const struct syscall_handler fcntl_handler = { enter_fcntl, exit_fcntl, false };

/* ---- opens ---- */

/*
 * open, openat, openat2, creat, open_by_handle_at -> Open. The path is read at the exit, from a task
 * that is still in its call: half of a build's opens fail and need no reading at all. Another thread
 * may have changed it by then. The resolved path is what /proc says of the new descriptor.
 */

/* /proc/PID/status says where a task may run: see task.h. */
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
	counters.unread_strings += len < 0;
	if (len < 0 || !path_join(task, dirfd, text, (size_t)len, &original))
		original = resolved;
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

/* Without waiting for who has the memory; where it cannot be read, `found` stays. */
static void read_how(const struct task *task, struct open_flags *found)
{
	struct open_how how;

	if (memory_is_there(task, task->args[2], sizeof(how)) &&
	    memory_read(task, task->args[2], &how, sizeof(how)) == sizeof(how))
		*found = (struct open_flags){ how.flags, how.mode };
}

static bool enter_openat2(struct task *task)
{
	task->how = (struct open_flags){ 0 };
	read_how(task, &task->how);
	return true;
}

/* What an open file keeps of the flags of its open; no other flag can be found out later. */
#define KEPT_FLAGS (O_ACCMODE | O_APPEND | O_PATH)

/*
 * The kernel copied the structure between entry and exit. Where it differs now, the file says which
 * of both was copied; where it fits neither, at least how it was opened. Flags that may have been
 * given are taken as given: a file that was made or emptied is not taken for one that was read.
 */
static struct open_flags flags_of_open(const struct task *task, int fd)
{
	struct open_flags before = task->how;
	struct open_flags after = before;
	struct open_flags found = before;
	unsigned int file = 0;
	bool has_changed;

	read_how(task, &after);
	has_changed = before.flags != after.flags || before.mode != after.mode;
	if (!proc_read_flags(task->tid, fd, &file))
		file = (unsigned int)before.flags;
	if ((before.flags ^ file) & KEPT_FLAGS) {
		has_changed = true;
		found = after;
		found.flags |= before.flags & (O_CREAT | O_TRUNC | O_EXCL);
	}
	found.flags = (found.flags & ~(u64)KEPT_FLAGS) | (file & KEPT_FLAGS);
	counters.changed_arguments += has_changed;
	return found;
}

static void exit_openat2(struct task *task, s64 fd)
{
	const u64 *args = task->args;
	struct open_flags how;

	if (fd < 0)
		return;
	how = flags_of_open(task, (int)fd);
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
const struct syscall_handler openat2_handler = { enter_openat2, exit_openat2, false };
const struct syscall_handler open_by_handle_handler = { .exit = exit_open_by_handle };
const struct syscall_handler creat_handler = { .exit = exit_creat };
