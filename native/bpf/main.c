// SPDX-License-Identifier: Apache-2.0
/*
 * etrace-bpf: run a command and write what it and its descendants do as event lines
 * (docs/format.md), from the records of programs that the kernel runs at its tracepoints. It takes root
 * or CAP_BPF and CAP_PERFMON, and no module; the build is never stopped.
 *
 *   main       options, the course of a capture, warnings and stats
 *   kernel     the programs, loaded and attached; kernel/ has their source
 *   tasks      the tasks that live
 *   events     from a record to event lines; execution: programs; names: as the task gave them
 *
 * Options, reports, the build as child processes and the writer of the trace are those of native/capture.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bpf/kernel.h"
#include "bpf/trace.h"
#include "capture/capture.h"
#include "capture/options.h"
#include "capture/output.h"
#include "capture/report.h"
#include "capture/response.h"
#include "capture/rlimits.h"
#include "capture/signals.h"
#include "capture/supervise.h"
#include "capture/trace.h"

#define DEFAULT_BUFFER_KIB (32 << 10)
#define PRIORITY (-10)

const char program_name[] = "etrace";

void program_save(void)
{
	trace_flush();
	output_discard();
}

static const char *about(void)
{
	return "";
}

/* ---- the environment ---- */

static char *first_variable; /* of those that the kernel put beside the arguments */

static bool is_variable(const char *text)
{
	char **variable;

	for (variable = environ; *variable; variable++) {
		if (*variable == text)
			return true;
	}
	return false;
}

/*
 * In a program whose file has capabilities the dynamic linker removes variables such as LD_LIBRARY_PATH
 * and TMPDIR (ld.so(8)). The command, which has no capabilities, gets all that it was given.
 */
static void restore_variables(void)
{
	char *end = (char *)getauxval(AT_EXECFN); /* the kernel puts it after the variables */
	char *at;

	if (!getauxval(AT_SECURE))
		return;
	for (at = first_variable; at < end; at += strlen(at) + 1) {
		if (strchr(at, '=') && !is_variable(at))
			putenv(at);
	}
}

/* ---- the build ---- */

static void take_root(void)
{
	if (options.cgroup)
		kernel_take_cgroup();
	else if (options.pid > 0)
		kernel_take_process(options.pid);
	else
		kernel_take_next_child();
}

static void begin(pid_t root, u64 time_ns)
{
	(void)root;
	(void)time_ns;
	if (!options_follow())
		kernel_take_no_child();
	setpriority(PRIO_PROCESS, 0, PRIORITY); /* names are looked up soon after the call */
}

static void on_tick(u64 now)
{
	(void)now;
	kernel_drain(events_put);
}

static void kill_one(struct traced *task)
{
	if (task->key == task->leader)
		supervise_kill(task->pid);
}

static void kill_all(void)
{
	traced_for_each(kill_one);
}

static void put_written(struct traced *task)
{
	events_put_written(task, monotonic_ns(), false);
}

static void add_survivor(struct traced *task)
{
	if (task->key == task->leader)
		capture_add_survivor(task->pid);
}

static void drain(void)
{
	kernel_stop();
	kernel_drain(events_put);
	traced_for_each(put_written);
	if (options_follow())
		return;
	traced_for_each(add_survivor);
	capture_warn_survivors();
}

static struct supervised parts = {
	.forking = take_root,
	.prepare = restore_variables,
	.start = begin,
	.tick = on_tick,
	.kill = kill_all,
	.n_live = traced_count,
	.drain = drain,
};

/* ---- reports ---- */

static u64 lost_records;
static u64 missed_records;
static u64 lost_tasks;

