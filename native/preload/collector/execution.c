// SPDX-License-Identifier: Apache-2.0
/*
 * Executed programs -> Close (close-on-exec), New_proc with its strings, and Open and Close of the
 * objects that the dynamic linker loaded.
 *
 * A program that loads the library records what it is. Of any other only its parent image recorded
 * that it was about to be executed: when the call did not return, it was.
 */
#include "process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "capture/named.h"
#include "capture/options.h"
#include "capture/trace.h"
#include "library.h"
#include "names.h"

static const struct etrace_text *take_list(struct strings *strings, int32_t n, size_t *n_taken)
{
	static struct etrace_text *texts;
	static size_t n_max;
	size_t i;

	for (i = 0; (int32_t)i < n && strings->at < strings->end; i++) {
		if (i == n_max) {
			n_max = n_max ? 2 * n_max : 1024;
			texts = must_realloc(texts, n_max * sizeof(*texts));
		}
		texts[i] = strings_next(strings);
	}
	*n_taken = i;
	return texts;
}

/* Which descriptors a program began with. */
struct open_set {
	struct etrace_text bits;
	bool is_whole; /* those beyond the bits are closed; or else they are not known */
};

static struct open_set open_set_of(const struct etrace_text *text)
{
	if (!text->len)
		return (struct open_set){ *text, false };
	return (struct open_set){ { text->text + 1, text->len - 1 }, text->text[0] };
}

static bool is_open(const struct open_set *open, int fd)
{
	if ((size_t)fd / 8 >= open->bits.len)
		return !open->is_whole;
	return (unsigned char)open->bits.text[fd / 8] >> (fd % 8) & 1;
}

static void put_closes(struct process *process, u64 now, const struct open_set *open)
{
	s64 fd;

	for (fd = 0; (fd = fd_table_next(process->fds, (int)fd)) >= 0; fd++)
		if (!is_open(open, (int)fd)) {
			fd_table_remove(process->fds, (int)fd);
			process_put(process, now, ETRACE_EV_CLOSE, &fd, NULL);
		}
}

static void put_new_proc(struct process *process, u64 now, const struct etrace_text *data,
			 const struct etrace_text *arguments, size_t n)
{
	struct etrace_prefix prefix;

	process_prefix(process, now, &prefix);
	trace_put_execution(&prefix, data, arguments, n);
}

/* ---- objects ---- */

static int lowest_free(const struct open_set *open)
{
	int n = (int)open->bits.len * 8;
	int fd = 0;

	while (fd < n && is_open(open, fd))
		fd++;
	return fd;
}

static void put_object(struct process *process, u64 now, const struct etrace_text *path, int fd)
{
	s64 values[3] = { O_RDONLY | O_CLOEXEC, 0, fd };
	struct etrace_text data[2];
	struct name resolved;
	s64 closed = fd;

	name_set(&resolved, path->text, path->len);
	name_resolve(&resolved);
	data[0] = name_text(&resolved);
	data[1] = *path;
	process_put(process, now, ETRACE_EV_OPEN, values, data);
	process_put(process, now, ETRACE_EV_CLOSE, &closed, NULL);
	counters.opens++;
}

static void put_objects(struct process *process, u64 now, struct strings *strings, int32_t n, int fd)
{
	int32_t i;

	for (i = 0; i < n && strings->at < strings->end; i++) {
		struct etrace_text path = strings_next(strings);

		if (path.len)
			put_object(process, now, &path, fd);
	}
}

void execution_put_objects(struct process *process, struct event *event)
{
	struct strings strings = strings_of(event);

	put_objects(process, event->head.time_ns, &strings, event->head.args[0],
		    fd_table_lowest_free(process->fds, 3));
}

/* ---- a program with the library ---- */

/* A link of /proc does not last: its target is taken. */
static bool is_proc_link(const struct name *name)
{
	return !strncmp(name->text, "/proc/", 6) || !strncmp(name->text, "/dev/fd/", 8);
}

/* What was asked for: as its parent image recorded, or the kernel. */
static void find_program(const struct process *process, const struct etrace_text *asked,
			 const struct etrace_text *loaded, const struct etrace_text *cwd,
			 struct name *program)
{
	const struct event *intent = process->intent;

	if (intent && intent->head.args[1] == 0) {
		struct strings strings = strings_of(intent);
		struct etrace_text path = strings_next(&strings);

		name_set(program, path.text, path.len);
		if (is_proc_link(program) && loaded->len)
			name_set(program, loaded->text, loaded->len);
		return;
	}
	name_join(program, cwd->text, cwd->len, asked);
	if (asked->len && !program->len) /* below a directory whose path is too long */
		return;
	if (!asked->len || is_proc_link(program))
		name_set(program, loaded->text, loaded->len);
	else
		name_resolve_directories(program);
}

