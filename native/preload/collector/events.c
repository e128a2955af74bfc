// SPDX-License-Identifier: Apache-2.0
/* Records of the library -> event lines. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "library.h"
#include "names.h"

static u64 n_unknown_ends;
static u64 n_confined;
static u64 n_left;

u64 events_unknown_ends(void)
{
	return n_unknown_ends;
}

u64 events_confined(void)
{
	return n_confined;
}

u64 events_left(void)
{
	return n_left;
}

/* ---- processes ---- */

static void put_exit(struct process *process, u64 now, s64 status)
{
	execution_settle(process);
	process_put(process, now, ETRACE_EV_EXIT, &status, NULL);
	process_end(process);
}

/* A program that ends without libc, as those of Go do, records only its start. */
static void put_wait_status(struct process *process, u64 now, int status)
{
	if (process->silent && WIFEXITED(status))
		unseen_add_silent(process->silent);
	put_exit(process, now,
		 WIFSIGNALED(status) ? ETRACE_SIGNAL_STATUS_BASE + WTERMSIG(status)
				     : WEXITSTATUS(status));
}

static struct process *living(pid_t pid)
{
	struct process *process = process_find(pid);

	return process && !process->has_ended ? process : NULL;
}

#define MAX_ANCESTORS 8 /* that no record names: static programs */

/* A process with its parents, those that static programs made included. */
static struct process *begin_with_parents(pid_t pid, pid_t parent, u64 now, int depth)
{
	struct process *from = NULL;

	if (parent > RING_PID_LIMIT)
		parent = 0;
	if (parent > 1 && parent != getpid() && parent != pid)
		from = living(parent);
	if (!from && parent > 1 && parent != getpid() && parent != pid && depth < MAX_ANCESTORS)
		from = begin_with_parents(parent, proc_parent(parent), now, depth + 1);
	if (from)
		execution_settle(from);
	else
		counters.orphans++;
	return process_begin(pid, from, now);
}

/*
 * A parent records a child when its call returns, with the time of the call: on a loaded machine the
 * child's own records are there long before, even those of its end.
 */
static bool is_known(const struct process *process, const struct process *from, u64 now)
{
	if (!process)
		return false;
	if (process->has_ended)
		return from && process->parent == from->upid && now <= process->began;
	return !from || process->parent == from->upid || process == from;
}

static void begin_child(struct event *event, pid_t pid, pid_t parent)
{
	if (pid <= 0 || pid > RING_PID_LIMIT ||
	    is_known(process_find(pid), living(parent), event->head.time_ns))
		return;
	begin_with_parents(pid, parent, event->head.time_ns, 0);
}

/* The process of a record; NULL when it has ended already. */
static struct process *process_of(const struct event *event)
{
	pid_t pid = (pid_t)event->head.pid;
	struct process *process = process_find(pid);
	bool has_parent = event->head.kind == RING_STARTED;

	if (!process || (process->has_ended && has_parent))
		process = begin_with_parents(
			pid, has_parent ? event->head.args[3] : proc_parent(pid),
			event->head.time_ns, 0);
	if (process->has_ended)
		return NULL;
	process->cpu = event->head.cpu;
	return process;
}

static void end_child(const struct event *event)
{
	struct process *child = living(event->head.args[0]);

	if (child)
		put_wait_status(child, event->head.time_ns, event->head.args[1]);
}

static void settle(struct process *process)
{
	execution_settle(process);
	if (kill(process->pid, 0) < 0 && errno == ESRCH)
		n_unknown_ends++;
}

void events_settle(void)
{
	process_for_each(settle);
}

/* ---- descriptors ---- */

static void put_open(struct process *process, const struct event *event)
{
	struct strings strings = strings_of(event);
	struct etrace_text resolved = strings_next(&strings);
	struct etrace_text given = strings_next(&strings);
	struct etrace_text directory = strings_next(&strings);
	s64 values[3] = { (u32)event->head.args[0], (u32)event->head.args[1], event->head.args[2] };
	struct etrace_text data[2];
	struct name original;

	if (!directory.len && !event->head.args[3])
		directory = (struct etrace_text){ process->cwd, strlen(process->cwd) };
	name_join(&original, directory.text, directory.len, &given);
	data[1] = original.len ? name_text(&original) : resolved;
	data[0] = resolved.len ? resolved : data[1];
	if (!resolved.len)
		counters.unresolved_paths++;
	if (!(values[0] & O_CREAT) && (values[0] & O_TMPFILE) != O_TMPFILE)
		values[1] = 0;
	fd_table_add(process->fds, event->head.args[2]);
	counters.opens++;
	if (data[0].len)
		process_put(process, event->head.time_ns, ETRACE_EV_OPEN, values, data);
}

static void put_close(struct process *process, u64 now, s64 fd)
{
	fd_table_remove(process->fds, (int)fd);
	process_put(process, now, ETRACE_EV_CLOSE, &fd, NULL);
}

static void put_close_range(struct process *process, const struct event *event)
{
	u32 last = (u32)event->head.args[1];
	int fd = event->head.args[0];

	for (; fd >= 0 && (fd = fd_table_next(process->fds, fd)) >= 0 && (u32)fd <= last; fd++)
		put_close(process, event->head.time_ns, fd);
}

static void put_pipe(struct process *process, const struct event *event)
{
	const int32_t *args = event->head.args;
	s64 values[3] = { args[0], args[1], (u32)args[2] };

	fd_table_add(process->fds, args[0]);
	fd_table_add(process->fds, args[1]);
	process_put(process, event->head.time_ns, ETRACE_EV_PIPE, values, NULL);
}