static void collect_warnings(void)
{
	capture_warn_of_writing();
	report_warn_count(lost_records, "event was", "events were",
			  "lost: the kernel's buffer was full; give it more with --buffer-size");
	report_warn_count(missed_records, "event was", "events were",
			  "lost: the kernel did not run the program for it");
	report_warn_count(lost_tasks, "process was", "processes were",
			  "not traced: more run at once than the table holds");
	report_warn_count(counters.unread_strings, "string", "strings", "of traced programs could not be read");
	report_warn_unresolved(counters.unresolved_paths);
	report_warn_count(counters.orphans, "process", "processes", "have no parent in the trace: its record was lost");
	report_warn_count(counters.privileged, "program", "programs",
			  "that you may not watch (set-uid, set-gid, with capabilities, unreadable): left out, "
			  "with all that it started");
	report_warn_count(counters.io_uring_setups, "use", "uses",
			  "of io_uring: files opened through it are not in the trace");
}

static void put_stats(FILE *file)
{
	const struct report_count counts[] = {
		{ "events", counters.events },
		{ "lines", counters.lines },
		{ "bytes", counters.bytes },
		{ "lost", counters.lost + lost_records + missed_records },
		{ "processes", counters.processes },
		{ "threads", counters.threads },
		{ "executions", counters.executions },
		{ "opens", counters.opens },
		{ "unread_strings", counters.unread_strings },
		{ "unresolved_paths", counters.unresolved_paths },
		{ "orphans", counters.orphans },
		{ "privileged", counters.privileged },
		{ "io_uring_setups", counters.io_uring_setups },
		{ "untraced", lost_tasks },
		{ "response_files", counters.response_files },
		{ "missed_response_files", counters.missed_response_files },
	};

	report_put_counts(file, counts, sizeof(counts) / sizeof(counts[0]));
}

/* A process that ran before goes on: its capture just ends. */
static int final_status(void)
{
	return options_follow() ? 0 : supervise_status();
}

static void finish(void)
{
	enum ending ending = options_follow() ? ENDING_COMMAND : supervise_ending();

	lost_records = kernel_lost_records();
	missed_records = kernel_missed_records();
	lost_tasks = kernel_lost_tasks();
	environment_put();
	response_put();
	trace_close();
	collect_warnings();
	capture_write_stats(ending, final_status(), "bpf", put_stats);
	capture_print_summary(ending);
}

/* ---- the start ---- */

#define NOT_USED "BPF programs cannot be used: %s"

static int probe(void)
{
	const char *reason = kernel_start();

	if (reason)
		say(NOT_USED, reason);
	return reason ? STATUS_ETRACE_FAILED : 0;
}

/* etrace-ptrace has no buffer in the kernel. */
static void drop_buffer_size(char **argv)
{
	char **to = argv, **from = argv;

	for (; *from; from++) {
		if (from < options.command && !strcmp(*from, "--buffer-size"))
			from++;
		else
			*to++ = *from;
	}
	*to = NULL;
}

static void start_kernel(char **argv)
{
	const char *reason = kernel_start();

	if (!reason)
		return;
	if (options.substitute) {
		drop_buffer_size(argv);
		restore_variables();
		capture_hand_over("etrace-ptrace", argv, NULL);
	}
	die(NOT_USED, reason);
}

int main(int argc, char **argv)
{
	int failure;

	first_variable = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
	program_start();
	limits_raise();
	options.buffer_kib = DEFAULT_BUFFER_KIB;
	options.can_follow = true;
	if (argc == 2 && !strcmp(argv[1], "--probe"))
		return probe();
	options_parse(argc, argv, "etrace-bpf", about);
	if (options_follow() && getuid() != 0)
		die("only root may trace a process that runs, or a control group");
	signals_save();
	limits_check();
	start_kernel(argv);
	trace_open(options.trace_path);
	trace_put_first_line();
	report_start();
	parts.fd = kernel_fd();
	failure = supervise_start(&parts);
	if (failure) {
		trace_close();
		output_discard();
		return failure;
	}
	supervise_run();
	finish();
	signals_end_like(capture_final_status(final_status(), lost_records || missed_records || lost_tasks));
}
