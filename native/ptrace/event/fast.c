// SPDX-License-Identifier: Apache-2.0
/*
 * Records of the preloaded library -> Open, Close, Dup, Pipe.
 *
 * The library makes a call in its page, which the filter lets pass, and then writes a record; whatever
 * it does not do itself stops as always. What a task has told is printed before its next stop is
 * handled, so that its events stay in their order, and the table of descriptors and the working
 * directory are those of the time of the call: every call that changes them stops or is told.
 */
#include "event/fast.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/syscall.h"
#include "library.h"
#include "order.h"
#include "output/trace_file.h"
#include "texts.h"
#include "task/path.h"
#include "tracer.h"

#define NO_LINK_ORDER "verify_asan_link_order=0"

static bool is_over;

void fast_start(void)
{
	if (!options.fast)
		return;
	library_find(options.libraries);
	ring_create(library_name(), RING_WANTS_FAST);
}

static void append(const char *variable, const char *value)
{
	const char *old = getenv(variable);
	char *joined;

	if (asprintf(&joined, "%s%s%s", old ? old : "", old && *old ? ":" : "", value) < 0 ||
	    setenv(variable, joined, 1) < 0)
		die("out of memory");
	free(joined);
}

void fast_set_environment(void)
{
	const char *asan = getenv("ASAN_OPTIONS");

	if (!options.fast)
		return;
	setenv(RING_VARIABLE, ring_variable(), 1);
	append("LD_PRELOAD", library_name());
	if (!asan || !strstr(asan, "verify_asan_link_order"))
		append("ASAN_OPTIONS", NO_LINK_ORDER);
}

static void join(struct path *path, const struct etrace_text *directory,
		 const struct etrace_text *name)
{
	path_set(path, directory->text, directory->len);
	if (path->len + 1 + name->len >= sizeof(path->text))
		return;
	path->text[path->len] = '/';
	memcpy(path->text + path->len + 1, name->text, name->len);
	path->len += 1 + name->len;
	path->text[path->len] = '\0';
}

static void put_open(struct task *task, const struct event *event)
{
	struct strings strings = strings_of(event);
	struct etrace_text resolved = strings_next(&strings);
	struct etrace_text given = strings_next(&strings);
	struct etrace_text directory = strings_next(&strings);
	s64 values[3] = { (u32)event->head.args[0], (u32)event->head.args[1], event->head.args[2] };
	struct path original;
	struct etrace_text data[2];

	counters.opens++;
	fd_table_add(task->fds, event->head.args[2]);
	if (directory.len)
		join(&original, &directory, &given);
	else if (!path_join(task, AT_FDCWD, given.text, given.len, &original))
		counters.unread_strings++;
	if (!(values[0] & O_CREAT) && (values[0] & O_TMPFILE) != O_TMPFILE)
		values[1] = 0;
	counters.unresolved_paths += !resolved.len;
	data[1] = path_text(&original);
	data[0] = resolved.len ? resolved : data[1];
	event_put_at(task, event->head.time_ns, ETRACE_EV_OPEN, values, data);
}

static void put_descriptors(struct task *task, const struct event *event)
{
	const int32_t *args = event->head.args;
	s64 values[3] = { args[0], args[1], (u32)args[2] };
	enum etrace_event tag = ETRACE_EV_CLOSE;

	if (event->head.kind == RING_CLOSE)
		fd_table_remove(task->fds, args[0]);
	else
		fd_table_add(task->fds, args[1]);
	if (event->head.kind == RING_PIPE) {
		fd_table_add(task->fds, args[0]);
		tag = ETRACE_EV_PIPE;
	} else if (event->head.kind == RING_DUP) {
		tag = ETRACE_EV_DUP;
	}
	event_put_at(task, event->head.time_ns, tag, values, NULL);
}

/* Of a watched task every call stops, those of the page included. */
static void put(struct event *event)
{
	struct task *task = task_find((pid_t)event->head.pid);

	if (task && task->fds && !task->is_watched && !is_over) {
		task->cpu = event->head.cpu;
		if (event->head.kind == RING_OPEN)
			put_open(task, event);
		else if (event->head.kind == RING_CLOSE || event->head.kind == RING_DUP ||
			 event->head.kind == RING_PIPE)
			put_descriptors(task, event);
	}
	free(event);
}

static void put_all(void)
{
	struct event *event;

	while ((event = order_take(UINT64_MAX)))
		put(event);
}

/* Only the leader of a process tells: with other threads all of them stop. */
void fast_take(const struct task *task, bool has_left)
{
	if (!options.fast || task->tid != task->tgid)
		return;
	ring_drain_of((uint32_t)task->tid, has_left, order_add);
	put_all();
}

void fast_take_all(void)
{
	if (!options.fast)
		return;
	ring_drain(order_add);
	put_all();
}

void fast_stop(void)
{
	if (!options.fast || is_over)
		return;
	fast_take_all();
	is_over = true;
	ring_close();
	if (ring_lost())
		say("%llu events were lost: the shared memory of --fast was full for too long",
		    (unsigned long long)ring_lost());
	if (ring_damaged())
		say("%llu parts of the shared memory of --fast could not be understood: a program has "
		    "written to it", (unsigned long long)ring_damaged());
	counters.lost += ring_lost();
}