static void put_dup(struct process *process, const struct event *event)
{
	const int32_t *args = event->head.args;
	s64 values[3] = { args[0], args[1], (u32)args[2] };

	fd_table_add(process->fds, args[1]);
	process_put(process, event->head.time_ns, ETRACE_EV_DUP, values, NULL);
}

/* ---- names ---- */

static void put_name(struct process *process, const struct event *event, enum etrace_event tag,
		     const struct etrace_text *name)
{
	s64 flags = (u32)event->head.args[2];

	process_put(process, event->head.time_ns, tag, &flags, name);
}

/* Source and destination, or source and failure, or failure alone. */
static void put_names(struct process *process, const struct event *event, enum etrace_event from,
		      enum etrace_event to, enum etrace_event failed)
{
	struct strings strings = strings_of(event);
	struct etrace_text source = strings_next(&strings);
	struct etrace_text destination = strings_next(&strings);
	int found = event->head.args[3];
	bool done = event->head.args[0] == 0 && (found & FOUND_SOURCE_PATH) &&
		    (found & FOUND_DESTINATION);

	if (event->head.args[0] == 0 && !done) {
		counters.unresolved_paths++;
		return;
	}
	if ((found & FOUND_SOURCE_PATH) && ((found & FOUND_SOURCE) || done))
		put_name(process, event, from, &source);
	if (done)
		put_name(process, event, to, &destination);
	else
		process_put(process, event->head.time_ns, failed, NULL, NULL);
}

static void put_symlink(struct process *process, const struct event *event)
{
	struct strings strings = strings_of(event);
	struct etrace_text target = strings_next(&strings);
	struct etrace_text link = strings_next(&strings);
	struct etrace_text resolved = strings_next(&strings);
	struct etrace_text data[3] = { target, resolved, link };

	if (!link.len) {
		counters.unresolved_paths++;
		return;
	}
	if (!event->head.args[0])
		data[1] = (struct etrace_text){ NULL, 0 };
	process_put(process, event->head.time_ns, ETRACE_EV_SYMLINK, NULL, data);
}

static void put_cwd(struct process *process, const struct event *event)
{
	struct strings strings = strings_of(event);
	struct etrace_text cwd = strings_next(&strings);

	process_set_cwd(process, cwd.text, cwd.len);
}

/* One that was about to execute it says so when it settles. */
static void put_outside(const struct event *event)
{
	struct process *process = living((pid_t)event->head.pid);
	struct strings strings = strings_of(event);
	struct etrace_text path = strings_next(&strings);

	int hidden = event->head.args[0];

	if (!process || !process->intent || process->intent->head.args[2] >= HIDDEN_OUTSIDE)
		unseen_add_outside((pid_t)event->head.pid, &path, hidden);
	else
		process->intent->head.args[2] = hidden;
}

/* Records that do not show that the program itself makes calls through libc. */
static bool is_silent(enum ring_kind kind)
{
	return kind == RING_STARTED || kind == RING_OBJECTS || kind == RING_RESPONSE ||
	       kind == RING_CHILD_END;
}

static void put_of_process(struct process *process, struct event *event)
{
	bool flags = event->head.args[1] == FORM_WITH_FLAGS;
	u64 now = event->head.time_ns;

	switch (event->head.kind) {
	case RING_STARTED:
		execution_put_start(process, event);
		break;
	case RING_EXEC_FAILED:
		execution_forget(process);
		break;
	case RING_OPEN:
		put_open(process, event);
		break;
	case RING_CLOSE:
		put_close(process, now, event->head.args[0]);
		break;
	case RING_CLOSE_RANGE:
		put_close_range(process, event);
		break;
	case RING_PIPE:
		put_pipe(process, event);
		break;
	case RING_DUP:
		put_dup(process, event);
		break;
	case RING_RENAME:
		put_names(process, event, flags ? ETRACE_EV_RENAME2FROM : ETRACE_EV_RENAME_FROM,
			  ETRACE_EV_RENAME_TO, ETRACE_EV_RENAME_FAILED);
		break;
	case RING_LINK:
		put_names(process, event, flags ? ETRACE_EV_LINKAT_FROM : ETRACE_EV_LINK_FROM,
			  ETRACE_EV_LINK_TO, ETRACE_EV_LINK_FAILED);
		break;
	case RING_SYMLINK:
		put_symlink(process, event);
		break;
	case RING_CWD:
		put_cwd(process, event);
		break;
	case RING_EXIT:
		put_exit(process, now, (u32)event->head.args[0] & 0xff);
		break;
	case RING_CHILD_END:
		end_child(event);
		break;
	case RING_OBJECTS:
		execution_put_objects(process, event);
		break;
	case RING_RESPONSE:
		execution_put_response(process, event);
		break;
	case RING_CONFINED:
		n_confined++;
		break;
	case RING_LEFT:
		n_left++;
		break;
	}
}

void events_put(struct event *event)
{
	struct process *process;

	if (event->head.kind == RING_BORN)
		begin_child(event, (pid_t)event->head.pid, event->head.args[0]);
	if (event->head.kind == RING_OUTSIDE) {
		put_outside(event);
		free(event);
		return;
	}
	process = process_of(event);
	if (process && !is_silent(event->head.kind))
		process_hear(process);
	if (process && event->head.kind == RING_FORK)
		begin_child(event, event->head.args[0], (pid_t)event->head.pid);
	if (process && event->head.kind == RING_INTENT && event->head.time_ns > process->started) {
		execution_expect(process, event);
		return;
	}
	if (process)
		put_of_process(process, event);
	free(event);
}
