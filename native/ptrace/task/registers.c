// SPDX-License-Identifier: Apache-2.0
/*
 * Registers of a stopped task, machine by machine.
 *
 * Facts: arch/x86/entry/syscalls/syscall_{64,32}.tbl; for arm64 arch/arm64/kernel/ptrace.c: the
 * register set NT_PRSTATUS of a 32-bit program is that of an ARM one, also for a 64-bit tracer, and
 * its call number stays in r7.
 */
#include "task/registers.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#if defined(__x86_64__)
long registers_result(const struct task *task)
{
	return ptrace(PTRACE_PEEKUSER, task->tid, offsetof(struct user, regs.rax), NULL);
}

/* fork and vfork of x86-64, x32 and i386; none of these numbers is a clone in another table. */
bool registers_of_fork(const struct task *task)
{
	size_t at = offsetof(struct user, regs.orig_rax);
	long number = ptrace(PTRACE_PEEKUSER, task->tid, at, NULL);

	switch (number & ~0x40000000L) {
	case 57:
	case 58:
	case 2:
	case 190:
		return true;
	default:
		return false;
	}
}

/* The first argument of a clone, in the registers of both kinds of call. */
void registers_set_argument(const struct task *task, u64 value)
{
	struct __ptrace_syscall_info info;
	size_t at = offsetof(struct user, regs.rdi);

	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) > 0 &&
	    !(info.arch & 0x80000000)) /* __AUDIT_ARCH_64BIT */
		at = offsetof(struct user, regs.rbx);
	ptrace(PTRACE_POKEUSER, task->tid, at, value);
}

void registers_restore_argument(const struct task *task, u64 value)
{
	registers_set_argument(task, value);
}
#elif defined(__aarch64__)
#define ARM_NUMBER 7 /* register of a call's number */
#define ARM_FORK 2
#define ARM_VFORK 190

union registers {
	struct user_regs_struct wide;
	u32 narrow[18]; /* of a 32-bit program: r0 to r15, cpsr, r0 as the call got it */
};

/* Returns how many bytes they are, 0 where they cannot be had. */
static size_t read_registers(const struct task *task, union registers *registers)
{
	struct iovec iov = { registers, sizeof(*registers) };

	if (ptrace(PTRACE_GETREGSET, task->tid, NT_PRSTATUS, &iov) < 0)
		return 0;
	return iov.iov_len;
}

static bool are_narrow(size_t size)
{
	return size == sizeof(((union registers *)NULL)->narrow);
}

long registers_result(const struct task *task)
{
	union registers registers = { .narrow = { 0 } };
	size_t size = read_registers(task, &registers);

	if (!size)
		return 0;
	return are_narrow(size) ? (int32_t)registers.narrow[0] : (long)registers.wide.regs[0];
}

/* 64-bit programs have no such calls: they clone. */
bool registers_of_fork(const struct task *task)
{
	union registers registers;
	size_t size = read_registers(task, &registers);

	return are_narrow(size) && (registers.narrow[ARM_NUMBER] == ARM_FORK ||
				    registers.narrow[ARM_NUMBER] == ARM_VFORK);
}

void registers_set_argument(const struct task *task, u64 value)
{
	union registers registers;
	size_t size = read_registers(task, &registers);
	struct iovec iov = { &registers, size };

	if (!size)
		return;
	if (are_narrow(size))
		registers.narrow[0] = (u32)value;
	else
		registers.wide.regs[0] = value;
	ptrace(PTRACE_SETREGSET, task->tid, NT_PRSTATUS, &iov);
}

/* The result has replaced it; a restarted call gets the kernel's saved value. */
void registers_restore_argument(const struct task *task, u64 value)
{
	(void)task;
	(void)value;
}
#endif
