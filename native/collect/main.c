// SPDX-License-Identifier: Apache-2.0
/*
 * etrace_cat, the collector of the kernel module: binary records from the per-CPU buffers of a
 * private ftrace instance become the event lines of docs/format.md. Text is made here and not by
 * the kernel: one read for a page of records instead of one for each record.
 *
 *   main      options, and the course of a collection
 *   instance  tracefs: the directory, per-CPU files, the kernel's counters; layout: its `format`s
 *   reader    per-CPU buffers, in rounds; page: entries of a page; pool: memory of pages
 *   merge     records of all CPUs into whole events, by time
 *   emit      events into lines, counted; output: the file; compress: zstd
 *   resume    the end of a trace that another collector began
 *   copy      the plain cat of a trace_pipe or a file
 *   report    progress, messages, stats; signals: the request to end; priority: over other tasks
 *   rights    given up when everything is open
 *
 * Order. A round reads, from every CPU, all that was written before the round began. An event goes
 * out when a round that began HOLD_NS after the event's time has ended: whatever is earlier was
 * read by then, also from a CPU that writes nothing at all. docs/capture-kmod.md has the figures.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "compress.h"
#include "copy.h"
#include "merge.h"
#include "output.h"
#include "priority.h"
#include "reader.h"
#include "report.h"
#include "rights.h"
#include "signals.h"

#include "etrace/control.h"

#define MS 1000000u
#define HOLD_NS (500u * MS) /* from an event's time to its place in the output */
#define PATIENCE_NS (2000u * MS) /* for the rest of an event of several records */
#define INTERVAL_MIN_NS (1u * MS)
#define INTERVAL_MAX_NS (100u * MS)
#define WANTED_PERCENT 10 /* of the fullest buffer, between two rounds */
#define CHECK_NS (1000u * MS)
#define MEMORY_MIB_DEFAULT 256

struct options options = {
	.instance = ETRACE_INSTANCE_DEFAULT,
	.output_fd = STDOUT_FILENO,
	.stats_fd = -1,
	.status_fd = -1,
	.ready_fd = -1,
	.keep_fd = -1,
	.memory = (u64)MEMORY_MIB_DEFAULT << 20,
};

const char program_name[] = "etrace_cat";

/* What is buffered may lack what a caller of die() had begun: it stays out. */
void program_save(void)
{
}

enum {
	OPTION_OUTPUT = 'o',
	OPTION_VERBOSE = 'v',
	OPTION_TRACEFS = 256,
	OPTION_INSTANCE,
	OPTION_RAW,
	OPTION_OUTPUT_FD,
	OPTION_CWD,
	OPTION_STATS,
	OPTION_STATS_FD,
	OPTION_STATUS_FD,
	OPTION_READY_FD,
	OPTION_KEEP_FD,
	OPTION_MEMORY,
	OPTION_HELP,
	OPTION_VERSION,
};

static const char usage[] =
	"usage: etrace_cat [--tracefs DIR] [--instance NAME] [-o FILE | --output-fd N] [--zstd]\n"
	"                  [--continue] [--cwd DIR] [--stats FILE | --stats-fd N] [--status-fd N]\n"
	"                  [--ready-fd N] [--keep-fd N] [--memory MIB] [-v]\n"
	"       etrace_cat [OPTION...] --raw DIR\n"
	"       etrace_cat [OPTION...] FILE\n";

static const char help[] =
	"\n"
	"Print the records of the etrace kernel module as event lines, in the order of time, until\n"
	"SIGINT or SIGTERM. Records from before the signal are still printed. With FILE copy the\n"
	"lines of a trace_pipe or file.\n"
	"\n"
	"  --tracefs DIR     where tracefs is mounted (default: found automatically)\n"
	"  --instance NAME   name of the ftrace instance (default: etrace)\n"
	"  --raw DIR         print a saved instance instead (docs/capture-kmod.md)\n"
	"  -o, --output FILE write there; it must not exist (default: standard output)\n"
	"  --output-fd N     write to an open descriptor\n"
	"  --zstd            compress, in frames of a megabyte or a second\n"
	"  --continue        append to the trace of a killed collector; cut its incomplete end\n"
	"  --cwd DIR         begin with the line INITCWD=DIR\n"
	"  --stats FILE      write counters as JSON at the end\n"
	"  --stats-fd N      the same, to an open descriptor\n"
	"  --status-fd N     write a line of JSON twice a second; in a file it replaces the line before\n"
	"  --ready-fd N      write a newline when all buffers are open, and close\n"
	"  --keep-fd N       keep open until the end\n"
	"  --memory MIB      limit for records that wait to be sorted (default: 256)\n"
	"  -v, --verbose     report rights and priorities that were not granted\n"
	"\n"
	"Exit status: 0; 2 when anything was lost, or for wrong usage; 125 on failure.\n";

