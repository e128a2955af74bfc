// SPDX-License-Identifier: Apache-2.0
/* Records -> event lines, one after the other. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bpf/trace.h"
#include "capture/options.h"
#include "capture/program.h"
#include "capture/trace.h"

#define SIGNAL_BITS 0x7f

static u64 n_lost;

u64 events_lost(void)
{
	return n_lost;
}

void events_put_at(const struct traced *task, u64 time_ns, enum etrace_event event, const s64 *values,
		   const struct etrace_text *data)
{
	struct etrace_prefix prefix;

	if (!trace_is_open())
		return;
	etrace_prefix_init(&prefix, task->upid, task->cpu, time_ns);
	trace_put(&prefix, event, values, data);
}

/* A call that failed may have done so because its strings are nowhere. */
static bool has_failed(const struct record *record)
{
	switch ((enum record_kind)record->kind) {
	case RECORD_RENAME:
	case RECORD_LINK:
	case RECORD_MOUNT:
	case RECORD_UMOUNT:
		return record->values[0];
	default:
		return false;
	}
}

/* The strings after the head; those that the record has not are empty. */
static void read_strings(const struct record *record, const char *text, size_t n,
			 struct etrace_text strings[RECORD_N_TEXTS])
{
	size_t at = 0;
	size_t i;

	for (i = 0; i < RECORD_N_TEXTS; i++) {
		size_t len = record->lens[i];

		if (len > n - at)
			len = n - at;
		strings[i] = (struct etrace_text){ text + at, len };
		at += len;
	}
	if (has_failed(record))
		return;
	counters.unread_strings += record->flags & RECORD_UNREAD ? 1 : 0;
	counters.unresolved_paths += record->flags & RECORD_CUT ? 1 : 0;
}

/* ---- tasks ---- */

static void put_fork(struct traced *parent, const struct record *record)
{
	struct traced *child = traced_add((u64)record->values[0], (pid_t)record->values[1], (u64)record->values[2]);
	s64 flags = record->values[3];
	s64 value = child->upid;

	child->cpu = record->cpu;
	if (!parent) {
		child->is_root = true;
		return;
	}
	child->root = root_hold(parent->root);
	if (flags >= 0)
		events_put_at(parent, record->time_ns, ETRACE_EV_SYS_CLONE, &flags, NULL);
	events_put_at(parent, record->time_ns, ETRACE_EV_SCHED_FORK, &value, NULL);
}

static void put_clone_failed(const struct traced *task, const struct record *record)
{
	events_put_at(task, record->time_ns, ETRACE_EV_SYS_CLONE, record->values, NULL);
	events_put_at(task, record->time_ns, ETRACE_EV_SYS_CLONE_FAILED, NULL, NULL);
}

struct place {
	const struct traced *task;
	u64 time_ns;
};

static void put_written_line(void *context, const s64 *values, const struct etrace_text *text)
{
	const struct place *place = context;

	events_put_at(place->task, place->time_ns, ETRACE_EV_WRITTEN, values, text);
}

void events_put_written(struct traced *task, u64 time_ns, bool has_failed)
{
	struct place place = { task, time_ns };

	written_take(&task->written, has_failed, put_written_line, &place);
}

static void note_usage(struct traced *task, const struct etrace_text *usage)
{
	if (usage->len != sizeof(task->usage))
		return;
	memcpy(&task->usage, usage->text, sizeof(task->usage));
	task->has_usage = true;
}

/* As the kernel divides it (cputime_adjust): without ticks in the kernel all is the program's. */
static void divide_cpu_time(struct traced *task, const struct record_usage *usage)
{
	s64 ticks = usage->user_ns + usage->system_ns;
	s64 total = usage->runtime_ns;
	s64 system = ticks > 0 ? (s64)((double)total * ((double)usage->system_ns / (double)ticks)) : 0;

	if (system > total - task->reported_user)
		system = total - task->reported_user;
	if (system < task->reported_system)
		system = task->reported_system;
	task->reported_system = system;
	if (total - system > task->reported_user)
		task->reported_user = total - system;
}

