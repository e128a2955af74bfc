/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Rendered from etrace/spec/syscalls.toml by `make generate`: do not edit. */
#ifndef ETRACE_CALLS_H
#define ETRACE_CALLS_H

enum etrace_call_kind {
	ETRACE_CALL_NONE,
	/* looked at when they return */
	ETRACE_CALL_OPENAT,
	ETRACE_CALL_CLOSE,
	ETRACE_CALL_OPEN,
	ETRACE_CALL_FCNTL,
	ETRACE_CALL_DUP2,
	ETRACE_CALL_CLONE,
	ETRACE_CALL_CLONE3,
	ETRACE_CALL_PIPE2,
	ETRACE_CALL_PIPE,
	ETRACE_CALL_DUP,
	ETRACE_CALL_DUP3,
	ETRACE_CALL_RENAME,
	ETRACE_CALL_RENAMEAT,
	ETRACE_CALL_RENAMEAT2,
	ETRACE_CALL_LINK,
	ETRACE_CALL_LINKAT,
	ETRACE_CALL_SYMLINK,
	ETRACE_CALL_SYMLINKAT,
	ETRACE_CALL_OPENAT2,
	ETRACE_CALL_CREAT,
	ETRACE_CALL_CLOSE_RANGE,
	ETRACE_CALL_IO_URING_SETUP,
	ETRACE_CALL_MOUNT,
	ETRACE_CALL_OLDUMOUNT,
	ETRACE_CALL_UMOUNT2,
	ETRACE_CALL_PIDFD_GETFD,
	ETRACE_CALL_NEW_MOUNT_API,
	ETRACE_N_CALLS_AT_EXIT,
	/* looked at by other probes while they run */
	ETRACE_CALL_EXECVE = ETRACE_N_CALLS_AT_EXIT,
	ETRACE_CALL_EXECVEAT,
	ETRACE_N_CALLS,
};

#endif /* ETRACE_CALLS_H */

#ifdef ETRACE_CALL_NUMBERS
const u8 etrace_native_calls[ETRACE_NATIVE_CALLS] = {
	/* newer architectures lack the calls that a later one replaced */
	[__NR_openat] = ETRACE_CALL_OPENAT,
	[__NR_close] = ETRACE_CALL_CLOSE,
#ifdef __NR_open
	[__NR_open] = ETRACE_CALL_OPEN,
#endif
	[__NR_fcntl] = ETRACE_CALL_FCNTL,
#ifdef __NR_dup2
	[__NR_dup2] = ETRACE_CALL_DUP2,
#endif
	[__NR_clone] = ETRACE_CALL_CLONE,
	[__NR_clone3] = ETRACE_CALL_CLONE3,
	[__NR_pipe2] = ETRACE_CALL_PIPE2,
#ifdef __NR_pipe
	[__NR_pipe] = ETRACE_CALL_PIPE,
#endif
	[__NR_dup] = ETRACE_CALL_DUP,
	[__NR_dup3] = ETRACE_CALL_DUP3,
#ifdef __NR_rename
	[__NR_rename] = ETRACE_CALL_RENAME,
#endif
#ifdef __NR_renameat
	[__NR_renameat] = ETRACE_CALL_RENAMEAT,
#endif
	[__NR_renameat2] = ETRACE_CALL_RENAMEAT2,
#ifdef __NR_link
	[__NR_link] = ETRACE_CALL_LINK,
#endif
	[__NR_linkat] = ETRACE_CALL_LINKAT,
#ifdef __NR_symlink
	[__NR_symlink] = ETRACE_CALL_SYMLINK,
#endif
	[__NR_symlinkat] = ETRACE_CALL_SYMLINKAT,
	[__NR_openat2] = ETRACE_CALL_OPENAT2,
#ifdef __NR_creat
	[__NR_creat] = ETRACE_CALL_CREAT,
#endif
	[__NR_close_range] = ETRACE_CALL_CLOSE_RANGE,
	[__NR_execve] = ETRACE_CALL_EXECVE,
	[__NR_execveat] = ETRACE_CALL_EXECVEAT,
	[__NR_io_uring_setup] = ETRACE_CALL_IO_URING_SETUP,
	[__NR_mount] = ETRACE_CALL_MOUNT,
	[__NR_umount2] = ETRACE_CALL_UMOUNT2,
	[__NR_pidfd_getfd] = ETRACE_CALL_PIDFD_GETFD,
	[__NR_open_tree] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_move_mount] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_fsopen] = ETRACE_CALL_NEW_MOUNT_API,