static void fail_usage(void) __attribute__((noreturn));

static void fail_usage(void)
{
	fputs(usage, stderr);
	exit(STATUS_USAGE);
}

/* Nobody else gets the descriptor. */
static int parse_fd(const char *option, const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (*text == '\0' || *end || fd < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0)
		die("%s %s: not an open descriptor", option, text);
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		die("%s %s: %s", option, text, strerror(errno));
	return (int)fd;
}

static u64 parse_memory(const char *text)
{
	char *end;
	unsigned long mib = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || mib == 0 || mib > 1u << 20)
		die("--memory %s: give a number of MiB, such as %d", text, MEMORY_MIB_DEFAULT);
	return (u64)mib << 20;
}

static const char *parse_instance(const char *text)
{
	if (!*text || strchr(text, '/') || !strcmp(text, ".") || !strcmp(text, ".."))
		die("--instance '%s': give the name of a directory in instances/", text);
	return text;
}

static void print_version(void)
{
	printf("etrace_cat %s, zstd: %s\n", ETRACE_VERSION, COMPRESS_AVAILABLE ? "yes" : "no");
	exit(0);
}

/* The options that are a descriptor; false for others. */
static bool take_fd(int option)
{
	static const struct {
		int option;
		const char *name;
		int *fd;
	} fds[] = {
		{ OPTION_OUTPUT_FD, "--output-fd", &options.output_fd },
		{ OPTION_STATS_FD, "--stats-fd", &options.stats_fd },
		{ OPTION_STATUS_FD, "--status-fd", &options.status_fd },
		{ OPTION_READY_FD, "--ready-fd", &options.ready_fd },
		{ OPTION_KEEP_FD, "--keep-fd", &options.keep_fd },
	};
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i].option == option) {
			*fds[i].fd = parse_fd(fds[i].name, optarg);
			return true;
		}
	}
	return false;
}

/* The options that are kept as they are; false for others. */
static bool take_text(int option)
{
	switch (option) {
	case OPTION_TRACEFS:
		options.tracefs = optarg;
		return true;
	case OPTION_RAW:
		options.raw = optarg;
		return true;
	case OPTION_OUTPUT:
		options.output = optarg;
		return true;
	case OPTION_CWD:
		options.cwd = optarg;
		return true;
	case OPTION_STATS:
		options.stats = optarg;
		return true;
	default:
		return false;
	}
}

static void take_option(int option)
{
	if (option == 0 || take_fd(option) || take_text(option))
		return; /* 0: a flag, set already */
	switch (option) {
	case OPTION_INSTANCE:
		options.instance = parse_instance(optarg);
		break;
	case OPTION_MEMORY:
		options.memory = parse_memory(optarg);
		break;
	case OPTION_VERBOSE:
		options.verbose = 1;
		break;
	case OPTION_VERSION:
		print_version();
		break;
	case OPTION_HELP:
		printf("%s%s", usage, help);
		exit(0);
	default:
		fail_usage();
	}
}

