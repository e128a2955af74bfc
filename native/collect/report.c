// SPDX-License-Identifier: Apache-2.0
/*
 * What the collector says about itself: progress for --status-fd, messages on stderr, the stats.
 * Whatever was not collected is counted and said in words.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/output.h"
#include "capture/report.h"
#include "collect.h"
#include "writer.h"

#define STATUS_BYTES 512

struct counters counters;

static u64 lost(void)
{
	counters.lost = counters.unwritten + counters.malformed + counters.no_room +
			counters.damaged + counters.overwritten;
	return counters.lost;
}

bool report_lossy(void)
{
	return lost() || counters.dropped || counters.incomplete || counters.interrupted ||
	       writer_error();
}

/* With its comma; the words of strerror() hold nothing that JSON would want escaped. */
static const char *error_member(void)
{
	static char text[128];

	if (writer_error())
		snprintf(text, sizeof(text), ",\"error\":\"%s\"", strerror(writer_error()));
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

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

void report_progress(bool now)
{
	char text[STATUS_BYTES];
	size_t len;

	if (options.status_fd < 0 || (!report_is_due() && !now))
		return;
	len = format_status(text, sizeof(text));
	if (!(is_file(options.status_fd) ? replace_status(text, len)
					 : report_put_line(options.status_fd, text, len)))
		options.status_fd = -1; /* nobody reads it */
}

static void collect_warnings(void)
{
	report_warn_count(counters.dropped, "record", "records", "lost: the ring buffer was full");
	report_warn_count(counters.overwritten, "record", "records", "lost at least: overwritten in the ring buffer");
	report_warn_count(counters.unwritten, "event", "events", "lost: the output could not be written");
	report_warn_count(counters.incomplete, "event", "events", "left out: some records were lost");
	report_warn_count(counters.no_room, "event", "events", "lost: too many records waited for others");
	report_warn_count(counters.malformed, "record", "records", "lost: damaged");
	report_warn_count(counters.damaged, "page", "pages", "of the ring buffer damaged, and what followed there lost");
}

static void put_stats(FILE *file)
{
	const struct report_count counts[] = {
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
		{ "duration_ns", report_duration_ns() },
	};

	report_put_counts(file, counts, sizeof(counts) / sizeof(counts[0]));
	report_put_text(file, "ended", writer_error()        ? "write-error" :
				       counters.interrupted ? "interrupted" :
							      "stopped");
	if (writer_error())
		report_put_text(file, "error", strerror(writer_error()));
}

static void put_all(FILE *file)
{
	report_put_stats(file, "kmod", put_stats);
}

static void write_stats_fd(void)
{
	FILE *file = fdopen(options.stats_fd, "w");

	if (file)
		put_all(file);
	if (!file || fclose(file) != 0)
		say("cannot write the stats: %s", strerror(errno));
}

void report_end(void)
{
	collect_warnings();
	report_progress(true);
	if (options.stats)
		output_write_whole(options.stats, "stats", put_all);
	if (options.stats_fd >= 0)
		write_stats_fd();
}
