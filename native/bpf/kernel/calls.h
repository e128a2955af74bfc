/* SPDX-License-Identifier: GPL-2.0-only */
/* System calls of a traced task: what is noted at the begin of some, and what each has done at its end. */
#ifndef ETRACE_BPF_CALLS_H
#define ETRACE_BPF_CALLS_H

#include "walk.h"

#include "bpf/calls.h"

struct call {
	u64 key;
	u32 pid;
	u8 kind;
	bool is_compat;
	u64 args[6];
	s64 result;
};

#define CLOSE_RANGE_CLOEXEC 4
#define O_CREAT 0100
#define O_WRONLY 01
#define O_TRUNC 01000

/* ---- strings of a record, one after the other ---- */

/* `n`: what was put at the end of the text as string `number`; absent and unread is empty. */
static __always_inline u32 take_text(struct scratch *scratch, u32 number, u32 at, int n)
{
	if (n < 0) {
		scratch->head.flags |= RECORD_UNREAD;
		scratch->head.unread |= 1 << number;
		n = 0;
	}
	if (n > RECORD_TEXT_MAX)
		n = RECORD_TEXT_MAX;
	scratch->head.lens[number] = (u16)n;
	return at + (u32)n;
}

static __always_inline u32 take_string(struct scratch *scratch, u32 number, u32 at, u64 address)
{
	return take_text(scratch, number, at, put_string(scratch, address, at));
}

/*
 * The directory of the string `number - 1`, at `name`; nothing for an absolute one, unless that is a link
 * of /proc: then the file that it leads to.
 */
static __always_inline u32 take_directory(struct scratch *scratch, u32 number, u32 at, u32 name, int dirfd)
{
	int fd;

	if (scratch->text[place(name)] != '/' || !scratch->head.lens[number - 1])
		return take_text(scratch, number, at, put_directory(dirfd, at));
	fd = fd_in_name(name);
	return take_text(scratch, number, at, fd < 0 ? 0 : put_file(file_of(fd), at));
}

/* The same for calls that change the name itself: the directory of its last part, where it can be found. */
static __always_inline u32 take_last_directory(struct scratch *scratch, u32 number, u32 at, u32 name, int dirfd)
{
	int n = scratch->head.lens[number - 1] ? walk_directory(name, dirfd, at) : -1;

	if (n < 0)
		return take_directory(scratch, number, at, name, dirfd);
	scratch->head.found |= 1 << number;
	return take_text(scratch, number, at, n);
}

/* ---- copies of standard error ---- */

#define ERROR_BIT(fd) ((u32)(fd) < 64 && (fd) != 2 ? 1ULL << (u32)(fd) : 0)

static __always_inline void forget_error(struct task *task, int fd)
{
	task->errors &= ~ERROR_BIT(fd);
	task->old_errors &= ~ERROR_BIT(fd);
}

static __always_inline void copy_error(struct task *task, int from, int to)
{
	u64 bit = ERROR_BIT(from);
	bool is_error = from == 2 || task->errors & bit;
	bool is_old = task->old_errors & bit;

	forget_error(task, to);
	task->errors |= is_error ? ERROR_BIT(to) : 0;
	task->old_errors |= is_old ? ERROR_BIT(to) : 0;
}

/* ---- open ---- */

