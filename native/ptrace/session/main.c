// SPDX-License-Identifier: Apache-2.0
/*
 * etrace-ptrace: run a command and write what it and its descendants do as event lines
 * (docs/format.md), without privileges and without a kernel module.
 *
 * How it works. A seccomp filter, installed in the command and inherited by all it starts, lets the
 * system calls that matter stop for a tracer and no others; the tracer is attached with
 * PTRACE_SEIZE. The parts:
 *
 *   session/  front     the process that the user started; the tracer is its child
 *             command   start of the command, attached and filtered before its first instruction
 *             loop      the stops: the meaning of each, and how the task continues
 *   event/    syscall   from the kind of a call to its functions in descriptor, name, process
 *             exec      a program was loaded; usage: what processes used; written: and wrote
 *   task/     task      the traced tasks, how each continues, and where
 *             filter    which calls of which table of numbers stop, and their kind
 *             memory    strings and registers of a task
 *             path      links of /proc; resolve: names as the task sees them
 *             lookup    what may wait for a file system, which the loop never does
 *             denied    ptrace refused, to this tracer or to programs of the build
 *   capture/            options, reports, response files, writer of the trace (native/capture)
 *
 * Costs, and what saves them. A stop is two context switches, 3 to 6 microseconds, and is two
 * thirds of all costs. So: the kind comes with the stop, in the filter's return data; the path of
 * a failed open is not read at all; a close or dup whose result is known stops once, not twice; fork,
 * exec and exit need no stop besides the one ptrace makes for them anyway; clone stops once; and a
 * task goes on where the tracer runs.
 *
 * Left out: a look by the tracer whether a file exists, to save the exit stop of an open that must
 * fail (a fifth of a C build's stops). Between the look and the open another process can make the
 * file, and the open would be lost without a trace.
 *
 * Order in the trace: the SchedFork of a child precedes all events of the child, and lines of one
 * event are contiguous. What cannot be seen: see docs/capture-ptrace.md.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/options.h"
#include "capture/output.h"
#include "capture/report.h"
#include "capture/response.h"
#include "capture/rlimits.h"
#include "capture/signals.h"
#include "capture/trace.h"
#include "capture/unrunnable.h"
#include "event/event.h"
#include "session/session.h"
#include "task/task.h"

const char program_name[] = "etrace";

void program_save(void)
{
	trace_flush(); /* keep the captured part readable */
	output_discard();
}

static const char *about(void)
{
	return "";
}

/* /proc must be there, and be that of this process's own pid namespace. */
static void check_proc(void)
{
	char text[32];
	ssize_t len = readlink("/proc/self", text, sizeof(text) - 1);

	text[len > 0 ? len : 0] = '\0';
	if (atoi(text) != getpid())
		die("/proc is %s: mount it (mount -t proc proc /proc) and try again",
		    len > 0 ? "that of another pid namespace" : "missing");
}

static void put_written(struct task *task, void *context)
{
	(void)context;
	written_put(task, monotonic_ns(), false);
}

static void add_survivor(struct task *task, void *context)
{
	(void)context;
	if (task->tid == task->tgid)
		capture_add_survivor(task->tid);
}

/* ---- reports ---- */

static void collect_warnings(void)
{
	capture_warn_of_writing();
	report_warn_count(counters.unread_strings, "string", "strings",
			  "of traced programs could not be read");
	report_warn_count(counters.changed_arguments, "system call", "system calls",
			  "changed in memory while the kernel read them: names and flags in the trace "
			  "may be those of before or after");
	report_warn_unresolved(counters.unresolved_paths);
	report_warn_count(counters.unlisted_descriptors, "program", "programs",
			  "that may not be read: which descriptors were closed on exec is unknown");
	report_warn_count(counters.orphans, "process was", "processes were",
			  "made by a parent that was killed meanwhile: the trace does not say by which");
	report_warn_count(counters.io_uring_setups, "use", "uses",
			  "of io_uring: files opened through it are not in the trace");
	report_warn_count(counters.untraced, "process or thread was", "processes or threads were",
			  "made without a tracer (CLONE_UNTRACED): not in the trace");
	report_warn_count(counters.foreign_abi_calls, "system call", "system calls",
			  "of an unknown architecture: not in the trace");
	denied_report();
}

static void put_stats(FILE *file)
{
	const struct report_count counts[] = {
		{ "events", counters.events },
		{ "lines", counters.lines },
		{ "bytes", counters.bytes },
		{ "lost", counters.lost },
		{ "processes", counters.processes },
		{ "threads", counters.threads },
		{ "executions", counters.executions },
		{ "opens", counters.opens },
		{ "stops", counters.stops },
		{ "unread_strings", counters.unread_strings },
		{ "unresolved_paths", counters.unresolved_paths },
		{ "unlisted_descriptors", counters.unlisted_descriptors },
		{ "orphans", counters.orphans },
		{ "response_files", counters.response_files },
		{ "missed_response_files", counters.missed_response_files },
		{ "io_uring_setups", counters.io_uring_setups },
		{ "listeners", counters.listeners },
		{ "untraced", counters.untraced },
		{ "foreign_abi_calls", counters.foreign_abi_calls },
		{ "refused_ptrace", counters.refused_ptrace },
		{ "changed_arguments", counters.changed_arguments },
	};

	report_put_counts(file, counts, sizeof(counts) / sizeof(counts[0]));
	command_put_stats(file);
}

static void finish(enum loop_end end)
{
	int status = loop_root_status();
	enum ending ending = capture_ending(status, front_was_interrupted(), loop_was_killed());

	if (end == LOOP_FRONT_GONE)
		ending = ENDING_TRACER;
	task_for_each(put_written, NULL);
	environment_put();
	response_put();
	trace_close();
	if (end == LOOP_SURVIVORS) {
		task_for_each(add_survivor, NULL);
		capture_warn_survivors();
	}
	collect_warnings();
	capture_write_stats(ending, status, "ptrace", put_stats);
	capture_print_summary(ending);
	output_discard();
}

/*
 * For the daemons of the build. Whoever waits for the end of a pipe or the release of a lock must
 * not wait for this process.
 */
static void stay_in_background(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd;

	for (fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	options.status_fd = -1;
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0 || chdir("/") < 0)
		return; /* Linux before 5.9: inherited descriptors stay open */
}

/* For backends in Python: --explain ERROR COMMAND.., see command_explain(). */
#define EXPLAIN "--explain"

int main(int argc, char **argv)
{
	enum loop_end end;
	int failure;
	pid_t root;

	program_start();
	if (argc > 3 && !strcmp(argv[1], EXPLAIN))
		return command_explain(argv + 3, atoi(argv[2]));
	options_parse(argc, argv, "etrace-ptrace", about);
	front_set_arguments(argv);
	check_proc();
	signals_save();
	limits_raise();
	limits_check();
	trace_open(options.trace_path);
	trace_put_first_line();
	front_split();
	report_start();
	loop_init();
	root = command_start();
	signals_release();
	end = loop_run(root);
	failure = counters.executions ? 0 : command_failure();
	finish(end);
	if (end == LOOP_FRONT_GONE) /* PTRACE_O_EXITKILL ends the build with this process */
		return STATUS_ETRACE_FAILED;
	front_finish(failure ? failure << 8 : capture_final_status(loop_root_status(), counters.untraced),
		     end == LOOP_SURVIVORS);
	if (end == LOOP_SURVIVORS) {
		stay_in_background();
		loop_run(root);
	}
	return 0;
}
