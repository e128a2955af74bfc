// SPDX-License-Identifier: GPL-2.0-only
/*
 * close, close_range, pipe, pipe2, dup, dup2, dup3, fcntl(F_DUPFD*) -> Close, Pipe, Dup; messages
 * that bring descriptors are counted. Context: sys_exit and kprobes, atomic; task_work for a long
 * list of Close, and for a Pipe whose page is away.
 */
#define ETRACE_EVENT_DEFS
#include <linux/bitmap.h>
#include <linux/fcntl.h>
#include <linux/fdtable.h>

#include "event/call.h"
#include "event/handlers.h"
#include "event/path.h"
#include "memory.h"
#include "record/emit.h"
#include "task/deferred.h"

static __always_inline void put_close(struct etrace_task *entry, u64 time_ns, int fd)
{
	s64 value = fd;

	etrace_emit_inline(&entry->origin, time_ns,
			   etrace_whole_from(&etrace_event_defs[ETRACE_EV_CLOSE]), ETRACE_EV_CLOSE,
			   &value, NULL);
}

static bool is_open(int fd)
{
	struct etrace_file file = etrace_file_get(fd);

	etrace_file_put(file);
	return file.file;
}

static bool is_shared(const struct files_struct *files)
{
	return atomic_read(&files->count) > 1;
}

bool etrace_zero_is_new(void)
{
	const struct files_struct *files = current->files;

	return !etrace_may_be_made_up() || is_shared(files) || READ_ONCE(files->next_fd) == 1;
}

/*
 * What file systems answer when they write the rest of a file: the descriptor is free all the same.
 * Other errors are those of descriptors that never were, or of a seccomp filter.
 */
static bool is_closed(int fd, s64 result)
{
	switch (result) {
	case 0:
		/* another thread may have got the descriptor already */
		return !etrace_may_be_made_up() || is_shared(current->files) ||
		       !is_open(fd);
	case -EINTR:
	case -EIO:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
	case -ESTALE:
	case -EREMOTEIO:
	case -ETIMEDOUT:
		return !is_open(fd);
	default:
		return false;
	}
}

void etrace_exit_close(struct etrace_task *entry, int fd, s64 result)
{
	if (is_closed(fd, result))
		put_close(entry, etrace_now(), fd);
}

/* ---- several at once ---- */

static unsigned long closing_bits(const struct fdtable *fdt, bool on_exec, u32 word)
{
	unsigned long bits = READ_ONCE(fdt->open_fds[word]);

	return on_exec ? bits & READ_ONCE(fdt->close_on_exec[word]) : bits;
}

static u32 copy_bits(struct etrace_descriptors *to, const struct fdtable *fdt, bool on_exec,
		     u32 first, u32 last)
{
	u32 word = first / BITS_PER_LONG;
	u32 n = 0;
	u32 i;

	for (i = 0; i < BITS_TO_LONGS(to->n_bits); i++, word++) {
		to->bits[i] = closing_bits(fdt, on_exec, word);
		if (word == first / BITS_PER_LONG)
			to->bits[i] &= BITMAP_FIRST_WORD_MASK(first);
		if (word == last / BITS_PER_LONG)
			to->bits[i] &= BITMAP_LAST_WORD_MASK(last + 1);
		n += hweight_long(to->bits[i]);
	}
	return n;
}

void etrace_descriptors_keep(struct etrace_task *entry, const struct files_struct *files,
			     bool on_exec, u32 first, u32 last)
{
	const struct fdtable *fdt = rcu_dereference(files->fdt);
	struct etrace_descriptors *kept;
	size_t size;
	u32 n_bits;

	etrace_descriptors_free(entry); /* of a call that failed */
	if (first >= fdt->max_fds)
		return;
	last = min_t(u32, last, fdt->max_fds - 1);
	n_bits = last + 1 - round_down(first, BITS_PER_LONG);
	size = struct_size(kept, bits, BITS_TO_LONGS(n_bits));
	kept = size <= sizeof(entry->few_closing) ? (void *)entry->few_closing :
						    etrace_alloc(size);
	if (!kept) {
		etrace_count(ETRACE_COUNT_NO_MEMORY);
		return;
	}
	kept->first = round_down(first, BITS_PER_LONG);
	kept->n_bits = n_bits;
	kept->n = copy_bits(kept, fdt, on_exec, first, last);
	entry->closing = kept;
}

static void put_close_range(struct etrace_task *entry, u64 time_ns, bool may_sleep)
{
	const struct etrace_descriptors *closed = entry->closing;
	u32 bit;

	for_each_set_bit(bit, closed->bits, closed->n_bits) {
		put_close(entry, time_ns, closed->first + bit);
		if (may_sleep)
			cond_resched();
	}
	etrace_descriptors_free(entry);
}

int etrace_on_close_range(struct kprobe *probe, struct pt_regs *regs)
{
	struct etrace_task *entry;
	u64 args[6];

	rcu_read_lock();
	entry = etrace_task_in_call(ETRACE_CALL_CLOSE_RANGE, ETRACE_CALL_CLOSE_RANGE);
	if (entry) {
		etrace_read_arguments(task_pt_regs(current), args);
		if ((u32)args[0] <= (u32)args[1] && !((u32)args[2] & CLOSE_RANGE_CLOEXEC))
			etrace_descriptors_keep(entry, current->files, false, args[0], args[1]);
	}
	rcu_read_unlock();
	return 0;
}

