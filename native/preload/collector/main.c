// SPDX-License-Identifier: Apache-2.0
/*
 * etrace-preload: run a command and write what it and its descendants do as event lines
 * (docs/format.md), from the records of a library that the dynamic linker loads into each of them.
 * It works where ptrace does not, and misses what docs/capture-preload.md lists.
 *
 *   main       options, the course of a capture, warnings and stats
 *   build      the build with the library in it (child processes: native/capture/supervise.c)
 *   library    which library; ring_file: the memory that it writes to
 *   records    records in the order of time, and programs that cannot open the memory
 *   events     from a record to event lines; execution: programs; process: what is known of each
 *   unseen     programs without the library
 *
 * Options, reports and the writer of the trace are those of native/capture.
 */
#include "capture/capture.h"
#include "capture/options.h"
#include "capture/output.h"
#include "capture/report.h"
#include "capture/rlimits.h"
#include "capture/signals.h"
#include "capture/supervise.h"
#include "capture/trace.h"
#include "library.h"
#include "process.h"
#include "records.h"

const char program_name[] = "etrace";

void program_save(void)
{
	trace_flush();
	output_discard();
	library_release();
}

static const char *about(void)
{
	library_find(options.libraries);
	return library_has_other_size() ? ", 32 bits: yes" : ", 32 bits: no";
}

/* Programs that the trace lacks with all that they did and started, as far as they are known. */
static u64 n_untraced(void)
{
	return unseen_untraced() ? unseen_untraced() : events_left();
}

static void collect_warnings(void)
{
	capture_warn_of_writing();
	unseen_report();
	report_warn_count(ring_lost(), "event was", "events were",
		   "lost: the shared memory was full for too long");
	report_warn_count(ring_damaged(), "part", "parts",
		   "of the shared memory could not be understood: a program has written to it");
	if (!unseen_untraced() && events_left())
		report_warn("%llu %s in another PID namespace: what happens there is not in "
			    "the trace", (unsigned long long)events_left(),
			    events_left() == 1 ? "process began" : "processes began");
	report_warn_count(events_confined(), "process", "processes",
		   "restricted its own system calls: what it did from there on is not in the trace");
	report_warn_count(events_unknown_ends(), "process", "processes",
		   "ended and its parent did not ask how: the exit status is not in the trace");
	report_warn_unresolved(counters.unresolved_paths);
	if (options.thread_names)
		report_warn("--thread-names: the preload backend does not record them");
	if (options.mounts)
		report_warn("--mounts: the preload backend does not record them");
}

static void put_stats(FILE *file)
{
	const struct report_count counts[] = {
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
		{ "untraced", n_untraced() },
		{ "unknown_ends", events_unknown_ends() },
		{ "confined", events_confined() },
		{ "response_files", counters.response_files },
		{ "missed_response_files", counters.missed_response_files },
		{ "damaged", ring_damaged() },
	};

	report_put_counts(file, counts, sizeof(counts) / sizeof(counts[0]));
}

static void finish(void)
{
	enum ending ending = supervise_ending();

	environment_put();
	trace_close();
	saved_put();
	collect_warnings();
	counters.untraced = n_untraced();
	capture_write_stats(ending, supervise_status(), "preload", put_stats);
	capture_print_summary(ending);
	library_release();
}

int main(int argc, char **argv)
{
	int failure;

	program_start();
	options_parse(argc, argv, "etrace-preload", about);
	signals_save();
	limits_raise();
	limits_check();
	library_find(options.libraries);
	trace_open(options.trace_path);
	trace_put_first_line();
	ring_create(library_name(), (options.environment ? RING_WANTS_ENVIRONMENT : 0) |
					    (options.responses_path ? RING_WANTS_RESPONSES : 0));
	outside_open(ring_variable());
	report_start();
	failure = build_start();
	if (failure) {
		trace_close();
		output_discard();
		library_release();
		return failure;
	}
	supervise_run();
	finish();
	signals_end_like(capture_final_status(supervise_status(), ring_lost() || n_untraced()));
}