void events_put_usage(struct traced *task, u64 time_ns)
{
	const struct record_usage *usage = &task->usage;
	s64 values[7];

	if (!task->has_usage)
		return;
	task->has_usage = false;
	divide_cpu_time(task, usage);
	values[0] = task->reported_user;
	values[1] = task->reported_system;
	values[2] = usage->max_bytes;
	values[3] = usage->rchar;
	values[4] = usage->wchar;
	values[5] = usage->voluntary;
	values[6] = usage->forced;
	events_put_at(task, time_ns, ETRACE_EV_USAGE, values, NULL);
}

static void put_exit(struct traced *task, const struct record *record)
{
	int status = (int)record->values[0];
	s64 value = status & SIGNAL_BITS ? ETRACE_SIGNAL_STATUS_BASE + (status & SIGNAL_BITS) :
					   status >> 8 & 0xff;

	events_put_written(task, record->time_ns, value != 0);
	events_put_usage(task, record->time_ns);
	events_put_at(task, record->time_ns, ETRACE_EV_EXIT, &value, NULL);
	traced_remove(task);
}

static void put_comm(const struct traced *task, const struct record *record, const struct etrace_text *strings)
{
	events_put_at(task, record->time_ns, ETRACE_EV_COMM, NULL, strings);
}

/* ---- files ---- */

/* The directory, a slash and the name, as the call was given it. */
static struct etrace_text given_name(const struct etrace_text *name, const struct etrace_text *directory)
{
	static struct name given;

	name_join(&given, directory, name);
	return name_text(&given);
}

static void put_open(const struct traced *task, const struct record *record, const struct etrace_text *strings)
{
	s64 flags = (u32)record->values[1];
	bool makes = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
	s64 values[3] = { flags, makes ? (u32)record->values[2] : 0, record->values[0] };
	struct etrace_text data[2] = { strings[0], given_name(&strings[1], &strings[2]) };

	if (!data[1].len)
		data[1] = data[0];
	if (!data[0].len)
		data[0] = data[1];
	if (!data[0].len)
		return;
	counters.opens++;
	events_put_at(task, record->time_ns, ETRACE_EV_OPEN, values, data);
}

void events_forget_closing(struct traced *task)
{
	free(task->closing);
	task->closing = NULL;
	task->n_closing = 0;
}

static void note_closing(struct traced *task, const struct record *record, const struct etrace_text *bits)
{
	if (record->values[1]) { /* of an execution */
		free((char *)task->exec_name.text);
		task->exec_name.text = NULL;
	}
	events_forget_closing(task);
	task->first_closing = record->values[0];
	if (!bits->len)
		return;
	task->closing = must_alloc(bits->len);
	memcpy(task->closing, bits->text, bits->len);
	task->n_closing = bits->len;
}

void events_put_closed(struct traced *task, u64 time_ns)
{
	size_t i;

	for (i = 0; i < task->n_closing * 8; i++) {
		s64 fd = task->first_closing + (s64)i;

		if (task->closing[i / 8] >> i % 8 & 1)
			events_put_at(task, time_ns, ETRACE_EV_CLOSE, &fd, NULL);
	}
	events_forget_closing(task);
}

static void note_exec_name(struct traced *task, const struct etrace_text *name)
{
	char *copy = must_alloc(name->len + 1);

	memcpy(copy, name->text, name->len);
	free((char *)task->exec_name.text);
	task->exec_name = (struct etrace_text){ copy, name->len };
}

/* ---- names ---- */

static void put_name(const struct traced *task, u64 now, enum etrace_event event, s64 flags,
		     const struct name *name)
{
	struct etrace_text data = name_text(name);

	events_put_at(task, now, event, &flags, &data);
}

static const struct etrace_text nothing = { "", 0 };

/*
 * A name that is followed. An absolute one has no directory, unless it is a link of /proc: then that is
 * where it leads.
 */
static void join_name(struct name *name, const struct etrace_text *directory, const struct etrace_text *text)
{
	if (text->len && text->text[0] == '/' && directory->len)
		name_join(name, directory, &nothing);
	else
		name_join(name, directory, text);
}

/* The name before string `number` of a record, which is its directory. */
static void find_name(struct name *name, const struct record *record, size_t number,
		      const struct etrace_text *strings, const struct viewer *viewer)
{
	const struct etrace_text *text = &strings[number - 1];

	if (record->found & 1 << number) {
		name_join_last(name, &strings[number], text);
	} else {
		name_join(name, &strings[number], text);
		name_resolve_directories(name, viewer);
	}
}

