// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers of the calls that the hooks look at, one byte each. Numbers of one architecture are never
 * given to another call, so those of compat modes that lack a header for kernel code stand here.
 */
#include <linux/cache.h>
#include <linux/init.h>
#include <linux/unistd.h>
#ifdef CONFIG_IA32_EMULATION
#include <asm/unistd_32_ia32.h>
#endif

#include "event/syscall_table.h"

const u8 etrace_native_calls[ETRACE_NATIVE_CALLS] = {
	/* newer architectures lack the calls that a later one replaced */
#ifdef __NR_open
	[__NR_open] = ETRACE_CALL_OPEN,
	[__NR_creat] = ETRACE_CALL_CREAT,
	[__NR_pipe] = ETRACE_CALL_PIPE,
	[__NR_dup2] = ETRACE_CALL_DUP2,
	[__NR_rename] = ETRACE_CALL_RENAME,
	[__NR_link] = ETRACE_CALL_LINK,
	[__NR_symlink] = ETRACE_CALL_SYMLINK,
#endif
#ifdef __NR_renameat
	[__NR_renameat] = ETRACE_CALL_RENAMEAT,
#endif
	[__NR_openat] = ETRACE_CALL_OPENAT,
	[__NR_openat2] = ETRACE_CALL_OPENAT2,
	[__NR_close] = ETRACE_CALL_CLOSE,
	[__NR_close_range] = ETRACE_CALL_CLOSE_RANGE,
	[__NR_pipe2] = ETRACE_CALL_PIPE2,
	[__NR_dup] = ETRACE_CALL_DUP,
	[__NR_dup3] = ETRACE_CALL_DUP3,
	[__NR_fcntl] = ETRACE_CALL_FCNTL,
	[__NR_renameat2] = ETRACE_CALL_RENAMEAT2,
	[__NR_linkat] = ETRACE_CALL_LINKAT,
	[__NR_symlinkat] = ETRACE_CALL_SYMLINKAT,
	[__NR_clone] = ETRACE_CALL_CLONE,
	[__NR_clone3] = ETRACE_CALL_CLONE3,
	[__NR_execve] = ETRACE_CALL_EXECVE,
	[__NR_execveat] = ETRACE_CALL_EXECVEAT,
	[__NR_mount] = ETRACE_CALL_MOUNT,
	[__NR_umount2] = ETRACE_CALL_UMOUNT2,
	[__NR_io_uring_setup] = ETRACE_CALL_IO_URING_SETUP,
	[__NR_pidfd_getfd] = ETRACE_CALL_PIDFD_GETFD,
	[__NR_move_mount] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_fsopen] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_open_tree] = ETRACE_CALL_NEW_MOUNT_API,
#ifdef __X32_SYSCALL_BIT
	[520] = ETRACE_CALL_EXECVE, /* __NR_x32_execve */
	[545] = ETRACE_CALL_EXECVEAT, /* __NR_x32_execveat */
#endif
};

#if defined(CONFIG_IA32_EMULATION)
const u8 etrace_compat_calls[ETRACE_COMPAT_CALLS] = {
	[__NR_ia32_open] = ETRACE_CALL_OPEN,
	[__NR_ia32_close] = ETRACE_CALL_CLOSE,
	[__NR_ia32_creat] = ETRACE_CALL_CREAT,
	[__NR_ia32_link] = ETRACE_CALL_LINK,
	[__NR_ia32_execve] = ETRACE_CALL_EXECVE,
	[__NR_ia32_mount] = ETRACE_CALL_MOUNT,
	[__NR_ia32_umount] = ETRACE_CALL_OLDUMOUNT,
	[__NR_ia32_rename] = ETRACE_CALL_RENAME,
	[__NR_ia32_dup] = ETRACE_CALL_DUP,
	[__NR_ia32_pipe] = ETRACE_CALL_PIPE,
	[__NR_ia32_umount2] = ETRACE_CALL_UMOUNT2,
	[__NR_ia32_fcntl] = ETRACE_CALL_FCNTL,
	[__NR_ia32_dup2] = ETRACE_CALL_DUP2,
	[__NR_ia32_symlink] = ETRACE_CALL_SYMLINK,
	[__NR_ia32_clone] = ETRACE_CALL_CLONE,
	[__NR_ia32_fcntl64] = ETRACE_CALL_FCNTL,
	[__NR_ia32_openat] = ETRACE_CALL_OPENAT,
	[__NR_ia32_renameat] = ETRACE_CALL_RENAMEAT,
	[__NR_ia32_linkat] = ETRACE_CALL_LINKAT,
	[__NR_ia32_symlinkat] = ETRACE_CALL_SYMLINKAT,
	[__NR_ia32_dup3] = ETRACE_CALL_DUP3,
	[__NR_ia32_pipe2] = ETRACE_CALL_PIPE2,
	[__NR_ia32_renameat2] = ETRACE_CALL_RENAMEAT2,
	[__NR_ia32_execveat] = ETRACE_CALL_EXECVEAT,
	[__NR_ia32_io_uring_setup] = ETRACE_CALL_IO_URING_SETUP,
	[__NR_ia32_open_tree] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_ia32_move_mount] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_ia32_fsopen] = ETRACE_CALL_NEW_MOUNT_API,
	[__NR_ia32_clone3] = ETRACE_CALL_CLONE3,
	[__NR_ia32_close_range] = ETRACE_CALL_CLOSE_RANGE,
	[__NR_ia32_openat2] = ETRACE_CALL_OPENAT2,
	[__NR_ia32_pidfd_getfd] = ETRACE_CALL_PIDFD_GETFD,
};
#elif defined(ETRACE_HAS_COMPAT_CALLS)
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
	[63] = ETRACE_CALL_DUP2,
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
#endif

bool etrace_exit_numbers[ETRACE_EXIT_NUMBERS] __ro_after_init;

static void __init note_numbers(const u8 *kinds, unsigned int n)
{
	unsigned int nr;

	for (nr = 0; nr < n; nr++)
		if (etrace_looked_at_exit(kinds[nr]))
			etrace_exit_numbers[nr] = true;
}

void __init etrace_syscall_table_init(void)
{
	BUILD_BUG_ON(ETRACE_NATIVE_CALLS > ETRACE_EXIT_NUMBERS);
	BUILD_BUG_ON(ETRACE_COMPAT_CALLS > ETRACE_EXIT_NUMBERS);
	note_numbers(etrace_native_calls, ETRACE_NATIVE_CALLS);
#ifdef ETRACE_HAS_COMPAT_CALLS
	note_numbers(etrace_compat_calls, ETRACE_COMPAT_CALLS);
#endif
}