#define CLOSES_AT_ONCE 64 /* more take too long where nothing else can run */

static void exit_close_range(struct etrace_task *entry, const struct etrace_call *call)
{
	if (!entry->closing)
		return;
	if (call->result < 0)
		etrace_descriptors_free(entry);
	else if (entry->closing->n <= CLOSES_AT_ONCE)
		put_close_range(entry, etrace_now(), false);
	else
		etrace_defer(entry, call, &etrace_close_range);
}

static void work_close_range(struct etrace_task *entry, const struct etrace_call *call,
			     struct etrace_scratch *space)
{
	put_close_range(entry, call->time_ns, true);
}

const struct etrace_handler etrace_close_range = {
	.exit = exit_close_range,
	.work = work_close_range,
};

/* ---- pipe, dup, fcntl ---- */

static bool is_one_pipe(const struct file *reader, const struct file *writer)
{
	return reader && writer && S_ISFIFO(file_inode(reader)->i_mode) &&
	       file_inode(reader) == file_inode(writer) && reader->f_mode & FMODE_READ &&
	       writer->f_mode & FMODE_WRITE;
}

static bool are_both_files(const int *fds, bool (*are)(const struct file *, const struct file *))
{
	struct etrace_file first = etrace_file_get(fds[0]);
	struct etrace_file second = etrace_file_get(fds[1]);
	bool holds = are(first.file, second.file);

	etrace_file_put(second);
	etrace_file_put(first);
	return holds;
}

/* Whether the descriptors show that a filter did not fake the call. */
static bool shows_in(const int *fds, bool (*are)(const struct file *, const struct file *))
{
	return !etrace_may_be_made_up() || is_shared(current->files) || are_both_files(fds, are);
}

static void put_pipe(struct etrace_task *entry, const struct etrace_call *call, u64 time_ns,
		     const int *fds)
{
	s64 values[3] = { fds[0], fds[1] };

	if (!shows_in(fds, is_one_pipe))
		return;
	values[2] = call->kind == ETRACE_CALL_PIPE2 ? (u32)call->args[1] : 0;
	etrace_emit(&entry->origin, time_ns, ETRACE_EV_PIPE, values, NULL);
}

static void exit_pipe(struct etrace_task *entry, const struct etrace_call *call)
{
	int fds[2];

	if (call->result < 0)
		return;
	if (etrace_user_bytes(fds, call->args[0], sizeof(fds)))
		etrace_defer(entry, call, &etrace_pipe);
	else
		put_pipe(entry, call, etrace_now(), fds);
}

static void work_pipe(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space)
{
	int fds[2];

	if (etrace_user_bytes_later(fds, call->args[0], sizeof(fds)))
		etrace_count(ETRACE_COUNT_UNREAD_STRINGS);
	else
		put_pipe(entry, call, call->time_ns, fds);
}

const struct etrace_handler etrace_pipe = { .exit = exit_pipe, .work = work_pipe };

static bool is_one_file(const struct file *old, const struct file *new)
{
	return old && old == new;
}

/* dup() and fcntl() take a free descriptor, dup2() and dup3() the one that they are given. */
static bool is_dup(const struct etrace_call *call)
{
	const int fds[2] = { (int)call->args[0], call->result };

	if (call->kind == ETRACE_CALL_DUP)
		return etrace_is_new(call->result);
	if (call->kind == ETRACE_CALL_FCNTL)
		return call->result >= (s64)call->args[2] && etrace_is_new(call->result);
	return call->result == (int)call->args[1] && shows_in(fds, is_one_file);
}

static void put_dup(struct etrace_task *entry, const struct etrace_call *call, u32 flags)
{
	s64 values[3] = { (int)call->args[0], call->result, flags };

	if (call->result >= 0 && is_dup(call))
		etrace_emit(&entry->origin, etrace_now(), ETRACE_EV_DUP, values, NULL);
}

static void exit_dup(struct etrace_task *entry, const struct etrace_call *call)
{
	u32 flags = call->kind == ETRACE_CALL_DUP3 ? (u32)call->args[2] & O_CLOEXEC : 0;

	put_dup(entry, call, flags);
}

const struct etrace_handler etrace_dup = { .exit = exit_dup };

static void exit_fcntl(struct etrace_task *entry, const struct etrace_call *call)
{
	switch ((u32)call->args[1]) {
	case F_DUPFD:
		put_dup(entry, call, 0);
		break;
	case F_DUPFD_CLOEXEC:
		put_dup(entry, call, O_CLOEXEC);
		break;
	}
}

const struct etrace_handler etrace_fcntl = { .exit = exit_fcntl };

/* Messages without descriptors do not come here: a recvmsg() pays for none of this. */
int etrace_on_detach_fds(struct kprobe *probe, struct pt_regs *regs)
{
	rcu_read_lock();
	if (etrace_task_find(current))
		etrace_count(ETRACE_COUNT_PASSED_FDS);
	rcu_read_unlock();
	return 0;
}