static void find_interpreter(const struct name *program, const struct etrace_text *loaded,
			     const struct etrace_text *cwd, const struct etrace_text *first,
			     struct name *interpreter)
{
	name_set(interpreter, program->text, program->len);
	if (!loaded->len || name_leads_to(program, loaded))
		return;
	name_join(interpreter, cwd->text, cwd->len, first);
	name_resolve_directories(interpreter);
	if (!first->len || !name_leads_to(interpreter, loaded))
		name_set(interpreter, loaded->text, loaded->len);
}

void execution_put_start(struct process *process, struct event *event)
{
	struct strings strings = strings_of(event);
	struct etrace_text asked = strings_next(&strings);
	struct etrace_text loaded = strings_next(&strings);
	struct etrace_text cwd = strings_next(&strings);
	struct etrace_text text = strings_next(&strings);
	struct open_set open = open_set_of(&text);
	u64 now = event->head.time_ns;
	const struct etrace_text *list;
	struct name program, interpreter;
	struct etrace_text none = { "", 0 };
	struct etrace_text data[3];
	size_t n;

	list = take_list(&strings, event->head.args[0], &n);
	find_program(process, &asked, &loaded, &cwd, &program);
	find_interpreter(&program, &loaded, &cwd, n ? &list[0] : &none, &interpreter);
	execution_forget(process);
	put_closes(process, now, &open);
	process_set_cwd(process, cwd.text, cwd.len);
	counters.unresolved_paths += !cwd.len;
	data[0] = name_text(&interpreter);
	data[1] = name_text(&program);
	data[2] = (struct etrace_text){ process->cwd, strlen(process->cwd) };
	put_new_proc(process, now, data, list, n);
	list = take_list(&strings, event->head.args[1], &n);
	if (environment_is_wanted(&data[0]))
		environment_add(process->upid, list, n);
	put_objects(process, now, &strings, event->head.args[2], lowest_free(&open));
	process->started = now;
	process_hear(process);
	process->silent = strndup(interpreter.text, interpreter.len);
}

/* What a compiler read from `@FILE`. What makes no sense was forged, and counts as missed. */
void execution_put_response(const struct process *process, const struct event *event)
{
	struct strings strings = strings_of(event);
	struct etrace_text path = strings_next(&strings);
	struct etrace_text content = strings_next(&strings);
	bool is_saved;

	if (!options.responses_path)
		return;
	if (event->head.args[0] > 0) {
		counters.missed_response_files += (u64)event->head.args[0];
		return;
	}
	is_saved = path.len && path.len < NAMED_PATH_MAX && path.text[0] == '/' &&
		   !memchr(path.text, '\0', path.len) && content.len <= RESPONSE_FILE_BYTES &&
		   saved_add(process->upid, path.text, path.len, content.text, content.len);
	counters.response_files += is_saved;
	counters.missed_response_files += !is_saved;
}

/* ---- a program without it ---- */

/* The response files of a compiler without the library are gone when this is read. */
static void count_responses(const struct etrace_text *arguments, size_t n)
{
	struct naming naming = { 0 };
	size_t i;

	for (i = 0; i < n && naming.state != NAMING_NONE; i++) {
		size_t len = arguments[i].len;

		counters.missed_response_files +=
			naming_next(&naming, arguments[i].text, &len) && len;
	}
}

void execution_expect(struct process *process, struct event *event)
{
	free(process->intent);
	process->intent = event;
}

void execution_forget(struct process *process)
{
	free(process->intent);
	process->intent = NULL;
}

void execution_settle(struct process *process)
{
	struct event *event = process->intent;
	struct strings strings;
	struct etrace_text path, cwd;
	const struct etrace_text *list;
	struct etrace_text data[3];
	struct name interpreter;
	size_t n;

	if (!event)
		return;
	process->intent = NULL;
	process_hear(process);
	strings = strings_of(event);
	path = strings_next(&strings);
	cwd = strings_next(&strings);
	list = take_list(&strings, event->head.args[0], &n);
	unseen_add(process->pid, &path, event->head.args[2], &interpreter);
	process_set_cwd(process, cwd.text, cwd.len);
	data[0] = name_text(&interpreter);
	data[1] = path;
	data[2] = (struct etrace_text){ process->cwd, strlen(process->cwd) };
	put_new_proc(process, event->head.time_ns, data, list, n);
	count_responses(list, n);
	free(event);
}
