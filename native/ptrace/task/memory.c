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

#include <errno.h>
#include <fcntl.h>
#include <linux/rseq.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracer.h"

#define FIRST_CHUNK 256 /* most paths are shorter; longer reads copy for nothing */
#define PAGE_BYTES 4096 /* the smallest page: a chunk within one is readable whole or not at all */

#define RSEQ_FIRST_ASK 3 /* ld.so opens its cache and a library before anything is registered */

static bool no_process_vm; /* the kernel or a container refuses process_vm_readv */

static int open_mem(const struct task *task, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", task->tid);
	return open(path, flags | O_CLOEXEC);
}

static ssize_t read_mem(const struct task *task, u64 address, void *buf, size_t size)
{
	int fd = open_mem(task, O_RDONLY);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = pread(fd, buf, size, (off_t)address);
	if (got < 0)
		got = -errno;
	close(fd);
	return got;
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
		return read_mem(task, address, buf, size);
	got = process_vm_readv(task->tid, &local, 1, &remote, 1, 0);
	if (got >= 0)
		return got;
	if (!is_refusal(errno))
		return -errno;
	got = read_mem(task, address, buf, size);
	no_process_vm = got >= 0;
	return got;
}

ssize_t memory_write(const struct task *task, u64 address, const void *buf, size_t size)
{
	int fd = open_mem(task, O_WRONLY);
	ssize_t put;

	if (fd < 0)
		return -errno;
	put = pwrite(fd, buf, size, (off_t)address);
	if (put < 0)
		put = -errno;
	close(fd);
	return put;
}

/* Entries of /proc/PID/pagemap: the page is in memory, or on a swap device. */
#define PAGE_IS_THERE (UINT64_C(3) << 62)

bool memory_is_there(const struct task *task, u64 address)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE);
	size_t n = address % page + FIRST_CHUNK > page ? 2 : 1;
	u64 entries[2] = { PAGE_IS_THERE, PAGE_IS_THERE };
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", task->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) /* unknown */
		return true;
	if (pread(fd, entries, n * sizeof(*entries), (off_t)(address / page * sizeof(*entries))) <= 0)
		entries[0] = 0;
	close(fd);
	return (entries[0] & PAGE_IS_THERE) && (entries[1] & PAGE_IS_THERE);
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
	size_t size = chunk_size(address, FIRST_CHUNK);
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