static __always_inline void put_open(struct task *task, const struct call *call)
{
	const u64 *args = call->args;
	u64 how[2] = { 0, 0 };
	u64 file = file_of((int)call->result);
	int dirfd = AT_FDCWD;
	u64 name = args[0];
	struct scratch *scratch;
	u32 at = 0;
	u32 begin;
	int n;

	if (call->result < 0)
		return;
	forget_error(task, (int)call->result);
	scratch = record_begin(call->key, call->pid, RECORD_OPEN);
	if (!scratch)
		return;
	switch (call->kind) {
	case CALL_OPEN:
		how[0] = (u32)args[1];
		how[1] = (u32)args[2];
		break;
	case CALL_CREAT:
		how[0] = O_CREAT | O_WRONLY | O_TRUNC;
		how[1] = (u32)args[1];
		break;
	case CALL_OPEN_BY_HANDLE:
		how[0] = (u32)args[2];
		name = 0;
		break;
	case CALL_OPENAT2:
		if (bpf_probe_read_user(how, sizeof(how), (void *)args[2]))
			scratch->head.flags |= RECORD_UNREAD;
		dirfd = (int)args[0];
		name = args[1];
		break;
	default:
		how[0] = (u32)args[2];
		how[1] = (u32)args[3];
		dirfd = (int)args[0];
		name = args[1];
	}
	scratch->head.values[0] = call->result;
	scratch->head.values[1] = (s64)how[0];
	scratch->head.values[2] = (s64)how[1];
	n = file ? put_file(file, 0) : 0;
	if (n < 0) {
		scratch->head.flags |= RECORD_CUT;
		n = 0;
	}
	at = take_text(scratch, 0, at, n);
	begin = at;
	if (name) {
		at = take_string(scratch, 1, at, name);
		at = take_directory(scratch, 2, at, begin, dirfd);
	}
	record_put(task, scratch, at, wake_flags());
}

/* ---- descriptors ---- */

#define EINTR 4
#define EIO 5
#define ENOSPC 28
#define EFBIG 27
#define ESTALE 116
#define ETIMEDOUT 110
#define EREMOTEIO 121
#define EDQUOT 122

/* File systems answer these when they write the rest of a file: the descriptor is free all the same. */
static __always_inline bool is_closed(s64 result)
{
	return result == 0 || result == -EINTR || result == -EIO || result == -ENOSPC ||
	       result == -EFBIG || result == -ESTALE || result == -ETIMEDOUT || result == -EREMOTEIO ||
	       result == -EDQUOT;
}

static __always_inline void put_close(struct task *task, const struct call *call)
{
	s64 result = call->result;

	if (!is_closed(result) || (result && file_of((int)call->args[0])))
		return;
	forget_error(task, (int)call->args[0]);
	put_plain(task, call->key, call->pid, RECORD_CLOSE, (int)call->args[0], 0, 0, 0);
}

static __always_inline void put_pipe(struct task *task, const struct call *call)
{
	int fds[2] = { -1, -1 };

	if (call->result < 0 || bpf_probe_read_user(fds, sizeof(fds), (void *)call->args[0]))
		return;
	put_plain(task, call->key, call->pid, RECORD_PIPE, fds[0], fds[1],
		  call->kind == CALL_PIPE2 ? (u32)call->args[1] : 0, 0);
}

#define F_DUPFD 0
#define F_DUPFD_CLOEXEC 1030
#define O_CLOEXEC 02000000

static __always_inline void put_dup(struct task *task, const struct call *call)
{
	u32 flags = call->kind == CALL_DUP3 ? (u32)call->args[2] & O_CLOEXEC : 0;

	if (call->result < 0)
		return;
	if (call->kind == CALL_FCNTL) {
		if ((u32)call->args[1] == F_DUPFD_CLOEXEC)
			flags = O_CLOEXEC;
		else if ((u32)call->args[1] != F_DUPFD)
			return;
	}
	copy_error(task, (int)call->args[0], (int)call->result);
	put_plain(task, call->key, call->pid, RECORD_DUP, (int)call->args[0], call->result, flags, 0);
}

#define BITS_WORDS (RECORD_TEXT_MAX / 8)

