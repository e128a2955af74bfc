// SPDX-License-Identifier: Apache-2.0
/* The build with the library in it: what it finds, what is read of it, and when. */
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/supervise.h"
#include "library.h"
#include "names.h"

#define SETTLED_NS 100000000u /* a record that is older has arrived */
#define RECLAIM_NS 1000000000u

static size_t n_live;

static void prepare(void)
{
	setenv(RING_VARIABLE, ring_variable(), 1);
	capture_add_variable("LD_PRELOAD", library_name(), NULL);
	capture_add_variable("ASAN_OPTIONS", "verify_asan_link_order=0", "verify_asan_link_order");
}

/* Where execvp() found the command. */
static void find_command(struct etrace_text *path, char text[PATH_MAX])
{
	const char *name = options.command[0];
	const char *at = getenv("PATH");

	if (strchr(name, '/') || !at)
		snprintf(text, PATH_MAX, "%s", name);
	for (; !strchr(name, '/') && at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		snprintf(text, PATH_MAX, "%.*s/%s", (int)strcspn(at, ":"), at, name);
		if (access(text, X_OK) == 0)
			break;
	}
	*path = (struct etrace_text){ text, strlen(text) };
}

/* What the library would have recorded: the command itself may be a static program. */
static void expect_command(pid_t root, u64 start)
{
	char text[PATH_MAX], cwd[PATH_MAX];
	struct name absolute;
	struct etrace_text path;
	struct event *event;
	size_t size = 4 * PATH_MAX;
	size_t n_cwd;
	size_t i;

	find_command(&path, text);
	n_cwd = getcwd(cwd, sizeof(cwd)) ? strlen(cwd) : 0;
	name_join(&absolute, cwd, n_cwd, &path);
	name_resolve_directories(&absolute);
	path = name_text(&absolute);
	for (i = 0; options.command[i]; i++)
		size += strlen(options.command[i]) + sizeof(uint32_t);
	event = event_make(RING_INTENT, root, start, size);
	event_add_text(event, path.text, path.len);
	event_add_text(event, cwd, n_cwd);
	for (i = 0; options.command[i]; i++)
		event_add_text(event, options.command[i], strlen(options.command[i]));
	event->head.args[0] = (int32_t)i;
	process_set_cwd(process_begin(root, NULL, start), cwd, n_cwd);
	order_add(event);
}

static void put_until(u64 limit)
{
	struct event *event;

	while ((event = order_take(limit)))
		events_put(event);
}

/* The last records of a child that ended are taken out first. */
static void take_end(pid_t pid, int status)
{
	struct event *event;

	ring_drain(order_add);
	event = event_make(RING_CHILD_END, pid, monotonic_ns(), 0);
	event->head.args[0] = pid;
	event->head.args[1] = status;
	event->order = UINT64_MAX;
	order_add(event);
}

/* Numbers come from records, and any process of the build can write those of others. */
static void kill_one(struct process *process)
{
	supervise_kill(process->pid);
}

static void kill_all(void)
{
	process_for_each(kill_one);
}

static void count_one(struct process *process)
{
	(void)process;
	n_live++;
}

static size_t count_live(void)
{
	n_live = 0;
	process_for_each(count_one);
	return n_live;
}

static void on_tick(u64 now)
{
	static u64 reclaimed;

	ring_drain(order_add);
	outside_take(order_add);
	put_until(now - SETTLED_NS);
	if (now - reclaimed < RECLAIM_NS)
		return;
	reclaimed = now;
	ring_reclaim();
}

static void name_survivor(struct process *process)
{
	if (supervise_is_of_build(process->pid))
		capture_add_survivor(process->pid);
}

static void drain(void)
{
	ring_drain(order_add);
	ring_close();
	ring_drain(order_add);
	outside_take(order_add);
	put_until(UINT64_MAX);
	process_for_each(name_survivor);
	capture_warn_survivors();
	events_settle();
}

static struct supervised parts = {
	.prepare = prepare,
	.start = expect_command,
	.end = take_end,
	.tick = on_tick,
	.kill = kill_all,
	.n_live = count_live,
	.drain = drain,
};

int build_start(void)
{
	parts.fd = outside_fd();
	return supervise_start(&parts);
}
