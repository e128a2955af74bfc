// SPDX-License-Identifier: Apache-2.0
/*
 * What the capture says about itself: progress lines for --status-fd, warnings on stderr, the stats
 * file. Whatever was not captured is counted and said in words.
 */
#include "session/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output/output.h"
#include "output/trace_file.h"
#include "session/command.h"
#include "task/denied.h"
#include "task/proc_name.h"
#include "task/task.h"
#include "tracer.h"

#define MAX_WARNINGS 16
#define WARNING_MAX 400
#define STATUS_INTERVAL_NS 450000000u /* about twice a second, independent of the tick */

static char warnings[MAX_WARNINGS][WARNING_MAX];
static size_t n_warnings;
static u64 start_time;

void report_start(void)
{
	start_time = monotonic_ns();
}

u64 report_duration_ns(void)
{
	return monotonic_ns() - start_time;
}

static void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void warn(const char *format, ...)
{
	va_list args;

	if (n_warnings == MAX_WARNINGS)
		return;
	va_start(args, format);
	vsnprintf(warnings[n_warnings], WARNING_MAX, format, args);
	va_end(args);
	say("%s", warnings[n_warnings++]);
}

void report_status(void)
{
	static u64 last;
	struct pollfd writable = { .fd = options.status_fd, .events = POLLOUT };
	u64 now = monotonic_ns();

	if (options.status_fd < 0 || now - last < STATUS_INTERVAL_NS)
		return;
	last = now;
	if (poll(&writable, 1, 0) != 1 || !(writable.revents & POLLOUT))
		return; /* a reader that does not read must not stop the build */
	if (dprintf(options.status_fd,
		    "{\"processes\":%llu,\"live\":%zu,\"executions\":%llu,\"opens\":%llu,"
		    "\"bytes\":%llu}\n",
		    (unsigned long long)counters.processes, task_count(),
		    (unsigned long long)counters.executions, (unsigned long long)counters.opens,
		    (unsigned long long)counters.bytes) < 0)
		options.status_fd = -1; /* nobody reads it any more */
}

struct survivors {
	char text[200];
	size_t len;
	size_t n;
};

static void list_survivor(struct task *task, void *context)
{
	struct survivors *survivors = context;
	char name[PROC_NAME_MAX];
	char comm[32];
	int room = (int)(sizeof(survivors->text) - survivors->len);
	FILE *file;
	int len;

	if (task->tid != task->tgid)
		return;
	survivors->n++;
	proc_name(name, task->tid, "comm");
	file = fopen(name, "re");
	if (!file)
		return;
	if (fgets(comm, sizeof(comm), file)) {
		comm[strcspn(comm, "\n")] = '\0';
		len = snprintf(survivors->text + survivors->len, (size_t)room, "%s'%s' (%d)",
			       survivors->len ? ", " : "", comm, task->tid);
		if (len < room)
			survivors->len += (size_t)len;
		else
			survivors->text[survivors->len] = '\0';
	}
	fclose(file);
}

void report_survivors(void)
{
	struct survivors survivors = { .len = 0 };

	task_for_each(list_survivor, &survivors);
	warn("%zu %s unrecorded: %s; --wait-all waits for them", survivors.n,
	     survivors.n == 1 ? "process outlives the command and continues"
			      : "processes outlive the command and continue", survivors.text);
}

static void warn_count(u64 n, const char *one, const char *many, const char *what)
{
	if (n)
		warn("%llu %s %s", (unsigned long long)n, n == 1 ? one : many, what);
}

static void collect_warnings(void)
{
	if (trace_error())
		warn("the trace is incomplete: %llu %s lost because writing failed: %s",
		     (unsigned long long)counters.lost, counters.lost == 1 ? "event" : "events",
		     strerror(trace_error()));
	warn_count(counters.unread_strings, "string", "strings",
		   "of traced programs could not be read");
	warn_count(counters.unresolved_paths, "opened file has", "opened files have",
		   "no resolved path: the given path is used");
	warn_count(counters.unlisted_descriptors, "program", "programs",
		   "that may not be read: which descriptors were closed on exec is unknown");
	warn_count(counters.orphans, "process was", "processes were",
		   "made by a parent that was killed meanwhile: the trace does not say by which");
	warn_count(counters.io_uring_setups, "use", "uses",
		   "of io_uring: files opened through it are not in the trace");
	warn_count(counters.untraced, "process or thread was", "processes or threads were",
		   "made without a tracer (CLONE_UNTRACED): not in the trace");
	warn_count(counters.foreign_abi_calls, "system call", "system calls",
		   "of an unknown architecture: not in the trace");
	denied_report();
}

