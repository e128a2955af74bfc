/* SPDX-License-Identifier: Apache-2.0 */
/* Rendered from etrace/spec/syscalls.toml by `make generate`: do not edit. */
#ifndef ETRACE_PTRACE_CALLS_H
#define ETRACE_PTRACE_CALLS_H

/*
 * The kind of a system call, the same for every table of numbers. The filter hands it to the tracer
 * in the 16 bits of SECCOMP_RET_DATA.
 */
enum call {
	CALL_NONE,
	CALL_OPENAT,
	CALL_CLOSE,
	CALL_OPEN,
	CALL_FCNTL, /* F_DUPFD and F_DUPFD_CLOEXEC */
	CALL_DUP2,
	CALL_CLONE,
	CALL_CLONE3,
	CALL_PIPE2,
	CALL_PIPE,
	CALL_DUP,
	CALL_DUP3,
	CALL_WRITE, /* to standard error, or output with `--stdout` */
	CALL_WRITEV, /* to standard error, or output with `--stdout` */
	CALL_CHDIR,
	CALL_RENAME,
	CALL_RENAMEAT,
	CALL_RENAMEAT2,
	CALL_LINK,
	CALL_LINKAT,
	CALL_SYMLINK,
	CALL_SYMLINKAT,
	CALL_OPENAT2,
	CALL_CREAT,
	CALL_CLOSE_RANGE,
	CALL_EXECVEAT,
	CALL_CHROOT,
	CALL_UNSHARE,
	CALL_SETNS,
	CALL_PTRACE, /* TRACEME, ATTACH and SEIZE */
	CALL_OPEN_BY_HANDLE,
	CALL_SECCOMP, /* with a listener */
	CALL_IO_URING_SETUP,
	CALL_AFFINITY,
	CALL_MOUNT,
	CALL_OLDUMOUNT,
	CALL_UMOUNT2,
	CALL_SET_NAME, /* PR_SET_NAME */
	CALL_FOREIGN_ABI,
	N_CALLS,
};

#endif /* ETRACE_PTRACE_CALLS_H */

#ifdef CALL_NUMBERS
static const struct row rows[] = {
	{ CALL_WRITE, 1, 1, 4, 64, 4, &is_write },
	{ CALL_WRITEV, 20, 516, 146, 66, 146, &is_write },
	{ CALL_OPENAT, 257, 257, 295, 56, 322, NULL },
	{ CALL_CLOSE, 3, 3, 6, 57, 6, NULL },
	{ CALL_OPEN, 2, 2, 5, NO_CALL, 5, NULL },
	{ CALL_FCNTL, 72, 72, 55, 25, 55, &is_dup },
	{ CALL_FCNTL, NO_CALL, NO_CALL, 221, NO_CALL, 221, &is_dup },
	{ CALL_DUP2, 33, 33, 63, NO_CALL, 63, NULL },
	{ CALL_CLONE, 56, 56, 120, 220, 120, NULL },
	{ CALL_CLONE3, 435, 435, 435, 435, 435, NULL },
	{ CALL_PIPE2, 293, 293, 331, 59, 359, NULL },
	{ CALL_PIPE, 22, 22, 42, NO_CALL, 42, NULL },
	{ CALL_DUP, 32, 32, 41, 23, 41, NULL },
	{ CALL_DUP3, 292, 292, 330, 24, 358, NULL },
	{ CALL_WRITE, 18, 18, 181, 68, 181, &is_write },
	{ CALL_WRITEV, 296, 535, 334, 70, 362, &is_write },
	{ CALL_WRITEV, 328, 547, 379, 287, 393, &is_write },
	{ CALL_CHDIR, 80, 80, 12, 49, 12, NULL },
	{ CALL_CHDIR, 81, 81, 133, 50, 133, NULL },
	{ CALL_RENAME, 82, 82, 38, NO_CALL, 38, NULL },
	{ CALL_RENAMEAT, 264, 264, 302, 38, 329, NULL },
	{ CALL_RENAMEAT2, 316, 316, 353, 276, 382, NULL },
	{ CALL_LINK, 86, 86, 9, NO_CALL, 9, NULL },
	{ CALL_LINKAT, 265, 265, 303, 37, 330, NULL },
	{ CALL_SYMLINK, 88, 88, 83, NO_CALL, 83, NULL },
	{ CALL_SYMLINKAT, 266, 266, 304, 36, 331, NULL },
	{ CALL_OPENAT2, 437, 437, 437, 437, 437, NULL },
	{ CALL_CREAT, 85, 85, 8, NO_CALL, 8, NULL },
	{ CALL_CLOSE_RANGE, 436, 436, 436, 436, 436, NULL },
	{ CALL_EXECVEAT, 322, 545, 358, 281, 387, NULL },
	{ CALL_CHROOT, 161, 161, 61, 51, 61, NULL },
	{ CALL_CHROOT, 155, 155, 217, 41, 218, NULL },
	{ CALL_UNSHARE, 272, 272, 310, 97, 337, NULL },
	{ CALL_SETNS, 308, 308, 346, 268, 375, NULL },
	{ CALL_PTRACE, 101, 521, 26, 117, 26, &attaches },
	{ CALL_OPEN_BY_HANDLE, 304, 304, 342, 265, 371, NULL },
	{ CALL_SECCOMP, 317, 317, 354, 277, 383, &listens },
	{ CALL_IO_URING_SETUP, 425, 425, 425, 425, 425, NULL },
	{ CALL_AFFINITY, 203, 203, 241, 122, 241, NULL },
	{ CALL_AFFINITY, 204, 204, 242, 123, 242, NULL },
	{ CALL_MOUNT, 165, 165, 21, 40, 21, NULL },
	{ CALL_OLDUMOUNT, NO_CALL, NO_CALL, 22, NO_CALL, NO_CALL, NULL },
	{ CALL_UMOUNT2, 166, 166, 52, 39, 52, NULL },
	{ CALL_SET_NAME, 157, 157, 172, 167, 172, &sets_name },
};
#endif

