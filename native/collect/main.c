// SPDX-License-Identifier: Apache-2.0
/*
 * etrace_cat, the collector of the kernel module: binary records from the per-CPU buffers of a
 * private ftrace instance become the event lines of docs/format.md. Text is made here and not by
 * the kernel: one read for a page of records instead of one for each record.
 *
 *   main      options, and the course of a collection
 *   instance  tracefs: the directory, per-CPU files, the kernel's counters
 *   reader    per-CPU buffers, in rounds; page: their layout, entries, and memory
 *   merge     records of all CPUs into whole events, by time
 *   emit      events into lines, counted; writer: the file; compress: zstd, --continue
 *   copy      the plain cat of a trace_pipe or a file
 *   report    progress, messages, stats; stop: the request to end
 *   rights    priority over other tasks, and rights given up when everything is open
 *
 * Order. A round reads, from every CPU, all that was written before the round began. An event goes
 * out when a round that began HOLD_NS after the event's time has ended: whatever is earlier was
 * read by then, also from a CPU that writes nothing at all. docs/capture-kmod.md has the figures.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/report.h"
#include "collect.h"
#include "compress.h"
#include "merge.h"
#include "reader.h"
#include "writer.h"

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
	OPTION_VALUE = 256, /* any whose value is kept */
	OPTION_INSTANCE,
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

/* The options with a value. */
static void take_value(const char *name)
{
	static const struct {
		const char *name;
		const char **text;
		int *fd;
	} values[] = {
		{ "tracefs", &options.tracefs, NULL },
		{ "raw", &options.raw, NULL },
		{ "cwd", &options.cwd, NULL },
		{ "stats", &options.stats, NULL },
		{ "output-fd", NULL, &options.output_fd },
		{ "stats-fd", NULL, &options.stats_fd },
		{ "status-fd", NULL, &options.status_fd },
		{ "ready-fd", NULL, &options.ready_fd },
		{ "keep-fd", NULL, &options.keep_fd },
	};
	char option[32];
	size_t i = 0;

	while (strcmp(values[i].name, name))
		i++;
	snprintf(option, sizeof(option), "--%s", name);
	if (values[i].text)
		*values[i].text = optarg;
	else
		*values[i].fd = program_take_fd(option, optarg);
}

static void take_option(int option, const char *name)
{
	switch (option) {
	case 0: /* a flag, set already */
		break;
	case OPTION_VALUE:
		take_value(name);
		break;
	case OPTION_OUTPUT:
		options.output = optarg;
		break;
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
		printf("etrace_cat %s, zstd: %s\n", ETRACE_VERSION,
		       COMPRESS_AVAILABLE ? "yes" : "no");
		exit(0);
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
		{ "tracefs", required_argument, NULL, OPTION_VALUE },
		{ "instance", required_argument, NULL, OPTION_INSTANCE },
		{ "raw", required_argument, NULL, OPTION_VALUE },
		{ "output", required_argument, NULL, OPTION_OUTPUT },
		{ "output-fd", required_argument, NULL, OPTION_VALUE },
		{ "zstd", no_argument, &options.zstd, 1 },
		{ "continue", no_argument, &options.resume, 1 },
		{ "cwd", required_argument, NULL, OPTION_VALUE },
		{ "stats", required_argument, NULL, OPTION_VALUE },
		{ "stats-fd", required_argument, NULL, OPTION_VALUE },
		{ "status-fd", required_argument, NULL, OPTION_VALUE },
		{ "ready-fd", required_argument, NULL, OPTION_VALUE },
		{ "keep-fd", required_argument, NULL, OPTION_VALUE },
		{ "memory", required_argument, NULL, OPTION_MEMORY },
		{ "verbose", no_argument, NULL, OPTION_VERBOSE },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ "help", no_argument, NULL, OPTION_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int option;
	int index = 0;

	while ((option = getopt_long(argc, argv, "o:v", names, &index)) >= 0)
		take_option(option, names[index].name);
	if (argc - optind > 1 || (optind < argc && options.raw))
		fail_usage();
	options.source = argv[optind];
}

static void report_ready(void)
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
		last = stopping && !reader_has_more();
		merge_emit(last ? everything : horizon_at(read_ns));
		writer_flush(last);
		if (last || now_ns - checked_ns >= CHECK_NS) {
			reader_check_losses();
			checked_ns = now_ns;
		}
		report_progress(false);
		if (!stopping && read_ns == now_ns)
			reader_wait(interval_ns);
	} while (!last && writer_error() != EPIPE);
}

static void replay(void)
{
	u64 now_ns;

	while (!stop_requested && reader_replay(&now_ns) && writer_error() != EPIPE)
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
	writer_open();
	if (options.cwd)
		writer_put_initial_cwd(options.cwd);
	if (!options.source && !options.raw)
		rights_drop(writer_fd());
	report_ready();
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
	stop_init();
	if (!options.source && !options.raw)
		priority_raise();
	if (!options.source)
		reader_open();
	run();
	writer_close();
	report_end();
	return report_lossy() ? STATUS_LOSS : 0;
}
