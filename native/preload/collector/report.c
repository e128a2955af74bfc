// SPDX-License-Identifier: Apache-2.0
/* What the capture says about itself: progress, warnings, the stats file. */
#include "report.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "output/output.h"
#include "ring_file.h"
#include "output/trace_file.h"
#include "tracer.h"
#include "unseen.h"

#define MAX_WARNINGS 16
#define WARNING_MAX 500
#define STATUS_INTERVAL_NS 450000000u

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

void report_warn(const char *format, ...)
{
	va_list args;

	if (n_warnings == MAX_WARNINGS)
		return;
	va_start(args, format);
	vsnprintf(warnings[n_warnings], WARNING_MAX, format, args);
	va_end(args);
	say("%s", warnings[n_warnings++]);
}

static void warn_count(u64 n, const char *one, const char *many, const char *what)
{
	if (n)
		report_warn("%llu %s %s", (unsigned long long)n, n == 1 ? one : many, what);
}

void report_status(size_t n_live)
{
	static u64 last;
	struct pollfd writable = { .fd = options.status_fd, .events = POLLOUT };
	u64 now = monotonic_ns();

	if (options.status_fd < 0 || now - last < STATUS_INTERVAL_NS)
		return;
	last = now;
	if (poll(&writable, 1, 0) != 1 || !(writable.revents & POLLOUT))
		return;
	if (dprintf(options.status_fd,
		    "{\"processes\":%llu,\"live\":%zu,\"executions\":%llu,\"opens\":%llu,"
		    "\"bytes\":%llu}\n",
		    (unsigned long long)counters.processes, n_live,
		    (unsigned long long)counters.executions, (unsigned long long)counters.opens,
		    (unsigned long long)counters.bytes) < 0)
		options.status_fd = -1;
}

static void collect_warnings(void)
{
	if (trace_error())
		report_warn("the trace is incomplete: %llu %s lost because writing failed: %s",
			    (unsigned long long)counters.lost,
			    counters.lost == 1 ? "event" : "events", strerror(trace_error()));
	unseen_report(report_warn);
	warn_count(ring_lost(), "event was", "events were",
		   "lost: the shared memory was full for too long");
	warn_count(ring_damaged(), "part", "parts",
		   "of the shared memory could not be understood: a program has written to it");
	if (!unseen_untraced() && events_left())
		report_warn("%llu %s in another PID namespace: what happens there is not in "
			    "the trace", (unsigned long long)events_left(),
			    events_left() == 1 ? "process began" : "processes began");
	warn_count(events_confined(), "process", "processes",
		   "restricted its own system calls: what it did from there on is not in the trace");
	warn_count(events_unknown_ends(), "process", "processes",
		   "ended and its parent did not ask how: the exit status is not in the trace");
	if (options.thread_names)
		report_warn("--thread-names: the preload backend does not record them");
	if (options.mounts)
		report_warn("--mounts: the preload backend does not record them");
}

static void put_json_string(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20)
			fprintf(file, "\\u%04x", c);
		else if (c > 0x7e)
			fprintf(file, "\\udc%02x", c);
		else
			putc(c, file);
	}
	putc('"', file);
}

u64 report_untraced(void)
{
	return unseen_untraced() ? unseen_untraced() : events_left();
}

static void put_counters(FILE *file)
{
	const struct {
		const char *key;
		u64 value;
	} counts[] = {
		{ "events", counters.events },
		{ "lines", counters.lines },
		{ "bytes", counters.bytes },
		{ "lost", counters.lost + ring_lost() },
		{ "processes", counters.processes },
		{ "executions", counters.executions },
		{ "opens", counters.opens },
		{ "unresolved_paths", counters.unresolved_paths },
		{ "unread_strings", counters.unread_strings },
		{ "orphans", counters.orphans },
		{ "unseen_executions", unseen_count() },
		{ "untraced", report_untraced() },
		{ "unknown_ends", events_unknown_ends() },
		{ "confined", events_confined() },
		{ "response_files", counters.response_files },
		{ "missed_response_files", counters.missed_response_files },
		{ "damaged", ring_damaged() },
	};
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fprintf(file, ",\"%s\":%llu", counts[i].key, (unsigned long long)counts[i].value);
}

static const char *ending_name(bool is_interrupted, int wait_status)
{
	if (trace_error())
		return "write-error";
	if (is_interrupted)
		return "interrupted";
	return WIFSIGNALED(wait_status) ? "signal" : "exit";
}

static void put_stats(FILE *file, bool is_interrupted, int wait_status)
{
	bool signaled = WIFSIGNALED(wait_status);
	size_t i;

	fputs("{\"schema\":1,\"backend\":\"preload\"", file);
	put_counters(file);
	fprintf(file, ",\"ended\":\"%s\",\"exit_status\":%d,\"signal\":%d,\"duration_ns\":%llu",
		ending_name(is_interrupted, wait_status), signaled ? 0 : WEXITSTATUS(wait_status),
		signaled ? WTERMSIG(wait_status) : 0, (unsigned long long)report_duration_ns());
	fputs(",\"warnings\":[", file);
	for (i = 0; i < n_warnings; i++) {
		fputs(i ? "," : "", file);
		put_json_string(file, warnings[i]);
	}
	fputs("]}\n", file);
}

/* The file appears whole or not at all. */
static void write_stats(bool is_interrupted, int wait_status)
{
	char *temporary;
	FILE *file;
	int fd;

	if (asprintf(&temporary, "%s.%d.tmp", options.stats_path, getpid()) < 0)
		die("out of memory");
	fd = output_create(temporary);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (file)
		put_stats(file, is_interrupted, wait_status);
	if (!file || fclose(file) != 0 || output_rename(temporary, options.stats_path) < 0) {
		say("cannot write the stats '%s': %s", options.stats_path, strerror(errno));
		output_remove(temporary);
	}
	free(temporary);
}

void report_end(bool is_interrupted, int wait_status)
{
	collect_warnings();
	counters.untraced = report_untraced();
	if (options.stats_path && output_is_published())
		write_stats(is_interrupted, wait_status);
}