static void put_pair(struct traced *task, const struct record *record, const struct etrace_text *strings)
{
	bool is_rename = record->kind == RECORD_RENAME;
	bool has_flags = record->values[1] == FORM_WITH_FLAGS;
	bool is_file = !is_rename && !strings[0].len && record->values[2] & AT_EMPTY_PATH; /* a descriptor's */
	bool follows = !is_rename && record->values[2] & AT_SYMLINK_FOLLOW;
	bool done = !record->values[0];
	u64 now = record->time_ns;
	struct viewer viewer = traced_viewer(task, record);
	struct name from, to;

	if (is_file || (follows && record->found & 1 << 1)) {
		name_join(&from, &strings[1], &nothing);
	} else if (follows) {
		join_name(&from, &strings[1], &strings[0]);
		if (!name_resolve(&from, &viewer))
			name_resolve_directories(&from, &viewer);
	} else {
		find_name(&from, record, 1, strings, &viewer);
	}
	find_name(&to, record, 3, strings, &viewer);
	if (done && (!from.len || !to.len || record->unread & (1 << 0 | 1 << 2))) /* counted */
		return;
	if (from.len && !(record->unread & 1) && (done || is_file || record->found & RECORD_TARGET_FOUND ||
				      (!(record->found & RECORD_TARGET_ABSENT) && name_exists(&from, &viewer))))
		put_name(task, now,
			 is_rename ? (has_flags ? ETRACE_EV_RENAME2FROM : ETRACE_EV_RENAME_FROM) :
				     (has_flags ? ETRACE_EV_LINKAT_FROM : ETRACE_EV_LINK_FROM),
			 (u32)record->values[2], &from);
	if (done)
		put_name(task, now, is_rename ? ETRACE_EV_RENAME_TO : ETRACE_EV_LINK_TO, 0, &to);
	else
		events_put_at(task, now, is_rename ? ETRACE_EV_RENAME_FAILED : ETRACE_EV_LINK_FAILED, NULL, NULL);
}

static void put_symlink(struct traced *task, const struct record *record, const struct etrace_text *strings)
{
	struct etrace_text data[3] = { strings[0], { NULL, 0 }, { NULL, 0 } };
	struct viewer viewer = traced_viewer(task, record);
	struct name link, resolved;

	find_name(&link, record, 2, strings, &viewer);
	if (!link.len || record->unread & 1 << 1) /* counted */
		return;
	if (record->found & RECORD_TARGET_FOUND) {
		data[1] = strings[3];
	} else if (!(record->found & RECORD_TARGET_ABSENT)) {
		resolved = link;
		if (name_resolve_older(&resolved, &viewer, record->time_ns))
			data[1] = name_text(&resolved);
	}
	data[2] = name_text(&link);
	name_note_link(&link, &strings[0]);
	events_put_at(task, record->time_ns, ETRACE_EV_SYMLINK, NULL, data);
}

static void put_mount(struct traced *task, const struct record *record, const struct etrace_text *strings)
{
	bool is_mount = record->kind == RECORD_MOUNT;
	struct viewer viewer = traced_viewer(task, record);
	u64 now = record->time_ns;
	struct etrace_text data[3] = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
	struct name target;
	bool found;

	found = record->found & RECORD_TARGET_FOUND;
	if (found) {
		name_join(&target, &strings[3], &nothing);
	} else {
		name_join(&target, &strings[3], &strings[2]);
		found = !(record->found & RECORD_TARGET_ABSENT) && name_resolve(&target, &viewer);
	}
	if (is_mount) {
		data[0] = record->values[2] & 1 ? strings[0] : data[0];
		data[1] = name_text(&target);
		data[2] = record->values[2] & 2 ? strings[1] : data[2];
		events_put_at(task, now, ETRACE_EV_MOUNT, &record->values[1], data);
	} else if (!(record->unread & 1 << 2) && (found || !record->values[0])) {
		data[0] = name_text(&target);
		events_put_at(task, now, ETRACE_EV_UMOUNT, &record->values[1], data);
	}
	if (record->values[0])
		events_put_at(task, now, is_mount ? ETRACE_EV_MOUNT_FAILED : ETRACE_EV_UMOUNT_FAILED, NULL, NULL);
}

/* ---- what is written ---- */