static void parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "tracefs", required_argument, NULL, OPTION_TRACEFS },
		{ "instance", required_argument, NULL, OPTION_INSTANCE },
		{ "raw", required_argument, NULL, OPTION_RAW },
		{ "output", required_argument, NULL, OPTION_OUTPUT },
		{ "output-fd", required_argument, NULL, OPTION_OUTPUT_FD },
		{ "zstd", no_argument, &options.zstd, 1 },
		{ "continue", no_argument, &options.resume, 1 },
		{ "cwd", required_argument, NULL, OPTION_CWD },
		{ "stats", required_argument, NULL, OPTION_STATS },
		{ "stats-fd", required_argument, NULL, OPTION_STATS_FD },
		{ "status-fd", required_argument, NULL, OPTION_STATUS_FD },
		{ "ready-fd", required_argument, NULL, OPTION_READY_FD },
		{ "keep-fd", required_argument, NULL, OPTION_KEEP_FD },
		{ "memory", required_argument, NULL, OPTION_MEMORY },
		{ "verbose", no_argument, NULL, OPTION_VERBOSE },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ "help", no_argument, NULL, OPTION_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "o:v", names, NULL)) >= 0)
		take_option(option);
	if (argc - optind > 1 || (optind < argc && options.raw))
		fail_usage();
	options.source = argv[optind];
}

static void tell_ready(void)
{
	if (options.ready_fd < 0)
		return;
	if (write(options.ready_fd, "\n", 1) != 1)
		die("--ready-fd %d: %s", options.ready_fd, strerror(errno));
	close(options.ready_fd);
}

/* Until the fullest buffer has WANTED_PERCENT again; it grows slowly, shrinks at once. */
static u64 next_interval(u64 interval_ns, unsigned int percent)
{
	u64 next = interval_ns * WANTED_PERCENT / (percent ? percent : 1);

	if (next > 2 * interval_ns)
		next = 2 * interval_ns;
	if (next < INTERVAL_MIN_NS)
		return INTERVAL_MIN_NS;
	return next > INTERVAL_MAX_NS ? INTERVAL_MAX_NS : next;
}

static struct horizon horizon_at(u64 now_ns)
{
	return (struct horizon){
		.before_ns = now_ns > HOLD_NS ? now_ns - HOLD_NS : 0,
		.patience_ns = now_ns > PATIENCE_NS ? now_ns - PATIENCE_NS : 0,
	};
}

static const struct horizon everything = { .before_ns = TIME_MAX, .patience_ns = TIME_MAX };

/*
 * The last rounds read what was written before the first of them, which begins after the signal:
 * that is all that was written before it.
 */
static void collect(void)
{
	u64 interval_ns = INTERVAL_MIN_NS, checked_ns = 0, now_ns = 0;
	bool stopping = false, last;

	do {
		u64 read_ns;

		if (!stopping) {
			stopping = stop_requested;
			now_ns = monotonic_ns();
		}
		read_ns = now_ns;
		interval_ns = next_interval(interval_ns, reader_round(&read_ns));
		last = stopping && !reader_behind();
		merge_emit(last ? everything : horizon_at(read_ns));
		output_flush(last);
		if (last || now_ns - checked_ns >= CHECK_NS) {
			reader_check_losses();
			checked_ns = now_ns;
		}
		report_status(false);
		if (!stopping && read_ns == now_ns)
			reader_wait(interval_ns);
	} while (!last && output_error() != EPIPE);
}

static void replay(void)
{
	u64 now_ns;

	while (!stop_requested && reader_replay(&now_ns) && output_error() != EPIPE)
		merge_emit(horizon_at(now_ns));
	counters.interrupted = stop_requested;
	if (!counters.interrupted)
		merge_emit(everything);
}

/* FILE may be a directory as well: a saved instance. */
static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void run(void)
{
	output_open();
	if (options.cwd)
		output_put_initial_cwd(options.cwd);
	if (!options.source && !options.raw)
		rights_drop(output_fd());
	tell_ready();
	report_start();
	if (options.source)
		copy_run(options.source);
	else if (options.raw)
		replay();
	else
		collect();
	if (counters.interrupted)
		say("interrupted: the rest is not in the output");
	else
		counters.incomplete += merge_give_up();
}

int main(int argc, char **argv)
{
	program_start();
	parse_options(argc, argv);
	if (options.source && is_dir(options.source)) {
		options.raw = options.source;
		options.source = NULL;
	}
	signals_init();
	if (!options.source && !options.raw)
		priority_raise();
	if (!options.source)
		reader_open();
	run();
	output_close();
	report_end();
	return report_lossy() ? STATUS_LOSS : 0;
}