#ifdef __X32_SYSCALL_BIT
	[520] = ETRACE_CALL_EXECVE, /* __NR_x32_execve */
	[545] = ETRACE_CALL_EXECVEAT, /* __NR_x32_execveat */
#endif
};

#if defined(CONFIG_IA32_EMULATION)
const u8 etrace_compat_calls[ETRACE_COMPAT_CALLS] = {
	[__NR_ia32_openat] = ETRACE_CALL_OPENAT,
	[__NR_ia32_close] = ETRACE_CALL_CLOSE,
	[__NR_ia32_open] = ETRACE_CALL_OPEN,
	[__NR_ia32_fcntl] = ETRACE_CALL_FCNTL,
	[__NR_ia32_fcntl64] = ETRACE_CALL_FCNTL,
	[__NR_ia32_dup2] = ETRACE_CALL_DUP2,
	[__NR_ia32_clone] = ETRACE_CALL_CLONE,
	[__NR_ia32_clone3] = ETRACE_CALL_CLONE3,
	[__NR_ia32_pipe2] = ETRACE_CALL_PIPE2,
	[__NR_ia32_pipe] = ETRACE_CALL_PIPE,
	[__NR_ia32_dup] = ETRACE_CALL_DUP,
	[__NR_ia32_dup3] = ETRACE_CALL_DUP3,
	[__NR_ia32_rename] = ETRACE_CALL_RENAME,
	[__NR_ia32_renameat] = ETRACE_CALL_RENAMEAT,
	[__NR_ia32_renameat2] = ETRACE_CALL_RENAMEAT2,
	[__NR_ia32_link] = ETRACE_CALL_LINK,
	[__NR_ia32_linkat] = ETRACE_CALL_LINKAT,
	[__NR_ia32_symlink] = ETRACE_CALL_SYMLINK,
	[__NR_ia32_symlinkat] = ETRACE_CALL_SYMLINKAT,
	[__NR_ia32_openat2] = ETRACE_CALL_OPENAT2,
	[__NR_ia32_creat] = ETRACE_CALL_CREAT,
	[__NR_ia32_close_range] = ETRACE_CALL_CLOSE_RANGE,
	[__NR_ia32_execve] = ETRACE_CALL_EXECVE,
	[__NR_ia32_execveat] = ETRACE_CALL_EXECVEAT,
	[__NR_ia32_io_uring_setup] = ETRACE_CALL_IO_URING_SETUP,
	[__NR_ia32_mount] = ETRACE_CALL_MOUNT,
	[__NR_ia32_umount] = ETRACE_CALL_OLDUMOUNT,
	[__NR_ia32_umount2] = ETRACE_CALL_UMOUNT2,
	[__NR_ia32_pidfd_getfd] = ETRACE_CALL_PIDFD_GETFD,
	[__NR_ia32_open_tree] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_ia32_move_mount] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_ia32_fsopen] = ETRACE_CALL_NEW_MOUNT_API,
};
#elif defined(ETRACE_HAS_COMPAT_CALLS)
/* The ARM EABI: arm64's own header for it differs between releases. */
const u8 etrace_compat_calls[ETRACE_COMPAT_CALLS] = {
	[322] = ETRACE_CALL_OPENAT, /* openat */
	[6] = ETRACE_CALL_CLOSE, /* close */
	[5] = ETRACE_CALL_OPEN, /* open */
	[55] = ETRACE_CALL_FCNTL, /* fcntl */
	[221] = ETRACE_CALL_FCNTL, /* fcntl64 */
	[63] = ETRACE_CALL_DUP2, /* dup2 */
	[120] = ETRACE_CALL_CLONE, /* clone */
	[435] = ETRACE_CALL_CLONE3, /* clone3 */
	[359] = ETRACE_CALL_PIPE2, /* pipe2 */
	[42] = ETRACE_CALL_PIPE, /* pipe */
	[41] = ETRACE_CALL_DUP, /* dup */
	[358] = ETRACE_CALL_DUP3, /* dup3 */
	[38] = ETRACE_CALL_RENAME, /* rename */
	[329] = ETRACE_CALL_RENAMEAT, /* renameat */
	[382] = ETRACE_CALL_RENAMEAT2, /* renameat2 */
	[9] = ETRACE_CALL_LINK, /* link */
	[330] = ETRACE_CALL_LINKAT, /* linkat */
	[83] = ETRACE_CALL_SYMLINK, /* symlink */
	[331] = ETRACE_CALL_SYMLINKAT, /* symlinkat */
	[437] = ETRACE_CALL_OPENAT2, /* openat2 */
	[8] = ETRACE_CALL_CREAT, /* creat */
	[436] = ETRACE_CALL_CLOSE_RANGE, /* close_range */
	[11] = ETRACE_CALL_EXECVE, /* execve */
	[387] = ETRACE_CALL_EXECVEAT, /* execveat */
	[425] = ETRACE_CALL_IO_URING_SETUP, /* io_uring_setup */
	[21] = ETRACE_CALL_MOUNT, /* mount */
	[52] = ETRACE_CALL_UMOUNT2, /* umount2 */
	[438] = ETRACE_CALL_PIDFD_GETFD, /* pidfd_getfd */
	[428] = ETRACE_CALL_NEW_MOUNT_API, /* open_tree */
	[429] = ETRACE_CALL_NEW_MOUNT_API, /* move_mount */
	[430] = ETRACE_CALL_NEW_MOUNT_API, /* fsopen */
};
#endif
#endif /* ETRACE_CALL_NUMBERS */

