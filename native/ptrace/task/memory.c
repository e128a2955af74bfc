// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of the traced tasks. process_vm_readv() reads anything in one call; where a container's
 * seccomp profile refuses it, /proc/PID/mem takes its place.
 *
 * The CPU of an event is the cpu_id field of the task's restartable sequence area, which the kernel
 * keeps current (glibc 2.35 registers it for every thread): it costs one more iovec. Before the C
 * library has started, and without one that registers, it is the tracer's own CPU: the tracer
 * has just been woken by the task.
 */
#include "task/memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rseq.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "capture/proc.h"

#define PAGE_BYTES 4096 /* the smallest page: a chunk within one is readable whole or not at all */

#define RSEQ_FIRST_ASK 3 /* ld.so opens its cache and a library before anything is registered */

static bool no_process_vm; /* the kernel or a container refuses process_vm_readv */

/* By /proc/TID/mem: read with O_RDONLY, write with O_WRONLY. */
static ssize_t use_mem(const struct task *task, u64 address, int flags, void *buf, size_t size)
{
	char path[PROC_NAME_MAX];
	ssize_t done;
	int fd;

	proc_name(path, task->tid, "mem");
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	done = flags == O_RDONLY ? pread(fd, buf, size, (off_t)address)
				 : pwrite(fd, buf, size, (off_t)address);
	if (done < 0)
		done = -errno;
	close(fd);
	return done;
}

static bool is_refusal(int error)
{
	return error == EPERM || error == ENOSYS;
}

ssize_t memory_read(const struct task *task, u64 address, void *buf, size_t size)
{
	struct iovec local = { buf, size };
	struct iovec remote = { (void *)(uintptr_t)address, size };
	ssize_t got;

	if (no_process_vm)
		return use_mem(task, address, O_RDONLY, buf, size);
	got = process_vm_readv(task->tid, &local, 1, &remote, 1, 0);
	if (got >= 0)
		return got;
	if (!is_refusal(errno))
		return -errno;
	got = use_mem(task, address, O_RDONLY, buf, size);
	no_process_vm = got >= 0;
	return got;
}

ssize_t memory_write(const struct task *task, u64 address, const void *buf, size_t size)
{
	return use_mem(task, address, O_WRONLY, (void *)buf, size);
}

/* Entries of /proc/PID/pagemap: the page is in memory, or on a swap device. */
#define PAGE_IS_THERE (UINT64_C(3) << 62)

bool memory_is_there(const struct task *task, u64 address, size_t size)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE);
	size_t n = (size_t)((address % page + size + page - 1) / page);
	u64 entries[MEMORY_LOOK_MAX / PAGE_BYTES + 1] = { 0 };
	char path[PROC_NAME_MAX];
	size_t i;
	int fd;

	proc_name(path, task->tid, "pagemap");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) /* unknown */
		return true;
	if (pread(fd, entries, n * sizeof(*entries), (off_t)(address / page * sizeof(*entries))) < 0)
		entries[0] = 0;
	close(fd);
	for (i = 0; i < n && entries[i] & PAGE_IS_THERE; i++)
		;
	return i == n;
}

void memory_bring_in(pid_t tid, u64 address)
{
	struct task task = { .tid = tid };
	char text[PATH_MAX];

	memory_read(&task, address, text, sizeof(text));
}

static void set_cpu_of_tracer(struct task *task)
{
	int cpu = sched_getcpu();

	if (cpu >= 0)
		task->cpu = (u32)cpu;
}

/*
 * A program registers its area once its C library is loaded, after an unknown number of calls, or
 * never: ask at growing intervals.
 */
static void find_rseq(struct task *task)
{
	struct __ptrace_rseq_configuration config;

	if (++task->rseq_reads < task->rseq_ask_at)
		return;
	task->rseq_ask_at *= 2;
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, task->tid, sizeof(config), &config) > 0)
		task->rseq = config.rseq_abi_pointer;
}

/* The old program's area is gone; asked now the kernel would still name it. */
void memory_begin_program(struct task *task)
{
	task->rseq = 0;
	task->rseq_reads = 0;
	task->rseq_ask_at = RSEQ_FIRST_ASK;
	set_cpu_of_tracer(task);
}

static void set_cpu(struct task *task, u32 cpu)
{
	if ((int32_t)cpu >= 0) /* negative: the area is being registered */
		task->cpu = cpu;
}

void memory_note_cpu(struct task *task)
{
	u32 cpu;

	if (!task->rseq)
		find_rseq(task);
	if (task->rseq &&
	    memory_read(task, task->rseq + offsetof(struct rseq, cpu_id), &cpu, sizeof(cpu)) ==
	    sizeof(cpu))
		set_cpu(task, cpu);
	else
		set_cpu_of_tracer(task);
}

static size_t chunk_size(u64 address, size_t wanted)
{
	size_t to_page_end = PAGE_BYTES - address % PAGE_BYTES;

	return wanted < to_page_end ? wanted : to_page_end;
}

/* First chunk and CPU in one call. */
static ssize_t read_first(struct task *task, u64 address, char *buf, size_t size)
{
	u32 cpu = (u32)-1;
	struct iovec local[2] = { { buf, size }, { &cpu, sizeof(cpu) } };
	struct iovec remote[2] = { { (void *)(uintptr_t)address, size }, { NULL, sizeof(cpu) } };
	ssize_t got;

	if (!task->rseq)
		find_rseq(task);
	if (!task->rseq || no_process_vm) {
		memory_note_cpu(task);
		return memory_read(task, address, buf, size);
	}
	remote[1].iov_base = (void *)(uintptr_t)(task->rseq + offsetof(struct rseq, cpu_id));
	got = process_vm_readv(task->tid, local, 2, remote, 2, 0);
	if (got <= 0)
		return memory_read(task, address, buf, size);
	if ((size_t)got <= size) /* the area is gone */
		task->rseq = 0;
	set_cpu(task, cpu);
	return (size_t)got > size ? (ssize_t)size : got;
}

ssize_t memory_read_path(struct task *task, u64 address, char buf[PATH_MAX])
{
	size_t size = chunk_size(address, MEMORY_CHUNK);
	ssize_t got = read_first(task, address, buf, size);
	size_t len = 0;

	while (got > 0) {
		const char *null = memchr(buf + len, '\0', (size_t)got);

		if (null)
			return null - buf;
		len += (size_t)got;
		if (len >= PATH_MAX)
			return -ENAMETOOLONG;
		size = chunk_size(address + len, PATH_MAX - len);
		got = memory_read(task, address + len, buf + len, size);
	}
	return got < 0 ? got : -EFAULT;
}

ssize_t memory_read_string_again(const struct task *task, u64 address, char buf[PATH_MAX])
{
	size_t len = 0;

	while (len < PATH_MAX) {
		size_t size = chunk_size(address + len, PATH_MAX - len);
		ssize_t got = -EAGAIN;
		const char *null;

		if (memory_is_there(task, address + len, size))
			got = memory_read(task, address + len, buf + len, size);
		if (got <= 0)
			return got ? got : -EFAULT;
		null = memchr(buf + len, '\0', (size_t)got);
		if (null)
			return null - buf;
		len += (size_t)got;
	}
	return -ENAMETOOLONG;
}

/* ---- registers ---- */

/*
 * Registers of a stopped task, machine by machine.
 *
 * Facts: arch/x86/entry/syscalls/syscall_{64,32}.tbl; for arm64 arch/arm64/kernel/ptrace.c: the
 * register set NT_PRSTATUS of a 32-bit program is that of an ARM one, also for a 64-bit tracer, and
 * its call number stays in r7.
 */

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
