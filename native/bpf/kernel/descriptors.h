/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that close or copy descriptors, and what is written to standard output and error. */
#ifndef ETRACE_BPF_DESCRIPTORS_H
#define ETRACE_BPF_DESCRIPTORS_H

#include "path.h"

#include "bpf/calls.h"

/* ---- copies of standard error ---- */

#define ERROR_BIT(fd) ((u32)(fd) < 64 && (fd) != 2 ? 1ULL << (u32)(fd) : 0)

/* Where a descriptor from 64 up is noted, or -1; that of 0 is a free place. */
static __always_inline int high_error(const struct task *task, u32 fd)
{
	int found = -1;
	int i;

#pragma unroll
	for (i = 0; i < N_HIGH_ERRORS; i++)
		if (task->high_errors[i] == fd)
			found = i;
	return found;
}

static __always_inline void set_high_error(struct task *task, int at, u32 fd, bool is_old)
{
	int i;

#pragma unroll
	for (i = 0; i < N_HIGH_ERRORS; i++)
		if (i == at) {
			task->high_errors[i] = fd;
			task->old_high_errors &= ~(1U << i);
			task->old_high_errors |= is_old ? 1U << i : 0;
		}
}

static __always_inline bool leads_to_error(const struct task *task, int fd)
{
	return fd == 2 || (fd < 64 ? task->errors & ERROR_BIT(fd) : high_error(task, (u32)fd) >= 0);
}

static __always_inline void forget_error(struct task *task, int fd)
{
	if (fd >= 64) {
		set_high_error(task, high_error(task, (u32)fd), 0, false);
		return;
	}
	task->errors &= ~ERROR_BIT(fd);
	task->old_errors &= ~ERROR_BIT(fd);
}

static __always_inline void copy_error(struct task *task, int from, int to)
{
	bool is_error = leads_to_error(task, from);
	int at = from < 64 ? -1 : high_error(task, (u32)from);
	bool is_old = at < 0 ? task->old_errors & ERROR_BIT(from) : task->old_high_errors >> at & 1;

	forget_error(task, to);
	if (!is_error)
		return;
	if (to >= 64)
		set_high_error(task, high_error(task, 0), (u32)to, is_old);
	task->errors |= ERROR_BIT(to);
	task->old_errors |= is_old ? ERROR_BIT(to) : 0;
}

/* A forked child has the copies that the program made itself. */
static __always_inline void inherit_errors(struct task *child, const struct task *parent)
{
	int i;

	child->errors = parent->errors & ~parent->old_errors;
#pragma unroll
	for (i = 0; i < N_HIGH_ERRORS; i++)
		child->high_errors[i] = parent->old_high_errors >> i & 1 ? 0 : parent->high_errors[i];
}

/* ---- close, pipe and dup ---- */

#define EINTR 4
#define EIO 5
#define ENOSPC 28
#define EFBIG 27
#define ESTALE 116
#define ETIMEDOUT 110
#define EREMOTEIO 121
#define EDQUOT 122

/* File systems answer these when they write the rest of a file: the descriptor is free all the same. */
static __always_inline bool is_closed(s64 result)
{
	return result == 0 || result == -EINTR || result == -EIO || result == -ENOSPC ||
	       result == -EFBIG || result == -ESTALE || result == -ETIMEDOUT || result == -EREMOTEIO ||
	       result == -EDQUOT;
}

static __always_inline void put_close(struct task *task, const struct call *call)
{
	s64 result = call->result;

	if (!is_closed(result) || (result && file_of((int)call->args[0])))
		return;
	forget_error(task, (int)call->args[0]);
	put_plain(task, call->key, call->pid, RECORD_CLOSE, (int)call->args[0], 0, 0, 0);
}

static __always_inline void put_pipe(struct task *task, const struct call *call)
{
	int fds[2] = { -1, -1 };

	if (call->result < 0 || bpf_probe_read_user(fds, sizeof(fds), (void *)call->args[0]))
		return;
	forget_error(task, fds[0]);
	forget_error(task, fds[1]);
	put_plain(task, call->key, call->pid, RECORD_PIPE, fds[0], fds[1],
		  call->kind == CALL_PIPE2 ? (u32)call->args[1] : 0, 0);
}

#define F_DUPFD 0
#define F_DUPFD_CLOEXEC 1030
#define O_CLOEXEC 02000000

static __always_inline void put_dup(struct task *task, const struct call *call)
{
	u32 flags = call->kind == CALL_DUP3 ? (u32)call->args[2] & O_CLOEXEC : 0;

	if (call->result < 0)
		return;
	if (call->kind == CALL_FCNTL) {
		if ((u32)call->args[1] == F_DUPFD_CLOEXEC)
			flags = O_CLOEXEC;
		else if ((u32)call->args[1] != F_DUPFD)
			return;
	}
	copy_error(task, (int)call->args[0], (int)call->result);
	put_plain(task, call->key, call->pid, RECORD_DUP, (int)call->args[0], call->result, flags, 0);
}

