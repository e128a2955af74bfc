// SPDX-License-Identifier: Apache-2.0
/* The command line of etrace-ptrace and of etrace-preload, which takes over with the same one. */
#include "capture/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/output.h"

struct options options = { .status_fd = -1, .usage = 1, .keeps_stderr = 1 };
struct counters counters;

enum {
	OPTION_OUTPUT = 'o',
	OPTION_STATS = 256,
	OPTION_STATUS_FD,
	OPTION_RESPONSES,
	OPTION_ROTATE,
	OPTION_OWNER,
	OPTION_FOLDER,
	OPTION_MARKS,
	OPTION_LIBRARIES,
	OPTION_BUFFER,
	OPTION_PID,
	OPTION_CGROUP,
	OPTION_HELP,
	OPTION_VERSION,
};

static const char usage[] =
	"usage: %s -o FILE [--stats FILE] [--rotate FILE]... [--owner UID:GID]\n"
	"           [--response-files FILE] [--libraries FOLDER] [--folder FD] [--marks FD]\n"
	"           [--status-fd N] [--summary] [--env] [--mounts] [--thread-names] [--no-usage] [--stdout]\n"
	"           [--no-stderr] [--eager] [--wait-all] [--substitute] [--buffer-size KIB]\n"
	"           {--pid PID | --cgroup DIRECTORY | [--] COMMAND [ARGUMENT...]}\n"
	"       %s --version\n";

static void print_usage(FILE *to, const char *program, int status)
{
	fprintf(to, usage, program, program);
	exit(status);
}

static void take_option(int option, const char *program, const char *(*about)(void))
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
		options.status_fd = program_take_fd("--status-fd", optarg);
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
	case OPTION_MARKS:
		output_set_marks(optarg);
		break;
	case OPTION_LIBRARIES:
		options.libraries = optarg;
		break;
	case OPTION_BUFFER:
		if (!options.buffer_kib)
			die("--buffer-size: %s has no buffer in the kernel", program);
		options.buffer_kib = program_take_number("--buffer-size", optarg);
		break;
	case OPTION_PID:
	case OPTION_CGROUP:
		if (!options.can_follow)
			die("%s traces only what it starts", program);
		if (option == OPTION_PID)
			options.pid = program_take_number("--pid", optarg);
		else
			options.cgroup = optarg;
		break;
	case OPTION_HELP:
		print_usage(stdout, program, 0);
		break;
	case OPTION_VERSION:
		printf("%s " ETRACE_VERSION "%s\n", program, about());
		exit(0);
	default:
		print_usage(stderr, program, STATUS_USAGE);
	}
}

void options_parse(int argc, char **argv, const char *program, const char *(*about)(void))
{
	static const struct option names[] = {
		{ "output", required_argument, NULL, OPTION_OUTPUT },
		{ "stats", required_argument, NULL, OPTION_STATS },
		{ "status-fd", required_argument, NULL, OPTION_STATUS_FD },
		{ "response-files", required_argument, NULL, OPTION_RESPONSES },
		{ "rotate", required_argument, NULL, OPTION_ROTATE },
		{ "libraries", required_argument, NULL, OPTION_LIBRARIES },
		{ "buffer-size", required_argument, NULL, OPTION_BUFFER },
		{ "pid", required_argument, NULL, OPTION_PID },
		{ "cgroup", required_argument, NULL, OPTION_CGROUP },
		{ "owner", required_argument, NULL, OPTION_OWNER },
		{ "folder", required_argument, NULL, OPTION_FOLDER },
		{ "marks", required_argument, NULL, OPTION_MARKS },
		{ "summary", no_argument, &options.summary, 1 },
		{ "substitute", no_argument, &options.substitute, 1 },
		{ "env", no_argument, &options.environment, 1 },
		{ "mounts", no_argument, &options.mounts, 1 },
		{ "thread-names", no_argument, &options.thread_names, 1 },
		{ "stdout", no_argument, &options.keeps_stdout, 1 },
		{ "no-stderr", no_argument, &options.keeps_stderr, 0 },
		{ "eager", no_argument, &options.eager, 1 },
		{ "no-usage", no_argument, &options.usage, 0 },
		{ "wait-all", no_argument, &options.wait_all, 1 },
		{ "help", no_argument, NULL, OPTION_HELP },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "+o:", names, NULL)) >= 0)
		take_option(option, program, about);
	options.command = argv + optind;
	if (!options.trace_path || !*options.command != options_follow())
		print_usage(stderr, program, STATUS_USAGE);
}
