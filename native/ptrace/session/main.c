// SPDX-License-Identifier: Apache-2.0
/*
 * etrace-ptrace: run a command and write what it and its descendants do as event lines
 * (docs/format.md), without privileges and without a kernel module.
 *
 * How it works. A seccomp filter, installed in the command and inherited by all it starts, lets the
 * system calls that matter stop for a tracer and no others; the tracer is attached with
 * PTRACE_SEIZE. The parts:
 *
 *   main      options, and the course of a capture
 *   front     the process that the user started; the tracer is its child
 *   command   start of the command, attached and filtered before its first instruction
 *   filter    which calls of which table of numbers stop, and their class
 *   loop      the stops: the meaning of each, and how the task continues
 *   task      the traced tasks; fd_table: descriptors known to be open
 *   syscall   from a class to its functions in open, descriptor, name, mount, process
 *   exec      a program was loaded; environment: the variables it was given
 *   memory    strings of a task; path: links of /proc; resolve: names as the task sees them
 *   core      how a task continues, and where
 *   lookup    what may wait for a file system, which the loop never does
 *   response  what response files of compilers held; request: reads one, saved: writes
 *   trace_file, report    the two outputs; output: their names and rights; summary: on stderr
 *   denied    ptrace refused, to this tracer or to programs of the build
 *
 * Costs, and what saves them. A stop is two context switches, 3 to 6 microseconds, and is two
 * thirds of all costs. So: the class comes with the stop, in the filter's return data; the path of
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
#include "tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "event/environment.h"
#include "output/output.h"
#include "output/trace_file.h"
#include "response/response.h"
#include "session/command.h"
#include "session/front.h"
#include "session/loop.h"
#include "session/report.h"
#include "session/summary.h"
#include "signals.h"

struct options options = { .status_fd = -1, .usage = 1 };
struct counters counters;

enum {
	OPTION_OUTPUT = 'o',
	OPTION_STATS = 256,
	OPTION_STATUS_FD,
	OPTION_RESPONSES,
	OPTION_ROTATE,
	OPTION_OWNER,
	OPTION_FOLDER,
	OPTION_LIBRARIES,
	OPTION_HELP,
	OPTION_VERSION,
};

static const char usage[] =
	"usage: etrace-ptrace -o FILE [--stats FILE] [--rotate FILE]... [--owner UID:GID]\n"
	"                     [--response-files FILE] [--libraries FOLDER] [--folder FD]\n"
	"                     [--status-fd N] [--summary] [--env] [--mounts]\n"
	"                     [--thread-names] [--no-usage] [--wait-all]\n"
	"                     [--substitute] [--] COMMAND [ARGUMENT...]\n"
	"       etrace-ptrace --version\n";

const char program_name[] = "etrace";

void program_save(void)
{
	trace_flush(); /* keep the captured part readable */
	output_discard();
}

static int parse_fd(const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (*text == '\0' || *end || fd < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0)
		die("--status-fd %s: not an open descriptor", text);
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		die("--status-fd %s: %s", text, strerror(errno));
	return (int)fd;
}

static void fail_usage(void)
{
	fputs(usage, stderr);
	exit(STATUS_USAGE);
}

static void take_option(int option)
{
	switch (option) {
	case 0: /* a flag, set already */
		break;
	case OPTION_OUTPUT:
		options.trace_path = optarg;
		break;
	case OPTION_STATS:
		options.stats_path = optarg;
		break;
	case OPTION_STATUS_FD:
		options.status_fd = parse_fd(optarg);
		break;
	case OPTION_RESPONSES:
		options.responses_path = optarg;
		break;
	case OPTION_ROTATE:
		output_add_rotated(optarg);
		break;
	case OPTION_OWNER:
		output_set_owner(optarg);
		break;
	case OPTION_FOLDER:
		output_set_folder(optarg);
		break;
	case OPTION_LIBRARIES:
		options.libraries = optarg;
		break;
	case OPTION_HELP:
		fputs(usage, stdout);
		exit(0);
	case OPTION_VERSION:
		puts("etrace-ptrace " ETRACE_VERSION);
		exit(0);
	default:
		fail_usage();
	}
}

static void parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "output", required_argument, NULL, OPTION_OUTPUT },
		{ "stats", required_argument, NULL, OPTION_STATS },
		{ "status-fd", required_argument, NULL, OPTION_STATUS_FD },
		{ "response-files", required_argument, NULL, OPTION_RESPONSES },
		{ "rotate", required_argument, NULL, OPTION_ROTATE },
		{ "libraries", required_argument, NULL, OPTION_LIBRARIES },
		{ "owner", required_argument, NULL, OPTION_OWNER },
		{ "folder", required_argument, NULL, OPTION_FOLDER },
		{ "summary", no_argument, &options.summary, 1 },
		{ "substitute", no_argument, &options.substitute, 1 },
		{ "env", no_argument, &options.environment, 1 },
		{ "mounts", no_argument, &options.mounts, 1 },
		{ "thread-names", no_argument, &options.thread_names, 1 },
		{ "no-usage", no_argument, &options.usage, 0 },
		{ "wait-all", no_argument, &options.wait_all, 1 },
		{ "help", no_argument, NULL, OPTION_HELP },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "+o:", names, NULL)) >= 0)
		take_option(option);
	options.command = argv + optind;
	if (!options.trace_path || !*options.command)
		fail_usage();
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

static void put_first_line(void)
{
	char cwd[PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd)))
		die("cannot find the working directory: %s", strerror(errno));
	trace_put_initial_cwd(cwd);
}

static bool is_interruption(int wait_status)
{
	int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;

	return loop_was_killed() || (front_was_interrupted() && wait_status) ||
	       signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP;
}

/* A trace that is incomplete must not look like success. */
static int final_status(int wait_status)
{
	bool succeeded = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;

	if ((trace_error() || counters.untraced) && succeeded)
		return STATUS_ETRACE_FAILED << 8;
	return wait_status;
}

static void finish(enum loop_end end)
{
	int status = loop_root_status();
	enum ending ending = ENDING_COMMAND;

	if (end == LOOP_FRONT_GONE)
		ending = ENDING_TRACER;
	else if (is_interruption(status))
		ending = ENDING_INTERRUPTED;
	if (options.environment)
		environment_put();
	response_put();
	trace_close();
	if (end == LOOP_SURVIVORS)
		report_survivors();
	report_end(ending, status);
	if (options.summary)
		summary_tell(ending == ENDING_INTERRUPTED);
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

int main(int argc, char **argv)
{
	enum loop_end end;
	int failure;
	pid_t root;

	program_start();
	parse_options(argc, argv);
	front_set_arguments(argv);
	check_proc();
	signals_save();
	trace_open(options.trace_path);
	put_first_line();
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
	front_finish(failure ? failure << 8 : final_status(loop_root_status()),
		     end == LOOP_SURVIVORS);
	if (end == LOOP_SURVIVORS) {
		stay_in_background();
		loop_run(root);
	}
	return 0;
}
