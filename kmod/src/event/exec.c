// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program was loaded -> Usage, Close (close-on-exec), Comm, New_proc and strings, Env. A kprobe
 * notes which descriptors are about to be closed, the tracepoint names and file (atomic); task_work
 * resolves and prints, before the first instruction of the new program. An execution that fails
 * after the point of no return prints nothing: the task dies of it.
 */
#include <linux/binfmts.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "event/call.h"
#include "event/handlers.h"
#include "event/names.h"
#include "event/path.h"
#include "etrace_builders.h"
#include "etrace_secret.h"
#include "memory.h"
#include "record/emit.h"
#include "task/deferred.h"

/* ---- before the task may sleep ---- */

static struct file *execveat_directory(void)
{
	struct pt_regs *regs = task_pt_regs(current);
	u64 args[6];

	if (etrace_call_kind(regs) != ETRACE_CALL_EXECVEAT)
		return NULL;
	etrace_read_arguments(regs, args);
	return (int)args[0] < 0 ? NULL : fget_raw(args[0]);
}

int etrace_on_close_on_exec(struct kprobe *probe, struct pt_regs *regs)
{
	struct files_struct *files = (struct files_struct *)regs_get_kernel_argument(regs, 0);
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_find(current);
	if (entry) {
		etrace_descriptors_keep(entry, files, true, 0, UINT_MAX);
		etrace_exec_free(entry); /* of one that failed */
		entry->exec.dir = execveat_directory();
	}
	rcu_read_unlock();
	return 0;
}

/* Both names in one piece of memory. */
static void keep_names(struct etrace_exec *exec, const struct linux_binprm *bprm)
{
	size_t len = strlen(bprm->filename);
	size_t interp_len = bprm->interp == bprm->filename ? 0 : strlen(bprm->interp);

	exec->filename = etrace_alloc(len + 1 + interp_len + 1);
	if (!exec->filename) { /* use the path of the loaded file for both */
		etrace_count(ETRACE_COUNT_NO_MEMORY);
		return;
	}
	exec->filename_len = len;
	exec->interp_len = interp_len;
	memcpy(exec->filename, bprm->filename, len + 1);
	if (interp_len)
		memcpy(exec->filename + len + 1, bprm->interp, interp_len + 1);
	if (exec->dir && !bprm->fdpath) { /* the descriptor was not used: the name was absolute */
		fput(exec->dir);
		exec->dir = NULL;
	}
}

/* ---- in task_work ---- */

static void put_closed(struct etrace_stream *stream, const struct etrace_descriptors *closed)
{
	u32 bit;
	s64 fd;

	if (!closed || !closed->n)
		return;
	for_each_set_bit(bit, closed->bits, closed->n_bits) {
		fd = closed->first + bit;
		etrace_stream_event(stream, ETRACE_EV_CLOSE, &fd, NULL);
		cond_resched();
	}
}

static void put_comm(struct etrace_stream *stream)
{
	struct etrace_text name = { current->comm, strnlen(current->comm, TASK_COMM_LEN) };

	if (etrace_options & ETRACE_OPTION_THREAD_NAMES)
		etrace_stream_event(stream, ETRACE_EV_COMM, NULL, &name);
}

/* The strings of a list in the task's memory, read piece by piece. */
struct reader {
	u64 at; /* next address to read */
	u64 end;
	char *buf;
	size_t held; /* bytes in buf */
	size_t used; /* of these */
};

#define READER_BYTES (2 * PATH_MAX)
#define QUICK_BYTES 256

/* Most lists are short: copied without all that copy_from_user() looks at first. */
static bool copy_short(char *to, const char __user *from, size_t n)
{
	if (!user_read_access_begin(from, n))
		return false;
	for (; n >= sizeof(u64); n -= sizeof(u64), to += sizeof(u64), from += sizeof(u64))
		unsafe_get_user(*(u64 *)to, (const u64 __user *)from, fault);
	for (; n; n--)
		unsafe_get_user(*to++, from++, fault);
	user_read_access_end();
	return true;
fault:
	user_read_access_end();
	return false;
}

static bool reader_fill(struct reader *reader)
{
	size_t n;

	reader->held -= reader->used;
	memmove(reader->buf, reader->buf + reader->used, reader->held);
	reader->used = 0;
	n = min_t(u64, READER_BYTES - reader->held, reader->end - reader->at);
	if (!n)
		return false;
	cond_resched();
	/* the stack that the kernel has just made: nobody else serves its pages */
	if ((n > QUICK_BYTES ||
	     !copy_short(reader->buf + reader->held, u64_to_user_ptr(reader->at), n)) &&
	    copy_from_user(reader->buf + reader->held, u64_to_user_ptr(reader->at), n)) {
		etrace_count(ETRACE_COUNT_UNREAD_STRINGS);
		return false;
	}
	reader->at += n;
	reader->held += n;
	return true;
}

/*
 * The next string, or a piece of it when it is too long for the buffer: of whole parts, and never
 * the end of the string. `last`: the string ends with it.
 */
static bool reader_next(struct reader *reader, struct etrace_text *piece, bool *last)
{
	do {
		const char *start = reader->buf + reader->used;
		size_t len = reader->held - reader->used;
		const char *end = etrace_find_byte(start, start + len, '\0');

		*last = end < start + len;
		if (*last)
			len = end - start;
		else
			len = len ? (len - 1) / ETRACE_PART_BYTES * ETRACE_PART_BYTES : 0;
		*piece = (struct etrace_text){ start, len };
		reader->used += len + *last;
		if (*last || len)
			return true;
	} while (reader_fill(reader));
	return false;
}

