// SPDX-License-Identifier: Apache-2.0
/*
 * What the collector says about itself: progress for --status-fd, messages on stderr, the stats.
 * Whatever was not collected is counted and said in words.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "output.h"
#include "report.h"

#define STATUS_INTERVAL_NS 450000000u /* about twice a second, independent of the rounds */
#define STATUS_BYTES 512
#define WARNINGS_MAX 16
#define WARNING_MAX 300

static char warnings[WARNINGS_MAX][WARNING_MAX];
static size_t n_warnings;
static u64 start_ns;

struct counters counters;

void report_start(void)
{
	start_ns = monotonic_ns();
}

static u64 lost(void)
{
	counters.lost = counters.unwritten + counters.malformed + counters.no_room +
			counters.damaged + counters.overwritten;
	return counters.lost;
}

bool report_lossy(void)
{
	return lost() || counters.dropped || counters.incomplete || counters.interrupted ||
	       output_error();
}

/* With its comma; the words of strerror() hold nothing that JSON would want escaped. */
static const char *error_member(void)
{
	static char text[128];

	if (output_error())
		snprintf(text, sizeof(text), ",\"error\":\"%s\"", strerror(output_error()));
	return text;
}

static size_t format_status(char *text, size_t size)
{
	u64 started = counters.processes + counters.threads;
	u64 live = started > counters.exits ? started - counters.exits : 0;

	return (size_t)snprintf(text, size,
				"{\"processes\":%" PRIu64 ",\"live\":%" PRIu64
				",\"executions\":%" PRIu64 ",\"opens\":%" PRIu64
				",\"bytes\":%" PRIu64 ",\"records\":%" PRIu64
				",\"written_records\":%" PRIu64 ",\"lost\":%" PRIu64
				",\"dropped_records\":%" PRIu64 "%s}\n",
				counters.processes, live, counters.executions, counters.opens,
				counters.bytes, counters.records, counters.written_records, lost(),
				counters.dropped, error_member());
}

/*
 * In a file the line replaces the one before: with one write, as all of them are equally long. A
 * collector killed at any moment leaves a whole line.
 */
static bool replace_status(char text[STATUS_BYTES], size_t len)
{
	memset(text + len - 1, ' ', STATUS_BYTES - len);
	text[STATUS_BYTES - 1] = '\n';
	return ftruncate(options.status_fd, STATUS_BYTES) == 0 &&
	       pwrite(options.status_fd, text, STATUS_BYTES, 0) == STATUS_BYTES;
}

/* Elsewhere lines follow each other. */
static bool write_status(char text[STATUS_BYTES], size_t len)
{
	struct pollfd writable = { .fd = options.status_fd, .events = POLLOUT };
	struct stat st;

	if (fstat(options.status_fd, &st) == 0 && S_ISREG(st.st_mode))
		return replace_status(text, len);
	if (poll(&writable, 1, 0) != 1 || !(writable.revents & POLLOUT))
		return true; /* a reader that does not read must not stop the collecting */
	return write(options.status_fd, text, len) == (ssize_t)len;
}

void report_status(bool now)
{
	static u64 last_ns;
	u64 now_ns = monotonic_ns();
	char text[STATUS_BYTES];

	if (options.status_fd < 0 || (!now && now_ns - last_ns < STATUS_INTERVAL_NS))
		return;
	last_ns = now_ns;
	if (!write_status(text, format_status(text, sizeof(text))))
		options.status_fd = -1; /* nobody reads it any more */
}

static void warn_count(u64 n, const char *what, const char *why)
{
	if (!n)
		return;
	snprintf(warnings[n_warnings], WARNING_MAX, "%" PRIu64 " %s%s %s", n, what,
		 n == 1 ? "" : "s", why);
	say("%s", warnings[n_warnings++]);
}

static void collect_warnings(void)
{
	warn_count(counters.dropped, "record", "lost: the ring buffer was full");
	warn_count(counters.overwritten, "record", "lost at least: overwritten in the ring buffer");
	warn_count(counters.unwritten, "event", "lost: the output could not be written");
	warn_count(counters.incomplete, "event", "left out: some records were lost");
	warn_count(counters.no_room, "event", "lost: too many records waited for others");
	warn_count(counters.malformed, "record", "lost: damaged");
	warn_count(counters.damaged, "page", "of the ring buffer damaged, and what followed there lost");
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
		{ "written_bytes", counters.written },
		{ "lost", lost() },
		{ "processes", counters.processes },
		{ "threads", counters.threads },
		{ "executions", counters.executions },
		{ "opens", counters.opens },
		{ "records", counters.records },
		{ "written_records", counters.written_records },
		{ "dropped_records", counters.dropped },
		{ "overwritten_records", counters.overwritten },
		{ "incomplete_events", counters.incomplete },
		{ "unwritten_events", counters.unwritten },
		{ "given_up_events", counters.no_room },
		{ "malformed_records", counters.malformed },
		{ "damaged_pages", counters.damaged },
		{ "foreign_records", counters.foreign },
		{ "unordered_events", counters.unordered },
		{ "failed_reads", counters.failed_reads },
		{ "pages", counters.pages },
		{ "rounds", counters.rounds },
		{ "duration_ns", monotonic_ns() - start_ns },
	};
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fprintf(file, ",\"%s\":%" PRIu64, counts[i].key, counts[i].value);
}

static const char *ended(void)
{
	if (output_error())
		return "write-error";
	return counters.interrupted ? "interrupted" : "stopped";
}

/* The messages are ours and hold nothing that JSON would want escaped. */
static void put_stats(FILE *file)
{
	size_t i;

	fputs("{\"schema\":1,\"backend\":\"kmod\"", file);
	put_counters(file);
	fprintf(file, ",\"ended\":\"%s\"%s,\"warnings\":[", ended(), error_member());
	for (i = 0; i < n_warnings; i++)
		fprintf(file, "%s\"%s\"", i ? "," : "", warnings[i]);
	fputs("]}\n", file);
}

static void write_stats_fd(void)
{
	FILE *file = fdopen(options.stats_fd, "w");

	if (file)
		put_stats(file);
	if (!file || fclose(file) != 0)
		say("cannot write the stats: %s", strerror(errno));
}

/* The file appears whole or not at all, as private as a trace; no link there is followed. */
static void write_stats_file(void)
{
	char *temporary;
	FILE *file;
	int fd;

	if (asprintf(&temporary, "%s.%d.tmp", options.stats, getpid()) < 0)
		die("out of memory");
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (file)
		put_stats(file);
	if (!file || fclose(file) != 0 || rename(temporary, options.stats) < 0) {
		say("cannot write the stats '%s': %s", options.stats, strerror(errno));
		if (fd >= 0)
			unlink(temporary);
	}
	free(temporary);
}

void report_end(void)
{
	collect_warnings();
	report_status(true);
	if (options.stats)
		write_stats_file();
	if (options.stats_fd >= 0)
		write_stats_fd();
}
