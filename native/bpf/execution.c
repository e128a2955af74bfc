// SPDX-License-Identifier: Apache-2.0
/*
 * A program was loaded -> Close (close-on-exec), Comm, New_proc and its strings. The record of the
 * execution comes first; the arguments and the environment follow it in pieces.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/trace.h"
#include "capture/options.h"
#include "capture/program.h"
#include "capture/response.h"
#include "capture/trace.h"

enum { ARGUMENTS, ENVIRONMENT, N_LISTS };

struct list {
	char *text;
	size_t n; /* that have come */
	size_t size; /* that are to come in all */
};

struct execution {
	u64 time_ns;
	u32 cpu;
	struct name interpreter;
	struct name program;
	struct etrace_text cwd;
	struct etrace_text comm;
	struct list lists[N_LISTS];
	struct rights rights; /* when it began */
	struct root *root; /* NULL: that of this process */
	bool sees_files; /* these are known */
	char strings[2 * PATH_MAX];
};

void execution_free(struct traced *task)
{
	struct execution *execution = task->execution;

	if (!execution)
		return;
	free(execution->lists[ARGUMENTS].text);
	free(execution->lists[ENVIRONMENT].text);
	root_release(execution->root);
	free(execution);
	task->execution = NULL;
}

/* The texts of a list, between null bytes; used again by the next list. */
static const struct etrace_text *split(const struct list *list, size_t *n)
{
	static struct etrace_text *texts;
	static size_t n_max;
	const char *at = list->text;
	const char *end = at + list->n;

	*n = 0;
	while (at < end) {
		const char *last = memchr(at, '\0', (size_t)(end - at));

		if (!last)
			last = end;
		if (*n == n_max) {
			n_max = n_max ? 2 * n_max : 256;
			texts = must_realloc(texts, n_max * sizeof(*texts));
		}
		texts[(*n)++] = (struct etrace_text){ at, (size_t)(last - at) };
		at = last + 1;
	}
	return texts;
}

static void put_execution(struct traced *task)
{
	struct execution *execution = task->execution;
	struct etrace_text data[3];
	const struct etrace_text *texts;
	struct etrace_prefix prefix;
	size_t n;

	data[0] = name_text(&execution->interpreter);
	data[1] = name_text(&execution->program);
	data[2] = execution->cwd;
	task->cpu = execution->cpu;
	events_put_written(task, execution->time_ns, false);
	events_put_usage(task, execution->time_ns);
	if (task->is_root) /* they are those of etrace-bpf */
		events_forget_closing(task);
	events_put_closed(task, execution->time_ns);
	task->is_root = false;
	if (options.thread_names)
		events_put_at(task, execution->time_ns, ETRACE_EV_COMM, NULL, &execution->comm);
	etrace_prefix_init(&prefix, task->upid, task->cpu, execution->time_ns);
	texts = split(&execution->lists[ARGUMENTS], &n);
	trace_put_execution(&prefix, data, texts, n);
	if (response_is_wanted(texts, n))
		response_add(task->upid, texts, n, execution->cwd.text,
			     execution->sees_files ? &execution->rights : NULL,
			     root_fd(execution->root));
	if (environment_is_wanted(&data[0])) {
		texts = split(&execution->lists[ENVIRONMENT], &n);
		environment_add(task->upid, texts, n);
	}
	execution_free(task);
}

static void put_when_whole(struct traced *task)
{
	const struct execution *execution = task->execution;
	size_t i;

	for (i = 0; i < N_LISTS; i++)
		if (execution->lists[i].n < execution->lists[i].size)
			return;
	put_execution(task);
}

static bool is_link_of_proc(const struct etrace_text *name)
{
	return (name->len > 6 && !strncmp(name->text, "/proc/", 6)) ||
	       (name->len > 8 && !strncmp(name->text, "/dev/fd/", 8));
}

/* The kernel's own name of what execveat() was given: /dev/fd/NUMBER/name. Returns the name, or "". */
static struct etrace_text name_below_descriptor(const struct etrace_text *name)
{
	const char *end = name->text + name->len;
	const char *slash = name->len > 8 ? memchr(name->text + 8, '/', name->len - 8) : NULL;

