/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that take names: open, execve, rename, link, symlink and mount. */
#ifndef ETRACE_BPF_NAMES_H
#define ETRACE_BPF_NAMES_H

#include "descriptors.h"
#include "walk.h"

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

/* The same for a path of the kernel: what is too long is counted, and empty. */
static __always_inline u32 take_path(struct scratch *scratch, u32 number, u32 at, int n)
{
	if (n < 0)
		scratch->head.flags |= RECORD_CUT;
	return take_text(scratch, number, at, n < 0 ? 0 : n);
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
		return take_path(scratch, number, at, put_directory(dirfd, at));
	fd = fd_in_name(name);
	return take_path(scratch, number, at, fd < 0 ? 0 : put_file(file_of(fd), at));
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

/* ---- open ---- */

#define O_CREAT 0100
#define O_WRONLY 01
#define O_TRUNC 01000
#define O_ACCMODE 03
#define O_APPEND 02000
#define O_PATH 010000000

/*
 * What openat2() was given, with how the file is open: the program may have written over its own structure, or put
 * another file in the place of the descriptor. Neither makes a write look like a read.
 */
static __always_inline u64 flags_of(u64 given, u64 open)
{
	u64 kept = open & O_ACCMODE || !(given & O_ACCMODE) ? O_ACCMODE | O_APPEND : O_APPEND;

	return (given & ~kept) | (open & kept);
}

/* Whether a file is open for what the call asked: if not, another has taken the descriptor since. */
static __always_inline bool is_of_call(u64 file, u64 flags)
{
	return flags & O_PATH || !((READ(struct file, file, f_flags) ^ flags) & O_ACCMODE);
}

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
		if (bpf_probe_read_user(how, sizeof(how), (void *)args[2]) && task->value < 0)
			scratch->head.flags |= RECORD_UNREAD;
		if (task->value >= 0)
			how[0] = (u64)task->value;
		if (file)
			how[0] = flags_of(how[0], READ(struct file, file, f_flags));
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
	if (file && call->kind != CALL_OPENAT2 && !is_of_call(file, how[0]))
		n = -1;
	else
		n = file ? put_file(file, 0) : 0;
	at = take_path(scratch, 0, at, n);
	begin = at;
	if (name) {
		at = take_string(scratch, 1, at, name);
		at = take_directory(scratch, 2, at, begin, dirfd);
	}
	record_put(task, scratch, at, wake_flags());
}

/* ---- execve ---- */

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

#define AT_SYMLINK_FOLLOW 0x400

/* The same for a call that follows the name: what that leads to, or else the directory that it starts from. */
static __always_inline u32 take_followed(struct scratch *scratch, u32 number, u32 at, u32 name, int dirfd)
{
	int n = scratch->head.lens[number - 1] ? walk_file(name, dirfd, at) : WALK_UNKNOWN;

	if (n < 0)
		return take_directory(scratch, number, at, name, dirfd);
	scratch->head.found |= 1 << number | RECORD_TARGET_FOUND;
	return take_text(scratch, number, at, n);
}

static __always_inline void put_pair(struct task *task, const struct call *call, u8 record)
{
	const u64 *args = call->args;
	bool is_at = call->kind != CALL_RENAME && call->kind != CALL_LINK;
	bool follows = call->kind == CALL_LINKAT && args[4] & AT_SYMLINK_FOLLOW;
	struct scratch *scratch;
	u32 from = 0;
	u32 to;
	u32 at;

	put_rights(call->key, call->pid);
	scratch = record_begin(call->key, call->pid, record);
	if (!scratch)
		return;
	scratch->head.values[0] = call->result;
	scratch->head.values[1] = call->kind == CALL_RENAMEAT2 || call->kind == CALL_LINKAT ? FORM_WITH_FLAGS :
											      FORM_PLAIN;
	scratch->head.values[2] = is_at ? (u32)args[4] : 0;
	scratch->head.flags |= foreign_flag();
	at = take_string(scratch, 0, 0, args[is_at ? 1 : 0]);
	if (follows) {
		at = take_followed(scratch, 1, at, from, (int)args[0]);
	} else {
		at = take_last_directory(scratch, 1, at, from, is_at ? (int)args[0] : AT_FDCWD);
		if (call->result < 0 && scratch->head.found)
			scratch->head.found |= (u8)walk_last(from, scratch->head.lens[0]);
	}
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
	put_rights(call->key, call->pid);
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
	put_rights(call->key, call->pid);
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

#endif /* ETRACE_BPF_NAMES_H */
