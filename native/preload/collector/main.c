// SPDX-License-Identifier: Apache-2.0
/*
 * etrace-preload: run a command and write what it and its descendants do as event lines
 * (docs/format.md), told by a library that the dynamic linker loads into each of them. It works where
 * ptrace does not, and misses what docs/capture-preload.md lists.
 *
 *   main       options, and the course of a capture
 *   supervise  the build as child processes
 *   library    which library; ring_file: the memory that it writes to; outside: who cannot
 *   order      records in the order of time
 *   events     from a record to event lines; execution: programs; process: what is known of each
 *   unseen     programs without the library
 *   report     warnings and the stats file
 *
 * What the trace is written with is etrace-ptrace's: output, trace_file, environment,
 * summary, and response files: saved.
 */
#include "tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/environment.h"
#include "library.h"
#include "output/output.h"
#include "outside.h"
#include "report.h"
#include "response/saved.h"
#include "ring_file.h"
#include "signals.h"
#include "session/summary.h"
#include "supervise.h"
#include "output/trace_file.h"

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
	"usage: etrace-preload -o FILE [--stats FILE] [--rotate FILE]... [--owner UID:GID]\n"
	"                      [--response-files FILE] [--libraries FOLDER] [--status-fd N]\n"
	"                      [--folder FD]\n"
	"                      [--summary] [--env] [--thread-names] [--wait-all] [--]\n"
	"                      COMMAND [ARGUMENT...]\n"
	"       etrace-preload --version\n";

const char program_name[] = "etrace";

void program_save(void)
{
	trace_flush();
	output_discard();
	library_release();
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

static void tell_version(void)
{
	library_find(options.libraries);
	printf("etrace-preload " ETRACE_VERSION ", 32 bits: %s\n",
	       library_has_other_size() ? "yes" : "no");
	exit(0);
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
		tell_version();
		break;
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
		{ "owner", required_argument, NULL, OPTION_OWNER },
		{ "folder", required_argument, NULL, OPTION_FOLDER },
		{ "libraries", required_argument, NULL, OPTION_LIBRARIES },
		{ "summary", no_argument, &options.summary, 1 },
		{ "no-usage", no_argument, &options.usage, 0 },
		{ "substitute", no_argument, &options.substitute, 1 }, /* this is it */
		{ "env", no_argument, &options.environment, 1 },
		{ "mounts", no_argument, &options.mounts, 1 },
		{ "thread-names", no_argument, &options.thread_names, 1 },
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

static void put_first_line(void)
{
	char cwd[PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd)))
		die("cannot find the working directory: %s", strerror(errno));
	trace_put_initial_cwd(cwd);
}

/* A trace that is incomplete must not look like success. */
static int final_status(void)
{
	int status = supervise_status();
	bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	if ((trace_error() || ring_lost() || report_untraced()) && succeeded)
		return STATUS_ETRACE_FAILED << 8;
	return status;
}

static void finish(void)
{
	bool was_interrupted = supervise_was_interrupted();

	if (options.environment)
		environment_put();
	trace_close();
	saved_put();
	report_end(was_interrupted, supervise_status());
	if (options.summary)
		summary_tell(was_interrupted);
	library_release();
}

int main(int argc, char **argv)
{
	int failure;

	program_start();
	parse_options(argc, argv);
	signals_save();
	library_find(options.libraries);
	trace_open(options.trace_path);
	put_first_line();
	ring_create(library_name(), (options.environment ? RING_WANTS_ENVIRONMENT : 0) |
					    (options.responses_path ? RING_WANTS_RESPONSES : 0));
	outside_open(ring_variable());
	report_start();
	failure = supervise_start();
	if (failure) {
		trace_close();
		output_discard();
		library_release();
		return failure;
	}
	supervise_run();
	finish();
	signals_end_like(final_status());
}
