/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_FILTER_H
#define ETRACE_PTRACE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The kind of a system call, the same for every table of numbers. The filter hands it to the tracer
 * in the 16 bits of SECCOMP_RET_DATA.
 */
enum call {
	CALL_NONE,
	CALL_OPEN,
	CALL_OPENAT,
	CALL_OPENAT2,
	CALL_OPEN_BY_HANDLE,
	CALL_CREAT,
	CALL_CLOSE,
	CALL_CLOSE_RANGE,
	CALL_PIPE,
	CALL_PIPE2,
	CALL_DUP,
	CALL_DUP2,
	CALL_DUP3,
	CALL_FCNTL, /* F_DUPFD and F_DUPFD_CLOEXEC only */
	CALL_RENAME,
	CALL_RENAMEAT,
	CALL_RENAMEAT2,
	CALL_LINK,
	CALL_LINKAT,
	CALL_SYMLINK,
	CALL_SYMLINKAT,
	CALL_CLONE,
	CALL_CLONE3,
	CALL_EXECVEAT,
	CALL_CHDIR, /* and fchdir */
	CALL_CHROOT, /* and pivot_root */
	CALL_UNSHARE,
	CALL_SETNS,
	CALL_PTRACE, /* TRACEME, ATTACH and SEIZE only */
	CALL_IO_URING_SETUP,
	CALL_SECCOMP, /* with a listener only */
	CALL_MOUNT,
	CALL_OLDUMOUNT,
	CALL_UMOUNT2,
	CALL_SET_NAME, /* prctl(PR_SET_NAME) */
	CALL_AFFINITY, /* sched_getaffinity, sched_setaffinity */
	CALL_FOREIGN_ABI,
	N_CALLS,
};

/*
 * Install the filter in the calling process, for good and for all its descendants. Without a tracer
 * every call it selects then fails with ENOSYS. Returns 0 or -errno.
 */
int filter_install(bool mounts, bool thread_names);

/* What the filter says of a call: its kind, or CALL_NONE where it does not stop. */
enum call filter_classify(uint32_t audit_arch, uint64_t number, const uint64_t *args);

#endif /* ETRACE_PTRACE_FILTER_H */