#define BITS_WORDS (RECORD_TEXT_MAX / 8)

/* One word of the bits of the open descriptors from `first` to `last`; without `on_exec` of all that are open. */
__attribute__((noinline)) int put_closing_word(u64 open_fds, u64 on_exec, u32 first, u32 last, u32 i)
{
	struct scratch *scratch = scratch_get();
	u32 word = first / 64 + i;
	u64 bits = 0;
	u64 of_exec = 0;

	if (!scratch)
		return 0;
	bpf_probe_read_kernel(&bits, sizeof(bits), (void *)(open_fds + word * 8));
	if (on_exec) {
		bpf_probe_read_kernel(&of_exec, sizeof(of_exec), (void *)(on_exec + word * 8));
		bits &= of_exec;
	}
	if (!i)
		bits &= ~0ULL << (first % 64);
	if (word == last / 64 && last % 64 != 63)
		bits &= (1ULL << (last % 64 + 1)) - 1;
	*(u64 *)(scratch->text + (i & (BITS_WORDS - 1)) * 8) = bits;
	return 0;
}

/* Bits of the open descriptors of a range; with `on_exec` of those alone that an execution closes. */
__attribute__((noinline)) int put_closing(u64 key, u32 pid, u32 on_exec, u32 first, u32 last)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(current, files, fdt);
	struct scratch *scratch = record_begin(key, pid, RECORD_CLOSING);
	struct task *task = task_of(key);
	u64 open_fds, close_on_exec;
	u32 max_fds;
	u32 i;

	if (!table || !scratch || !task)
		return 0;
	max_fds = BPF_CORE_READ(table, max_fds);
	open_fds = (u64)BPF_CORE_READ(table, open_fds);
	close_on_exec = on_exec ? (u64)BPF_CORE_READ(table, close_on_exec) : 0;
	scratch->head.values[0] = first / 64 * 64;
	scratch->head.values[1] = on_exec;
	if (last >= max_fds)
		last = max_fds - 1;
	for (i = 0; i < BITS_WORDS; i++) {
		if (first > last || first / 64 + i > last / 64)
			break;
		put_closing_word(open_fds, close_on_exec, first, last, i);
	}
	scratch->head.lens[0] = (u16)(i * 8);
	record_put(task, scratch, i * 8, wake_flags());
	return 0;
}

/* ---- what is written ---- */

#define MOST_WRITTEN 16 /* chunks of one call: the first half and the last */

static __always_inline int stream_of(const struct task *task, int fd)
{
	if (leads_to_error(task, fd))
		return wants_stderr ? 2 : 0;
	return fd == 1 && wants_stdout ? 1 : 0;
}

/* At most a chunk of `n` bytes at an address, as RECORD_WRITTEN, after `cut` that are left out. */
__attribute__((noinline)) int put_written_chunk(u64 key, int fd, u64 address, u64 n, u64 cut)
{
	return put_memory(key, current_pid(), RECORD_WRITTEN, fd, (s64)cut, address, n);
}

/* `n` bytes at an address, as RECORD_WRITTEN. */
__attribute__((noinline)) int put_written(u64 key, int fd, u64 address, u64 n)
{
	u64 most = MOST_WRITTEN * RECORD_CHUNK;
	u64 done = 0;
	u64 cut;
	int i;

	for (i = 0; i < MOST_WRITTEN + 1; i++) {
		if (done >= n)
			break;
		cut = n > most && i == MOST_WRITTEN / 2 ? n - most : 0;
		done += cut;
		put_written_chunk(key, fd, address + done, n - done, cut);
		done += RECORD_CHUNK;
	}
	return 0;
}

#define MOST_VECTORS 64

static __always_inline void put_write(const struct task *task, const struct call *call)
{
	int stream = call->result > 0 ? stream_of(task, (int)call->args[0]) : 0;
	u64 left = (u64)call->result;
	int i;

	if (!stream)
		return;
	if (call->kind == CALL_WRITE) {
		put_written(call->key, stream, call->args[1], left);
		return;
	}
	for (i = 0; i < MOST_VECTORS; i++) {
		u64 vector[2] = { 0, 0 };
		u32 narrow[2] = { 0, 0 };

		if (!left || i >= (int)call->args[2])
			break;
		if (call->is_compat) {
			bpf_probe_read_user(narrow, sizeof(narrow), (void *)(call->args[1] + (u64)i * 8));
			vector[0] = narrow[0];
			vector[1] = narrow[1];
		} else {
			bpf_probe_read_user(vector, sizeof(vector), (void *)(call->args[1] + (u64)i * 16));
		}
		if (vector[1] > left)
			vector[1] = left;
		put_written(call->key, stream, vector[0], vector[1]);
		left -= vector[1];
	}
}

#endif /* ETRACE_BPF_DESCRIPTORS_H */