/* Hold all of the next string, unless it is too long for the buffer. */
static void reader_hold(struct reader *reader)
{
	const char *end;

	do {
		end = reader->buf + reader->held;
		if (etrace_find_byte(reader->buf + reader->used, end, '\0') < end)
			return;
	} while (reader_fill(reader));
}

static void put_arguments(struct etrace_stream *stream, struct reader *reader)
{
	struct etrace_text piece;
	u32 index = 0;
	bool last;

	while (reader_next(reader, &piece, &last)) {
		etrace_stream_item(stream, ETRACE_DATA_A, index, piece.text, piece.len);
		index += last;
	}
	etrace_stream_end_of_args(stream);
}

/* Returns whether the environment must be printed, too: always that of make and ninja. */
static bool put_new_proc(struct etrace_task *entry, const struct etrace_exec *exec, u64 time_ns,
			 struct etrace_scratch *space)
{
	struct etrace_stream *stream = &space->stream;
	struct mm_struct *mm = current->mm;
	struct reader reader = { mm->arg_start, mm->arg_end, space->other };
	struct etrace_text data[3];
	s64 argsize = reader.end - reader.at;
	bool wants_environment = etrace_options & ETRACE_OPTION_ENVIRONMENT;

	etrace_exec_names(exec, space, &data[0], &data[1]);
	if (data[0].text)
		wants_environment |= etrace_is_builder(data[0].text, data[0].len);
	/* names may be in the first half of `other` */
	data[2] = etrace_cwd_text(space->other + PATH_MAX, PATH_MAX);
	if (!data[2].text)
		data[2] = etrace_text_of("");
	etrace_stream_begin(stream, &entry->origin, time_ns);
	if (etrace_options & ETRACE_OPTION_USAGE)
		etrace_put_usage(stream, entry);
	put_closed(stream, entry->closing);
	put_comm(stream);
	etrace_stream_event(stream, ETRACE_EV_NEW_PROC, &argsize, data);
	put_arguments(stream, &reader);
	etrace_stream_end(stream);
	return wants_environment;
}

/*
 * One event for each variable, with a stamp of its own: a reader puts the records of an event
 * together by upid and stamp, and the upid of these is 0.
 */
static void put_environment(struct etrace_task *entry, u64 time_ns, struct etrace_scratch *space)
{
	struct etrace_stream *stream = &space->stream;
	struct mm_struct *mm = current->mm;
	struct reader reader = { mm->env_start, mm->env_end, space->other };
	bool shows_all = etrace_options & ETRACE_OPTION_ENVIRONMENT;
	char hidden[ETRACE_HIDDEN_MAX];
	struct etrace_text piece;
	bool skips = false; /* the rest of a variable that is hidden */
	bool last = true;
	u32 part = 0;

	for (;;) {
		if (!shows_all && !skips)
			reader_hold(&reader);
		if (!reader_next(&reader, &piece, &last))
			break;
		if (skips) {
			skips = !last;
			continue;
		}
		if (!shows_all) {
			size_t len = etrace_hide(hidden, piece.text, piece.len, last);

			skips = !last;
			last = true;
			if (len)
				piece = (struct etrace_text){ hidden, len };
		}
		if (!part) {
			etrace_stream_begin(stream, &entry->origin, time_ns++);
			stream->origin.upid = 0;
			etrace_stream_event(stream, ETRACE_EV_UPID, &entry->origin.upid, NULL);
		}
		part += etrace_stream_item(stream, ETRACE_DATA_ENV, part, piece.text, piece.len);
		if (last) {
			etrace_stream_end(stream);
			part = 0;
		}
	}
	if (part)
		etrace_stream_end(stream);
}

/* Once a task: its paths are those of a container or chroot. */
static void count_foreign_root(struct etrace_task *entry)
{
	if (entry->foreign_root ||
	    READ_ONCE(current->fs->root.dentry) == READ_ONCE(init_task.fs->root.dentry))
		return;
	entry->foreign_root = true;
	etrace_count(ETRACE_COUNT_FOREIGN_ROOT);
}

static void work_exec(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space)
{
	count_foreign_root(entry);
	etrace_opens_free(entry);
	if (put_new_proc(entry, &entry->exec, call->time_ns, space))
		put_environment(entry, call->time_ns, space);
	etrace_exec_free(entry);
}

static const struct etrace_handler handler = { .work = work_exec };

/* ---- the tracepoint ---- */

/* Whether the user of the program may not trace it: begin_new_exec() made it undumpable. */
static bool is_privileged(const struct linux_binprm *bprm)
{
	return bprm->secureexec || bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP;
}

void etrace_on_exec(void *data, struct task_struct *task, pid_t old_pid,
		    struct linux_binprm *bprm)
{
	static const struct etrace_call call = { .kind = ETRACE_CALL_EXECVE };
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_find(task);
	if (entry && etrace_options & ETRACE_OPTION_UNPRIVILEGED && is_privileged(bprm)) {
		etrace_count(ETRACE_COUNT_PRIVILEGED);
		etrace_task_remove(entry); /* nothing of this execution was printed yet */
	} else if (entry) {
		entry->borrows_memory = false;
		entry->exec.file = get_file(bprm->file);
		keep_names(&entry->exec, bprm);
		etrace_defer(entry, &call, &handler);
	}
	rcu_read_unlock();
}