/* A string as JSON wants it; bytes that are not UTF-8 cannot come in, the messages are ours. */
static void put_json_string(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20)
			fprintf(file, "\\u%04x", c);
		else if (c > 0x7e) /* a thread name in the message: any bytes */
			fprintf(file, "\\udc%02x", c);
		else
			putc(c, file);
	}
	putc('"', file);
}

static void put_count(FILE *file, const char *key, u64 n)
{
	fprintf(file, ",\"%s\":%llu", key, (unsigned long long)n);
}

static void put_counters(FILE *file)
{
	static const struct {
		const char *key;
		const u64 *value;
	} counts[] = {
		{ "events", &counters.events },
		{ "lines", &counters.lines },
		{ "bytes", &counters.bytes },
		{ "lost", &counters.lost },
		{ "processes", &counters.processes },
		{ "threads", &counters.threads },
		{ "executions", &counters.executions },
		{ "opens", &counters.opens },
		{ "stops", &counters.stops },
		{ "unread_strings", &counters.unread_strings },
		{ "unresolved_paths", &counters.unresolved_paths },
		{ "unlisted_descriptors", &counters.unlisted_descriptors },
		{ "orphans", &counters.orphans },
		{ "response_files", &counters.response_files },
		{ "missed_response_files", &counters.missed_response_files },
		{ "io_uring_setups", &counters.io_uring_setups },
		{ "listeners", &counters.listeners },
		{ "untraced", &counters.untraced },
		{ "foreign_abi_calls", &counters.foreign_abi_calls },
		{ "refused_ptrace", &counters.refused_ptrace },
	};
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		put_count(file, counts[i].key, *counts[i].value);
}

static void put_warnings(FILE *file)
{
	size_t i;

	fputs(",\"warnings\":[", file);
	for (i = 0; i < n_warnings; i++) {
		fputs(i ? "," : "", file);
		put_json_string(file, warnings[i]);
	}
	for (i = 0; i < denied_count(); i++) {
		fputs(n_warnings + i ? "," : "", file);
		put_json_string(file, denied_text(i));
	}
	putc(']', file);
}

static const char *ending_name(enum ending ending, int wait_status)
{
	if (trace_error())
		return "write-error";
	if (ending == ENDING_TRACER)
		return "tracer-ended";
	if (ending == ENDING_INTERRUPTED)
		return "interrupted";
	return WIFSIGNALED(wait_status) ? "signal" : "exit";
}

static void put_stats(FILE *file, enum ending ending, int wait_status)
{
	bool signaled = WIFSIGNALED(wait_status);

	fputs("{\"schema\":1,\"backend\":\"ptrace\"", file);
	put_counters(file);
	fprintf(file, ",\"ended\":\"%s\"", ending_name(ending, wait_status));
	put_count(file, "exit_status", signaled ? 0 : (u64)WEXITSTATUS(wait_status));
	put_count(file, "signal", signaled ? (u64)WTERMSIG(wait_status) : 0);
	put_count(file, "duration_ns", report_duration_ns());
	fputs(",\"asan_options_added\":", file);
	put_json_string(file, command_asan_added());
	fputs(",\"lsan_options_added\":", file);
	put_json_string(file, command_lsan_added());
	put_warnings(file);
	fputs("}\n", file);
}

/* The file appears whole or not at all. */
static void write_stats(enum ending ending, int wait_status)
{
	char *temporary;
	FILE *file;
	int fd;

	if (asprintf(&temporary, "%s.%d.tmp", options.stats_path, getpid()) < 0)
		die("out of memory");
	fd = output_create(temporary);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (file)
		put_stats(file, ending, wait_status);
	if (!file || fclose(file) != 0 || output_rename(temporary, options.stats_path) < 0) {
		say("cannot write the stats '%s': %s", options.stats_path, strerror(errno));
		output_remove(temporary);
	}
	free(temporary);
}

void report_end(enum ending ending, int wait_status)
{
	collect_warnings();
	if (options.stats_path && output_is_published())
		write_stats(ending, wait_status);
}
