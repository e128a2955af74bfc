// SPDX-License-Identifier: Apache-2.0
/*
 * What the programs that run a build do alike: start the command, and report at the end. The
 * summary has the form that etrace/cli/etrace/run.py gives it for the other backends: here, the
 * command that started this program has become it.
 */
#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/output.h"
#include "capture/proc.h"
#include "capture/report.h"
#include "capture/rlimits.h"
#include "capture/signals.h"
#include "capture/trace.h"

/* ---- the command ---- */

void capture_hand_over(const char *name, char **arguments, const char *notice)
{
	char path[PATH_MAX];

	program_sibling(path, name);
	if (access(path, X_OK) < 0)
		return;
	if (notice)
		say("%s", notice);
	signals_restore();
	limits_hand_on();
	output_keep_folders();
	if (options.status_fd >= 0)
		fcntl(options.status_fd, F_SETFD, 0);
	execv(path, arguments);
	say("cannot run '%s': %s", path, strerror(errno));
}

bool capture_add_variable(const char *variable, const char *value, const char *option)
{
	const char *old = getenv(variable);
	char *joined;

	if (option && old && strstr(old, option))
		return false;
	if (asprintf(&joined, "%s%s%s", old ? old : "", old && *old ? ":" : "", value) < 0 ||
	    setenv(variable, joined, 1) < 0)
		die("out of memory");
	free(joined);
	return true;
}

void capture_publish(void)
{
	const char *slash = strrchr(options.trace_path, '/');

	if (output_publish() && options.summary)
		say("the older trace is now %s.old", slash ? slash + 1 : options.trace_path);
}

/* ---- reports ---- */

void capture_report_status(size_t n_live)
{
	char text[256];
	int len;

	if (options.status_fd < 0 || !report_is_due())
		return;
	len = snprintf(text, sizeof(text),
		       "{\"processes\":%llu,\"live\":%zu,\"executions\":%llu,\"opens\":%llu,"
		       "\"bytes\":%llu}\n",
		       (unsigned long long)counters.processes, n_live,
		       (unsigned long long)counters.executions, (unsigned long long)counters.opens,
		       (unsigned long long)counters.bytes);
	if (!report_put_line(options.status_fd, text, (size_t)len))
		options.status_fd = -1; /* nobody reads it */
}

static struct {
	char text[200];
	size_t len;
	size_t n;
} survivors;

void capture_add_survivor(pid_t pid)
{
	size_t room = sizeof(survivors.text) - survivors.len;
	char comm[PROC_COMM_MAX];
	size_t len;

	survivors.n++;
	proc_read_comm(pid, comm);
	if (!*comm)
		return;
	len = (size_t)snprintf(survivors.text + survivors.len, room, "%s'%s' (%d)",
			       survivors.len ? ", " : "", comm, pid);
	if (len < room)
		survivors.len += len;
	else
		survivors.text[survivors.len] = '\0';
}

void capture_warn_survivors(void)
{
	if (survivors.n)
		report_warn("%zu %s unrecorded: %s; --wait-all waits for them", survivors.n,
			    survivors.n == 1 ? "process outlives the command and continues"
					     : "processes outlive the command and continue",
			    survivors.text);
}

void capture_warn_of_writing(void)
{
	if (trace_error())
		report_warn("the trace is incomplete: %llu %s lost because writing failed: %s",
			    (unsigned long long)counters.lost,
			    counters.lost == 1 ? "event" : "events", strerror(trace_error()));
}

enum ending capture_ending(int wait_status, bool was_asked, bool was_killed)
{
	int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;

	if (was_killed || (was_asked && wait_status) || signal == SIGINT || signal == SIGQUIT ||
	    signal == SIGTERM || signal == SIGHUP)
		return ENDING_INTERRUPTED;
	return ENDING_COMMAND;
}

int capture_final_status(int wait_status, bool is_incomplete)
{
	bool succeeded = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;

	if ((trace_error() || is_incomplete) && succeeded)
		return STATUS_ETRACE_FAILED << 8;
	return wait_status;
}

static struct {
	enum ending ending;
	int wait_status;
	const char *backend;
	void (*put)(FILE *file);
} stats;

static const char *ending_name(void)
{
	if (trace_error())
		return "write-error";
	if (stats.ending == ENDING_TRACER)
		return "tracer-ended";
	if (stats.ending == ENDING_INTERRUPTED)
		return "interrupted";
	return WIFSIGNALED(stats.wait_status) ? "signal" : "exit";
}

static void put_members(FILE *file)
{
	int status = stats.wait_status;
	bool signaled = WIFSIGNALED(status);
	const struct report_count counts[] = {
		{ "exit_status", signaled ? 0 : (u64)WEXITSTATUS(status) },
		{ "signal", signaled ? (u64)WTERMSIG(status) : 0 },
		{ "duration_ns", report_duration_ns() },
	};

	stats.put(file);
	report_put_text(file, "ended", ending_name());
	report_put_counts(file, counts, sizeof(counts) / sizeof(counts[0]));
}

static void put_stats(FILE *file)
{
	report_put_stats(file, stats.backend, put_members);
}

void capture_write_stats(enum ending ending, int wait_status, const char *backend,
			 void (*put)(FILE *file))
{
	stats.ending = ending;
	stats.wait_status = wait_status;
	stats.backend = backend;
	stats.put = put;
	if (output_is_published())
		output_mark(options.trace_path);
	if (options.stats_path && output_is_published())
		output_write_whole(options.stats_path, "stats", put_stats);
}

/* ---- the summary ---- */

#define COUNT_MAX 64
#define NS_PER_SECOND 1e9
#define UNIT 1000

/* `1,234 opens` */
static const char *count(char *text, u64 n, const char *one, const char *many)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	char *at = text;
	size_t i;

	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	snprintf(at, (size_t)(text + COUNT_MAX - at), " %s", n == 1 ? one : many);
	return text;
}

/* `12 B`, `1.5 MB` */
static const char *size(char *text, u64 n_bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double value = (double)n_bytes;
	size_t unit = 0;

	for (; value >= UNIT && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
		value /= UNIT;
	snprintf(text, COUNT_MAX, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

void capture_print_summary(enum ending ending)
{
	char processes[COUNT_MAX], commands[COUNT_MAX], opens[COUNT_MAX], bytes[COUNT_MAX];
	const char *trace = options.trace_path, *slash;
	const char *view = stats.wait_status ? "summary" : "report"; /* why it failed */

	if (!options.summary || !counters.executions)
		return;
	if (ending == ENDING_INTERRUPTED)
		say("the build was interrupted; the trace ends there");
	say("%s, %s and %s in %.1f s -> %s (%s)%s",
	    count(processes, counters.processes, "process", "processes"),
	    count(commands, counters.executions, "command", "commands"),
	    count(opens, counters.opens, "open", "opens"),
	    (double)report_duration_ns() / NS_PER_SECOND, trace, size(bytes, counters.bytes),
	    counters.untraced ? ", incomplete" : "");
	slash = strrchr(trace, '/');
	if (slash)
		say("next: etrace %s %.*s", view, (int)(slash - trace), trace);
	else
		say("next: etrace %s", view);
}