#ifdef ETRACE_CALL_HANDLERS
/* close() has none: its handler gets the descriptor. */
static const struct etrace_handler *const handlers[ETRACE_N_CALLS_AT_EXIT] = {
	[ETRACE_CALL_OPENAT] = &etrace_open,
	[ETRACE_CALL_OPEN] = &etrace_open,
	[ETRACE_CALL_FCNTL] = &etrace_fcntl,
	[ETRACE_CALL_DUP2] = &etrace_dup,
	[ETRACE_CALL_CLONE] = &etrace_clone,
	[ETRACE_CALL_CLONE3] = &etrace_clone,
	[ETRACE_CALL_PIPE2] = &etrace_pipe,
	[ETRACE_CALL_PIPE] = &etrace_pipe,
	[ETRACE_CALL_DUP] = &etrace_dup,
	[ETRACE_CALL_DUP3] = &etrace_dup,
	[ETRACE_CALL_RENAME] = &etrace_pair,
	[ETRACE_CALL_RENAMEAT] = &etrace_pair,
	[ETRACE_CALL_RENAMEAT2] = &etrace_pair,
	[ETRACE_CALL_LINK] = &etrace_pair,
	[ETRACE_CALL_LINKAT] = &etrace_pair,
	[ETRACE_CALL_SYMLINK] = &etrace_symlink,
	[ETRACE_CALL_SYMLINKAT] = &etrace_symlink,
	[ETRACE_CALL_OPENAT2] = &etrace_open,
	[ETRACE_CALL_CREAT] = &etrace_open,
	[ETRACE_CALL_CLOSE_RANGE] = &etrace_close_range,
	[ETRACE_CALL_IO_URING_SETUP] = &io_uring,
	[ETRACE_CALL_MOUNT] = &etrace_mount,
	[ETRACE_CALL_OLDUMOUNT] = &etrace_umount,
	[ETRACE_CALL_UMOUNT2] = &etrace_umount,
	[ETRACE_CALL_PIDFD_GETFD] = &passed,
	[ETRACE_CALL_NEW_MOUNT_API] = &new_mount,
};
#endif /* ETRACE_CALL_HANDLERS */