#ifdef CALL_HANDLERS
static const struct syscall_handler *const handlers[N_CALLS] = {
	[CALL_OPENAT] = &openat_handler,
	[CALL_CLOSE] = &close_handler,
	[CALL_OPEN] = &open_handler,
	[CALL_FCNTL] = &fcntl_handler,
	[CALL_DUP2] = &dup2_handler,
	[CALL_CLONE] = &clone_handler,
	[CALL_CLONE3] = &clone_handler,
	[CALL_PIPE2] = &pipe_handler,
	[CALL_PIPE] = &pipe_handler,
	[CALL_DUP] = &dup_handler,
	[CALL_DUP3] = &dup3_handler,
	[CALL_WRITE] = &write_handler,
	[CALL_WRITEV] = &writev_handler,
	[CALL_CHDIR] = &chdir_handler,
	[CALL_RENAME] = &rename_handler,
	[CALL_RENAMEAT] = &rename_handler,
	[CALL_RENAMEAT2] = &rename_handler,
	[CALL_LINK] = &link_handler,
	[CALL_LINKAT] = &link_handler,
	[CALL_SYMLINK] = &symlink_handler,
	[CALL_SYMLINKAT] = &symlink_handler,
	[CALL_OPENAT2] = &openat2_handler,
	[CALL_CREAT] = &creat_handler,
	[CALL_CLOSE_RANGE] = &close_range_handler,
	[CALL_EXECVEAT] = &execveat_handler,
	[CALL_CHROOT] = &chroot_handler,
	[CALL_UNSHARE] = &unshare_handler,
	[CALL_SETNS] = &setns_handler,
	[CALL_PTRACE] = &ptrace_handler,
	[CALL_OPEN_BY_HANDLE] = &open_by_handle_handler,
	[CALL_SECCOMP] = &seccomp_handler,
	[CALL_IO_URING_SETUP] = &count_handler,
	[CALL_AFFINITY] = &affinity_handler,
	[CALL_MOUNT] = &mount_handler,
	[CALL_OLDUMOUNT] = &umount_handler,
	[CALL_UMOUNT2] = &umount_handler,
	[CALL_SET_NAME] = &set_name_handler,
	[CALL_FOREIGN_ABI] = &count_handler,
};

/* Arguments in memory that are read at the entry: nothing has touched them so far. */
static const uint8_t strings_of[N_CALLS] = {
	[CALL_RENAME] = ARGUMENT(0) | ARGUMENT(1),
	[CALL_RENAMEAT] = ARGUMENT(1) | ARGUMENT(3),
	[CALL_RENAMEAT2] = ARGUMENT(1) | ARGUMENT(3),
	[CALL_LINK] = ARGUMENT(0) | ARGUMENT(1),
	[CALL_LINKAT] = ARGUMENT(1) | ARGUMENT(3),
	[CALL_SYMLINK] = ARGUMENT(0) | ARGUMENT(1),
	[CALL_SYMLINKAT] = ARGUMENT(0) | ARGUMENT(2),
	[CALL_OPENAT2] = ARGUMENT(2),
	[CALL_EXECVEAT] = ARGUMENT(1),
	[CALL_MOUNT] = ARGUMENT(0) | ARGUMENT(1) | ARGUMENT(2),
	[CALL_OLDUMOUNT] = ARGUMENT(0),
	[CALL_UMOUNT2] = ARGUMENT(0),
	[CALL_SET_NAME] = ARGUMENT(1),
};
#endif