struct record_source {
	struct written_source source;
	const char *text; /* NULL: it could not be read */
};

static void read_record(const struct written_source *source, u64 offset, char *into, size_t n)
{
	const struct record_source *record = (const struct record_source *)source;

	if (record->text)
		memcpy(into, record->text + offset, n);
	else
		memset(into, '?', n);
}

static void add_written(struct traced *task, const struct record *record, const struct etrace_text *piece)
{
	struct record_source source = { { read_record }, record->flags & RECORD_UNREAD ? NULL : piece->text };
	struct record_source missing = { { read_record }, NULL };
	struct traced *leader = traced_find(task->leader);
	bool is_error = record->values[0] == 2;

	if (!leader)
		return;
	if (record->values[1])
		written_add(&leader->written, is_error, &missing.source, (u64)record->values[1]);
	written_add(&leader->written, is_error, &source.source, piece->len);
}

/* ---- all of them ---- */

static void put_record(struct traced *task, const struct record *record, const char *text, size_t n)
{
	struct etrace_text strings[RECORD_N_TEXTS];
	const s64 *values = record->values;

	read_strings(record, text, n, strings);
	switch ((enum record_kind)record->kind) {
	case RECORD_FORK:
		put_fork(task, record);
		break;
	case RECORD_CLONE_FAILED:
		put_clone_failed(task, record);
		break;
	case RECORD_CLOSING:
		note_closing(task, record, &strings[0]);
		break;
	case RECORD_CLOSE_RANGE:
		if (!values[0])
			events_put_closed(task, record->time_ns);
		break;
	case RECORD_EXEC_NAME:
		note_exec_name(task, &strings[0]);
		break;
	case RECORD_EXEC:
		execution_begin(task, record, strings);
		break;
	case RECORD_ARGUMENTS:
		execution_add(task, record, text, n);
		break;
	case RECORD_USAGE:
		note_usage(task, &strings[0]);
		break;
	case RECORD_EXIT:
		put_exit(task, record);
		break;
	case RECORD_OPEN:
		put_open(task, record, strings);
		break;
	case RECORD_CLOSE:
		events_put_at(task, record->time_ns, ETRACE_EV_CLOSE, values, NULL);
		break;
	case RECORD_PIPE:
		events_put_at(task, record->time_ns, ETRACE_EV_PIPE, values, NULL);
		break;
	case RECORD_DUP:
		events_put_at(task, record->time_ns, ETRACE_EV_DUP, values, NULL);
		break;
	case RECORD_RENAME:
	case RECORD_LINK:
		put_pair(task, record, strings);
		break;
	case RECORD_SYMLINK:
		put_symlink(task, record, strings);
		break;
	case RECORD_MOUNT:
	case RECORD_UMOUNT:
		put_mount(task, record, strings);
		break;
	case RECORD_COMM:
		put_comm(task, record, strings);
		break;
	case RECORD_WRITTEN:
		add_written(task, record, &strings[0]);
		break;
	case RECORD_PRIVATE:
		counters.privileged++;
		events_put_written(task, record->time_ns, false);
		traced_remove(task);
		break;
	case RECORD_ROOT:
		traced_take_root(task);
		break;
	case RECORD_RIGHTS:
		traced_note_rights(task, record, strings);
		break;
	case RECORD_ADOPTED: /* it has been added */
		break;
	case RECORD_IO_URING:
		counters.io_uring_setups++;
		break;
	}
}

void events_put(const struct record *record, const char *text, size_t n)
{
	struct traced *task = traced_find(record->task);

	n_lost += record->lost;
	if (record->kind == RECORD_ADOPTED)
		task = traced_add(record->task, (pid_t)record->pid, (u64)record->values[0]);
	if (!task && record->kind != RECORD_FORK) { /* its fork was lost, or it is of before the command */
		if (record->kind == RECORD_EXIT)
			return;
		task = traced_add(record->task, (pid_t)record->pid, record->task);
		counters.orphans++;
	}
	if (task)
		task->cpu = record->cpu;
	if (task && record->lost) /* there may have been others since */
		traced_forget_rights(task);
	put_record(task, record, text, n);
	if (record->kind == RECORD_RIGHTS || record->kind == RECORD_COMM) /* a thread may rename others */
		return;
	task = traced_find(record->task);
	if (task)
		traced_forget_rights(task);
}
