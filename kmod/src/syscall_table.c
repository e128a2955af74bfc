// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers of the calls that the hooks look at, one byte each. Numbers of one architecture are never
 * given to another call, so those of compat modes that lack a header for kernel code stand here.
 */
#include <linux/unistd.h>
#ifdef CONFIG_IA32_EMULATION
#include <asm/unistd_32_ia32.h>
#endif

#include "syscall_table.h"

#define CALL(name, kind) [__NR_##name] = ETRACE_CALL_##kind

const u8 etrace_native_calls[ETRACE_NATIVE_CALLS] = {
	/* newer architectures lack the calls that a later one replaced */
#ifdef __NR_open
	CALL(open, OPEN),
	CALL(creat, CREAT),
	CALL(pipe, PIPE),
	CALL(dup2, DUP),
	CALL(rename, RENAME),
	CALL(link, LINK),
	CALL(symlink, SYMLINK),
#endif
#ifdef __NR_renameat
	CALL(renameat, RENAMEAT),
#endif
	CALL(openat, OPENAT),
	CALL(openat2, OPENAT2),
	CALL(close, CLOSE),
	CALL(close_range, CLOSE_RANGE),
	CALL(pipe2, PIPE2),
	CALL(dup, DUP),
	CALL(dup3, DUP3),
	CALL(fcntl, FCNTL),
	CALL(renameat2, RENAMEAT2),
	CALL(linkat, LINKAT),
	CALL(symlinkat, SYMLINKAT),
	CALL(clone, CLONE),
	CALL(clone3, CLONE3),
	CALL(execve, EXECVE),
	CALL(execveat, EXECVEAT),
	CALL(mount, MOUNT),
	CALL(umount2, UMOUNT2),
	CALL(io_uring_setup, IO_URING_SETUP),
	CALL(pidfd_getfd, PIDFD_GETFD),
	CALL(move_mount, NEW_MOUNT_API),
	CALL(fsopen, NEW_MOUNT_API),
	CALL(open_tree, NEW_MOUNT_API),
#ifdef __X32_SYSCALL_BIT
	[520] = ETRACE_CALL_EXECVE, /* __NR_x32_execve */
	[545] = ETRACE_CALL_EXECVEAT, /* __NR_x32_execveat */
#endif
};

#if defined(CONFIG_IA32_EMULATION)
#define COMPAT_CALL(name, kind) [__NR_ia32_##name] = ETRACE_CALL_##kind

const u8 etrace_compat_calls[ETRACE_COMPAT_CALLS] = {
	COMPAT_CALL(open, OPEN),
	COMPAT_CALL(close, CLOSE),
	COMPAT_CALL(creat, CREAT),
	COMPAT_CALL(link, LINK),
	COMPAT_CALL(execve, EXECVE),
	COMPAT_CALL(mount, MOUNT),
	COMPAT_CALL(umount, OLDUMOUNT),
	COMPAT_CALL(rename, RENAME),
	COMPAT_CALL(dup, DUP),
	COMPAT_CALL(pipe, PIPE),
	COMPAT_CALL(umount2, UMOUNT2),
	COMPAT_CALL(fcntl, FCNTL),
	COMPAT_CALL(dup2, DUP),
	COMPAT_CALL(symlink, SYMLINK),
	COMPAT_CALL(clone, CLONE),
	COMPAT_CALL(fcntl64, FCNTL),
	COMPAT_CALL(openat, OPENAT),
	COMPAT_CALL(renameat, RENAMEAT),
	COMPAT_CALL(linkat, LINKAT),
	COMPAT_CALL(symlinkat, SYMLINKAT),
	COMPAT_CALL(dup3, DUP3),
	COMPAT_CALL(pipe2, PIPE2),
	COMPAT_CALL(renameat2, RENAMEAT2),
	COMPAT_CALL(execveat, EXECVEAT),
	COMPAT_CALL(io_uring_setup, IO_URING_SETUP),
	COMPAT_CALL(open_tree, NEW_MOUNT_API),
	COMPAT_CALL(move_mount, NEW_MOUNT_API),
	COMPAT_CALL(fsopen, NEW_MOUNT_API),
	COMPAT_CALL(clone3, CLONE3),
	COMPAT_CALL(close_range, CLOSE_RANGE),
	COMPAT_CALL(openat2, OPENAT2),
	COMPAT_CALL(pidfd_getfd, PIDFD_GETFD),
};
#elif defined(CONFIG_ARM64) && defined(CONFIG_COMPAT)
/* The ARM EABI (arch/arm/tools/syscall.tbl): arm64's own header for it differs between releases. */
const u8 etrace_compat_calls[ETRACE_COMPAT_CALLS] = {
	[5] = ETRACE_CALL_OPEN,
	[6] = ETRACE_CALL_CLOSE,
	[8] = ETRACE_CALL_CREAT,
	[9] = ETRACE_CALL_LINK,
	[11] = ETRACE_CALL_EXECVE,
	[21] = ETRACE_CALL_MOUNT,
	[38] = ETRACE_CALL_RENAME,
	[41] = ETRACE_CALL_DUP,
	[42] = ETRACE_CALL_PIPE,
	[52] = ETRACE_CALL_UMOUNT2,
	[55] = ETRACE_CALL_FCNTL,
	[63] = ETRACE_CALL_DUP, /* dup2 */
	[83] = ETRACE_CALL_SYMLINK,
	[120] = ETRACE_CALL_CLONE,
	[221] = ETRACE_CALL_FCNTL, /* fcntl64 */
	[322] = ETRACE_CALL_OPENAT,
	[329] = ETRACE_CALL_RENAMEAT,
	[330] = ETRACE_CALL_LINKAT,
	[331] = ETRACE_CALL_SYMLINKAT,
	[358] = ETRACE_CALL_DUP3,
	[359] = ETRACE_CALL_PIPE2,
	[382] = ETRACE_CALL_RENAMEAT2,
	[387] = ETRACE_CALL_EXECVEAT,
	[425] = ETRACE_CALL_IO_URING_SETUP,
	[428] = ETRACE_CALL_NEW_MOUNT_API, /* open_tree */
	[429] = ETRACE_CALL_NEW_MOUNT_API, /* move_mount */
	[430] = ETRACE_CALL_NEW_MOUNT_API, /* fsopen */
	[435] = ETRACE_CALL_CLONE3,
	[436] = ETRACE_CALL_CLOSE_RANGE,
	[437] = ETRACE_CALL_OPENAT2,
	[438] = ETRACE_CALL_PIDFD_GETFD,
};
#elif defined(CONFIG_COMPAT)
#error "etrace has no table of this architecture's 32-bit system calls: add one here"
#endif
