// SPDX-License-Identifier: GPL-2.0-only
/*
 * open, openat, openat2, creat -> Open. FN is the path of the new descriptor's file, FO the task's
 * own string. Context: sys_exit, atomic; task_work on PREEMPT_RT and where a page is away.
 */
#define ETRACE_EVENT_DEFS
#include <linux/fcntl.h>
#include <linux/log2.h>
#include <linux/openat2.h>
#include <linux/random.h>
#include <linux/siphash.h>

#include "event/call.h"
#include "event/handlers.h"
#include "event/path.h"
#include "record/emit.h"
#include "task/deferred.h"

struct open_arguments {
	int dirfd;
	u64 name;
	u64 flags;
	u64 mode;
};

static int read_how(u64 address, bool later, struct open_arguments *open)
{
	struct open_how how;
	int err = later ? etrace_user_bytes_later(&how, address, sizeof(how)) :
			  etrace_user_bytes(&how, address, sizeof(how));

	if (err)
		return err;
	open->flags = how.flags;
	open->mode = how.mode;
	return 0;
}

static __always_inline int read_arguments(const struct etrace_call *call, bool later,
					  struct open_arguments *open)
{
	const u64 *args = call->args;

	switch (call->kind) {
	case ETRACE_CALL_OPEN:
		*open = (struct open_arguments){ AT_FDCWD, args[0], (u32)args[1], (u32)args[2] };
		return 0;
	case ETRACE_CALL_CREAT:
		*open = (struct open_arguments){ AT_FDCWD, args[0], O_CREAT | O_WRONLY | O_TRUNC,
						 (u32)args[1] };
		return 0;
	case ETRACE_CALL_OPENAT:
		*open = (struct open_arguments){ (int)args[0], args[1], (u32)args[2],
						 (u32)args[3] };
		return 0;
	default:
		*open = (struct open_arguments){ (int)args[0], args[1], 0, 0 };
		return read_how(args[2], later, open);
	}
}

/* ---- opens that were seen before ---- */

/* A program that makes another path of the same hash would have to guess it. */
static siphash_key_t key;

void etrace_opens_init(void)
{
	get_random_bytes(&key, sizeof(key));
}

static u64 hash_paths(const struct etrace_text *data)
{
	return (siphash(data[0].text, data[0].len, &key) ^
		rol64(siphash(data[1].text, data[1].len, &key), 1)) | 1;
}

static bool is_repeated(struct etrace_task *entry, u64 flags, const struct etrace_text *data)
{
	bool repeated;
	u64 *place;
	u64 hash;

	if ((flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_PATH)) != O_RDONLY)
		return false;
	if (!entry->opens)
		entry->opens = kzalloc(sizeof(*entry->opens), GFP_ATOMIC | __GFP_NOWARN);
	if (!entry->opens)
		return false;
	hash = hash_paths(data);
	place = &entry->opens->hashes[hash_64(hash, ilog2(ETRACE_N_OPENS))];
	repeated = *place == hash;
	*place = hash;
	return repeated;
}

/* ---- Open ---- */

/*
 * How the file is open counts, for the task's memory may say something else by now; but the
 * descriptor may lead to another file by now, too. Neither makes a write look like a read.
 */
static u64 flags_of(u64 given, u64 open)
{
	u64 kept = open & O_ACCMODE || !(given & O_ACCMODE) ? O_ACCMODE | O_APPEND : O_APPEND;

	return (given & ~kept) | (open & kept);
}

/*
 * Absent when another thread has closed the descriptor already. `flags`: NULL, or from the task's
 * memory.
 */
static __always_inline struct etrace_text opened_path(int fd, char *buf, u64 *flags)
{
	struct etrace_file file = etrace_file_get(fd);
	struct etrace_text text = { NULL, 0 };

	if (file.file) {
		text = etrace_path_text(&file.file->f_path, buf, ETRACE_PATH_BYTES);
		if (flags)
			*flags = flags_of(*flags, file.file->f_flags);
	} else {
		etrace_count(ETRACE_COUNT_RACES);
	}
	etrace_file_put(file);
	return text;
}

/* Inline in both places: few other functions run as often. */
static __always_inline void put_open(struct etrace_task *entry, const struct etrace_call *call,
				     u64 time_ns, bool later, struct etrace_scratch *space)
{
	struct open_arguments open ETRACE_UNINITIALIZED;
	struct etrace_text data[2] ETRACE_UNINITIALIZED;
	s64 values[3] ETRACE_UNINITIALIZED;
	int unread = read_arguments(call, later, &open);

	if (!unread)
		unread = etrace_user_path(open.dirfd, open.name, later, space->other, &data[1]);
	if (unlikely(unread == -EFAULT) && !later) {
		etrace_defer(entry, call, &etrace_open);
		return;
	}
	data[0] = opened_path(call->result, space->path,
			      call->kind == ETRACE_CALL_OPENAT2 ? &open.flags : NULL);
	if (unread) {
		if (unread != -ENAMETOOLONG)
			etrace_count(ETRACE_COUNT_UNREAD_STRINGS);
		data[1] = data[0];
	}
	if (!data[0].text)
		data[0] = data[1];
	if (!data[0].text)
		return;
	if (etrace_options & ETRACE_OPTION_OPEN_ONCE && is_repeated(entry, open.flags, data)) {
		etrace_count(ETRACE_COUNT_SUPPRESSED_OPENS);
		return;
	}
	/* the call reads no mode otherwise: whatever the register held */
	if (!(open.flags & (O_CREAT | __O_TMPFILE)))
		open.mode = 0;
	values[0] = open.flags;
	values[1] = open.mode;
	values[2] = call->result;
	etrace_emit_inline(&entry->origin, time_ns,
			   etrace_whole_from(&etrace_event_defs[ETRACE_EV_OPEN]), ETRACE_EV_OPEN,
			   values, data);
}

void etrace_exit_open(struct etrace_task *entry, const struct etrace_call *call)
{
	struct etrace_scratch *space;

	if (call->result < 0 || !etrace_is_new(call->result))
		return;
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) { /* d_path() takes locks that sleep there */
		etrace_defer(entry, call, &etrace_open);
		return;
	}
	space = etrace_scratch_get();
	put_open(entry, call, etrace_now(), false, space);
	etrace_scratch_put(space);
}

static void work_open(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space)
{
	put_open(entry, call, call->time_ns, true, space);
}

const struct etrace_handler etrace_open = { .exit = etrace_exit_open, .work = work_open };