	if (!slash || strncmp(name->text, "/dev/fd/", 8))
		return (struct etrace_text){ "", 0 };
	return (struct etrace_text){ slash + 1, (size_t)(end - slash - 1) };
}

/* A name that a program was found by: its directories resolved, or the file itself. */
static void find_name(struct name *name, const struct traced *task, const struct etrace_text *text,
		      const struct etrace_text *cwd, const struct etrace_text *file, const struct viewer *viewer)
{
	struct etrace_text below = name_below_descriptor(text);

	if (is_link_of_proc(text) && task->exec_name.text)
		name_join(name, &task->exec_name, &below);
	else if (is_link_of_proc(text) || !text->len)
		name_join(name, cwd, file->len ? file : text);
	else
		name_join(name, cwd, text);
	if (name->len != file->len || memcmp(name->text, file->text, file->len)) /* or it is resolved */
		name_resolve_directories(name, viewer);
}

static struct etrace_text keep(char **at, const char *end, const struct etrace_text *text)
{
	struct etrace_text kept = { *at, text->len };

	if (kept.len >= (size_t)(end - *at))
		kept.len = (size_t)(end - *at) - 1;
	memcpy(*at, text->text, kept.len);
	(*at)[kept.len] = '\0';
	*at += kept.len + 1;
	return kept;
}

/* Its response files are read when its arguments have come, as it sees them now. */
static void note_view(struct execution *execution, const struct viewer *viewer)
{
	execution->root = root_hold(viewer->root);
	execution->sees_files = !viewer->is_lost && (viewer->rights || geteuid() != 0);
	memset(&execution->rights, 0, sizeof(execution->rights));
	if (viewer->rights)
		execution->rights = *viewer->rights;
}

void execution_begin(struct traced *task, const struct record *record, const struct etrace_text *strings)
{
	struct execution *execution;
	struct viewer viewer;
	char *at;
	size_t i;

	execution_free(task);
	task->pid = (pid_t)record->pid;
	task->leader = task->key; /* a thread that executes is the first of its process */
	viewer = traced_viewer(task, record);
	execution = must_alloc(sizeof(*execution));
	memset(execution->lists, 0, sizeof(execution->lists));
	note_view(execution, &viewer);
	execution->time_ns = record->time_ns;
	execution->cpu = record->cpu;
	at = execution->strings;
	execution->cwd = keep(&at, execution->strings + sizeof(execution->strings), &strings[3]);
	execution->comm = keep(&at, execution->strings + sizeof(execution->strings), &strings[4]);
	find_name(&execution->program, task, &strings[0], &strings[3], &strings[2], &viewer);
	if (execution->program.len && strings[1].len == strings[0].len && !memcmp(strings[0].text, strings[1].text, strings[0].len))
		execution->interpreter = execution->program;
	else
		find_name(&execution->interpreter, task, &strings[1], &strings[3], &strings[2], &viewer);
	if (!execution->interpreter.len) /* below a directory whose path is too long */
		name_join(&execution->interpreter, &strings[2], &(struct etrace_text){ "", 0 });
	for (i = 0; i < N_LISTS; i++) {
		execution->lists[i].size = (size_t)record->values[i];
		execution->lists[i].text = must_alloc(execution->lists[i].size + 1);
	}
	task->execution = execution;
	put_when_whole(task);
}

void execution_add(struct traced *task, const struct record *record, const char *text, size_t n)
{
	struct execution *execution = task->execution;
	struct list *list;

	if (!execution)
		return;
	list = &execution->lists[record->values[0] ? ENVIRONMENT : ARGUMENTS];
	if (n > list->size - list->n)
		n = list->size - list->n;
	if (record->flags & RECORD_UNREAD) {
		counters.unread_strings++;
		memset(list->text + list->n, '?', n);
	} else {
		memcpy(list->text + list->n, text, n);
	}
	list->n += n;
	put_when_whole(task);
}