/* One word of the bits of the open descriptors from `first` to `last`; without `on_exec` of all that are open. */
__attribute__((noinline)) int put_closing_word(u64 open_fds, u64 on_exec, u32 first, u32 last, u32 i)
{
	struct scratch *scratch = scratch_get();
	u32 word = first / 64 + i;
	u64 bits = 0;
	u64 of_exec = 0;

	if (!scratch)
		return 0;
	bpf_probe_read_kernel(&bits, sizeof(bits), (void *)(open_fds + word * 8));
	if (on_exec) {
		bpf_probe_read_kernel(&of_exec, sizeof(of_exec), (void *)(on_exec + word * 8));
		bits &= of_exec;
	}
	if (!i)
		bits &= ~0ULL << (first % 64);
	if (word == last / 64 && last % 64 != 63)
		bits &= (1ULL << (last % 64 + 1)) - 1;
	*(u64 *)(scratch->text + (i & (BITS_WORDS - 1)) * 8) = bits;
	return 0;
}

/* Bits of the open descriptors of a range; with `on_exec` of those alone that an execution closes. */
__attribute__((noinline)) int put_closing(u64 key, u32 pid, u32 on_exec, u32 first, u32 last)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(current, files, fdt);
	struct scratch *scratch = record_begin(key, pid, RECORD_CLOSING);
	struct task *task = task_of(key);
	u64 open_fds, close_on_exec;
	u32 max_fds;
	u32 i;

	if (!table || !scratch || !task)
		return 0;
	max_fds = BPF_CORE_READ(table, max_fds);
	open_fds = (u64)BPF_CORE_READ(table, open_fds);
	close_on_exec = on_exec ? (u64)BPF_CORE_READ(table, close_on_exec) : 0;
	scratch->head.values[0] = first / 64 * 64;
	scratch->head.values[1] = on_exec;
	if (last >= max_fds)
		last = max_fds - 1;
	for (i = 0; i < BITS_WORDS; i++) {
		if (first > last || first / 64 + i > last / 64)
			break;
		put_closing_word(open_fds, close_on_exec, first, last, i);
	}
	scratch->head.lens[0] = (u16)(i * 8);
	record_put(task, scratch, i * 8, wake_flags());
	return 0;
}

/*
 * Before an execution: the file of the descriptor that its name starts from, where there is one. Afterwards
 * that may be closed.
 */
__attribute__((noinline)) int put_exec_name(u64 key, u32 pid, int dirfd, u64 name)
{
	struct scratch *scratch = record_begin(key, pid, RECORD_EXEC_NAME);
	int fd;
	u32 at;

	if (!scratch || put_string(scratch, name, 0) < 0)
		return 0;
	fd = scratch->text[0] == '/' ? fd_in_name(0) : dirfd;
	if (fd < 0)
		return 0;
	at = take_text(scratch, 0, 0, put_file(file_of(fd), 0));
	record_put(task_of(key), scratch, at, wake_flags());
	return 0;
}

/* ---- names ---- */

