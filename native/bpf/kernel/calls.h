/* SPDX-License-Identifier: GPL-2.0-only */
/* System calls of a traced task: what each has done at its end. */
#ifndef ETRACE_BPF_CALLS_H
#define ETRACE_BPF_CALLS_H

#include "names.h"

#define CLOSE_RANGE_CLOEXEC 4

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
