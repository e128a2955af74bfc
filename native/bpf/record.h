/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the programs in the kernel hand to etrace-bpf through the ring buffer. One record is a part of
 * one event; those of a task come in the order in which it did things, a fork before the first of the
 * child. Integers are those of the machine; the including file defines u8 .. s64.
 */
#ifndef ETRACE_BPF_RECORD_H
#define ETRACE_BPF_RECORD_H

enum record_kind {
	RECORD_FORK = 1, /* child, its pid, the first thread of its process, flags of clone or -1 */
	RECORD_CLONE_FAILED, /* flags */
	RECORD_CLOSING, /* first descriptor, whether an execution closes them; bits: an execution or close_range() is about to close these */
	RECORD_CLOSE_RANGE, /* result */
	RECORD_EXEC_NAME, /* what the name of an execution starts from: a descriptor's file */
	RECORD_EXEC, /* n_args, n_env bytes; asked name, loaded name, loaded file, working directory, comm */
	RECORD_ARGUMENTS, /* is_env, bytes that could not be read; text */
	RECORD_USAGE, /* whether at an execution; what the process has used: RECORD_EXEC or _EXIT follows */
	RECORD_EXIT, /* wait status */
	RECORD_OPEN, /* fd, flags, mode; file, name, directory */
	RECORD_CLOSE, /* fd */
	RECORD_PIPE, /* fd, fd, flags */
	RECORD_DUP, /* fd, fd, flags */
	RECORD_RENAME, /* result, form, flags; name, directory, name, directory */
	RECORD_LINK, /* likewise; a name that is followed and found has the file in the place of its directory */
	RECORD_SYMLINK, /* target, name, directory, what the target leads to */
	RECORD_MOUNT, /* result, flags; source, type, target, directory, or where the target leads if that was found */
	RECORD_UMOUNT, /* likewise */
	RECORD_ADOPTED, /* first thread; a task that ran before: the one to trace */
	RECORD_COMM, /* name */
	RECORD_WRITTEN, /* fd, bytes left out before; text */
	RECORD_IO_URING,
	RECORD_PRIVATE, /* the task has become what the user may not watch, and is not traced any more */
	RECORD_ROOT, /* the task has another root directory or mount namespace from here on */
	RECORD_RIGHTS, /* user and group << 32, whether they were raised, capabilities, groups or -1; groups, struct record_root.
			* They are those of the task at its next record, whose names may have to be looked up. */
};

/* `form` of RECORD_RENAME and RECORD_LINK. */
enum { FORM_PLAIN, FORM_WITH_FLAGS };

/* `flags` of a record */
enum {
	RECORD_CUT = 1, /* a path is too deep to be read: it is empty */
	RECORD_UNREAD = 2, /* a string of the task could not be read */
	RECORD_FOREIGN = 4, /* the task has another root directory or mount namespace than etrace */
	RECORD_MORE = 8, /* another record of this event follows */
};

/* Whether there is what a link leads to, or what a call could not rename or link. */
enum { RECORD_TARGET_FOUND = 0x40, RECORD_TARGET_ABSENT = 0x80 };

#define RECORD_N_VALUES 4
#define RECORD_N_TEXTS 5
#define RECORD_TEXT_MAX 4096
#define RECORD_CHUNK 4096 /* of a list or of what was written */

struct record {
	u64 task; /* which one, until its exit */
	u64 time_ns; /* CLOCK_MONOTONIC */
	u32 pid;
	u16 cpu;
	u8 kind;
	u8 flags;
	s64 values[RECORD_N_VALUES];
	u16 lens[RECORD_N_TEXTS]; /* of the strings that follow this head, one after the other */
	u8 unread; /* bits of those that could not be read */
	u8 found; /* bits of directories that are those of the name's last part; RECORD_TARGET_* */
	u32 lost; /* records of this task for which there was no room before this one */
};

/* The text of RECORD_USAGE: sums over all threads. -1: not known. */
struct record_usage {
	s64 runtime_ns; /* of the scheduler */
	s64 user_ns; /* found by ticks */
	s64 system_ns;
	s64 max_bytes;
	s64 rchar;
	s64 wchar;
	s64 voluntary;
	s64 forced;
};

/* The root directory of a task, by what statx() says of it, too. */
struct record_root {
	u64 inode;
	u32 mount;
	u32 is_mounted; /* it is the root of this mount */
};

#define RECORD_MOST_GROUPS 256 /* as RIGHTS_MOST_GROUPS */

/* Why something is not in the trace; one count for each processor. */
enum loss { LOSS_RING_FULL, LOSS_TASKS_FULL, LOSS_MISSED, N_LOSSES };

#define N_CALL_NUMBERS 600 /* x32 has numbers up to 547 */

#endif /* ETRACE_BPF_RECORD_H */