static __always_inline void put_pair(struct task *task, const struct call *call, u8 record)
{
	const u64 *args = call->args;
	bool is_at = call->kind != CALL_RENAME && call->kind != CALL_LINK;
	struct scratch *scratch = record_begin(call->key, call->pid, record);
	u32 from = 0;
	u32 to;
	u32 at;

	if (!scratch)
		return;
	scratch->head.values[0] = call->result;
	scratch->head.values[1] = call->kind == CALL_RENAMEAT2 || call->kind == CALL_LINKAT ? FORM_WITH_FLAGS :
											      FORM_PLAIN;
	scratch->head.values[2] = is_at ? (u32)args[4] : 0;
	scratch->head.flags |= foreign_flag();
	at = take_string(scratch, 0, 0, args[is_at ? 1 : 0]);
	at = take_last_directory(scratch, 1, at, from, is_at ? (int)args[0] : AT_FDCWD);
	if (call->result < 0 && scratch->head.found)
		scratch->head.found |= (u8)walk_last(from, scratch->head.lens[0]);
	to = at;
	at = take_string(scratch, 2, at, args[is_at ? 3 : 1]);
	at = take_last_directory(scratch, 3, at, to, is_at ? (int)args[2] : AT_FDCWD);
	record_put(task, scratch, at, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void put_symlink(struct task *task, const struct call *call)
{
	bool is_at = call->kind == CALL_SYMLINKAT;
	struct scratch *scratch;
	u32 name;
	u32 at;

	if (call->result < 0)
		return;
	scratch = record_begin(call->key, call->pid, RECORD_SYMLINK);
	if (!scratch)
		return;
	scratch->head.flags |= foreign_flag();
	name = take_string(scratch, 0, 0, call->args[0]);
	at = take_string(scratch, 1, name, call->args[is_at ? 2 : 1]);
	at = take_last_directory(scratch, 2, at, name, is_at ? (int)call->args[1] : AT_FDCWD);
	if (scratch->head.found) {
		int n = walk_target(0, name, at);

		scratch->head.found |= n >= 0 ? RECORD_TARGET_FOUND : n == WALK_ABSENT ? RECORD_TARGET_ABSENT : 0;
		at = take_text(scratch, 3, at, n < 0 ? 0 : n);
	}
	record_put(task, scratch, at, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void put_mount(struct task *task, const struct call *call)
{
	bool is_mount = call->kind == CALL_MOUNT;
	u32 target = 0;
	struct scratch *scratch;
	u32 at = 0;
	int found;

	if (!wants_mounts)
		return;
	scratch = record_begin(call->key, call->pid, is_mount ? RECORD_MOUNT : RECORD_UMOUNT);
	if (!scratch)
		return;
	scratch->head.flags |= foreign_flag();
	scratch->head.values[0] = call->result;
	scratch->head.values[1] = is_mount ? (s64)call->args[3] :
				  call->kind == CALL_OLDUMOUNT ? 0 : (u32)call->args[1];
	if (is_mount) {
		scratch->head.values[2] = (call->args[0] ? 1 : 0) | (call->args[2] ? 2 : 0);
		at = call->args[0] ? take_string(scratch, 0, at, call->args[0]) : at;
		at = call->args[2] ? take_string(scratch, 1, at, call->args[2]) : at;
		target = at;
		at = take_string(scratch, 2, at, call->args[1]);
	} else {
		at = take_string(scratch, 2, at, call->args[0]);
	}
	found = scratch->head.lens[2] ? walk_file(target, AT_FDCWD, at) : WALK_UNKNOWN;
	if (found >= 0) {
		scratch->head.found |= RECORD_TARGET_FOUND;
		at = take_text(scratch, 3, at, found);
	} else {
		scratch->head.found |= found == WALK_ABSENT ? RECORD_TARGET_ABSENT : 0;
		at = take_directory(scratch, 3, at, target, AT_FDCWD);
	}
	record_put(task, scratch, at, BPF_RB_FORCE_WAKEUP);
}

/* ---- what is written ---- */

#define MOST_WRITTEN 16 /* chunks of one call: the first half and the last */

static __always_inline int stream_of(const struct task *task, int fd)
{
	if (fd == 2 || task->errors & ERROR_BIT(fd))
		return wants_stderr ? 2 : 0;
	return fd == 1 && wants_stdout ? 1 : 0;
}

/* At most a chunk of `n` bytes at an address, as RECORD_WRITTEN, after `cut` that are left out. */
__attribute__((noinline)) int put_written_chunk(u64 key, int fd, u64 address, u64 n, u64 cut)
{
	struct scratch *scratch = scratch_get();
	struct task *task = task_of(key);

	if (!scratch || !task)
		return 0;
	if (n > RECORD_CHUNK)
		n = RECORD_CHUNK;
	head_begin(&scratch->head, key, current_pid(), RECORD_WRITTEN);
	scratch->head.values[0] = fd;
	scratch->head.values[1] = (s64)cut;
	scratch->head.lens[0] = (u16)n;
	if (bpf_probe_read_user(scratch->text, (u32)place((u32)n), (void *)address))
		scratch->head.flags |= RECORD_UNREAD;
	record_put(task, scratch, (u32)n, wake_flags());
	return 0;
}

/* `n` bytes at an address, as RECORD_WRITTEN. */
__attribute__((noinline)) int put_written(u64 key, int fd, u64 address, u64 n)
{
	u64 most = MOST_WRITTEN * RECORD_CHUNK;
	u64 done = 0;
	u64 cut;
	int i;

	for (i = 0; i < MOST_WRITTEN + 1; i++) {
		if (done >= n)
			break;
		cut = n > most && i == MOST_WRITTEN / 2 ? n - most : 0;
		done += cut;
		put_written_chunk(key, fd, address + done, n - done, cut);
		done += RECORD_CHUNK;
	}
	return 0;
}

#define MOST_VECTORS 64

static __always_inline void put_write(const struct task *task, const struct call *call)
{
	int stream = call->result > 0 ? stream_of(task, (int)call->args[0]) : 0;
	u64 left = (u64)call->result;
	int i;

	if (!stream)
		return;
	if (call->kind == CALL_WRITE) {
		put_written(call->key, stream, call->args[1], left);
		return;
	}
	for (i = 0; i < MOST_VECTORS; i++) {
		u64 vector[2] = { 0, 0 };
		u32 narrow[2] = { 0, 0 };

		if (!left || i >= (int)call->args[2])
			break;
		if (call->is_compat) {
			bpf_probe_read_user(narrow, sizeof(narrow), (void *)(call->args[1] + (u64)i * 8));
			vector[0] = narrow[0];
			vector[1] = narrow[1];
		} else {
			bpf_probe_read_user(vector, sizeof(vector), (void *)(call->args[1] + (u64)i * 16));
		}
		if (vector[1] > left)
			vector[1] = left;
		put_written(call->key, stream, vector[0], vector[1]);
		left -= vector[1];
	}
}

/* ---- the ends of all ---- */

static __always_inline void call_ended(struct task *task, const struct call *call)
{
	switch (call->kind) {
	case CALL_OPEN:
	case CALL_OPENAT:
	case CALL_OPENAT2:
	case CALL_CREAT:
	case CALL_OPEN_BY_HANDLE:
		put_open(task, call);
		break;
	case CALL_CLOSE:
		put_close(task, call);
		break;
	case CALL_PIPE:
	case CALL_PIPE2:
		put_pipe(task, call);
		break;
	case CALL_DUP:
	case CALL_DUP2:
	case CALL_DUP3:
	case CALL_FCNTL:
		put_dup(task, call);
		break;
	case CALL_CLOSE_RANGE:
		if (!((u32)call->args[2] & CLOSE_RANGE_CLOEXEC))
			put_plain(task, call->key, call->pid, RECORD_CLOSE_RANGE, call->result, 0, 0, 0);
		break;
	case CALL_RENAME:
	case CALL_RENAMEAT:
	case CALL_RENAMEAT2:
		put_pair(task, call, RECORD_RENAME);
		break;
	case CALL_LINK:
	case CALL_LINKAT:
		put_pair(task, call, RECORD_LINK);
		break;
	case CALL_SYMLINK:
	case CALL_SYMLINKAT:
		put_symlink(task, call);
		break;
	case CALL_CLONE:
	case CALL_CLONE3:
		if (call->result < 0)
			put_plain(task, call->key, call->pid, RECORD_CLONE_FAILED, task->value, 0, 0, 0);
		break;
	case CALL_WRITE:
	case CALL_WRITEV:
		put_write(task, call);
		break;
	case CALL_MOUNT:
	case CALL_OLDUMOUNT:
	case CALL_UMOUNT2:
		put_mount(task, call);
		break;
	case CALL_CHROOT:
	case CALL_UNSHARE:
	case CALL_SETNS:
		if (!call->result && foreign_flag())
			put_urgent(task, call->key, call->pid, RECORD_ROOT);
		break;
	case CALL_IO_URING_SETUP:
		if (call->result >= 0)
			put_plain(task, call->key, call->pid, RECORD_IO_URING, 0, 0, 0, 0);
		break;
	}
}

#endif /* ETRACE_BPF_CALLS_H */
