/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of the collector share: options, counters, and the functions of the small parts. One process with one thread,
 * so each part keeps its state in static variables; what several parts need is here.
 */
#ifndef ETRACE_COLLECT_H
#define ETRACE_COLLECT_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "etrace_record.h"

#include "capture/program.h"

#define STATUS_LOSS 2

struct options {
	const char *tracefs; /* NULL: where it is mounted */
	const char *instance; /* below its `instances` */
	const char *raw; /* a saved instance instead of a live one */
	const char *source; /* a text file or pipe to copy instead */
	const char *output; /* NULL: output_fd */
	int output_fd;
	const char *cwd; /* of the first line; NULL: no such line */
	const char *stats;
	int stats_fd; /* these four: -1 when not asked for */
	int status_fd;
	int ready_fd;
	int keep_fd;
	int zstd; /* these two are set by getopt_long() */
	int resume; /* the output is a trace that was begun */
	int verbose;
	u64 memory; /* bytes of records held back at most */
};

/* Everything that the stats and the closing messages report. */
struct counters {
	u64 events;
	u64 lines;
	u64 bytes; /* of text */
	u64 written; /* bytes of the file: fewer than `bytes` when compressed */
	u64 lost; /* sum of the four below that say so, and of what was overwritten */
	u64 unwritten; /* lost: events for which the output had no room */
	u64 malformed; /* lost: events whose record makes no sense */
	u64 no_room; /* lost: events of several records, given up because memory ran out */
	u64 damaged; /* lost: pages of which a part could not be read */
	u64 overwritten; /* lost: records that the ring buffer wrote over */
	u64 dropped; /* records that the ring buffer had no room for; the module counts them as well */
	u64 incomplete; /* events of several records of which some never came: left out */
	u64 unordered; /* events that are later in the output than their time says */
	u64 records; /* read from the ring buffer */
	u64 written_records; /* of the events that are in the output */
	u64 foreign; /* records of other trace events in the same instance */
	u64 failed_reads; /* of a page, tried again */
	u64 pages;
	u64 rounds;
	u64 processes;
	u64 threads;
	u64 executions;
	u64 opens;
	u64 exits;
	bool interrupted; /* a signal ended it before the end of a file or saved instance */
};

extern struct options options;
extern struct counters counters;

/* ---- stop.c: the request to end, and waits that it interrupts ---- */

#define WAIT_FOREVER UINT64_MAX

/*
 * The first SIGINT or SIGTERM is the request to end after what was written before. A later one
 * ends the program at once, wherever it is.
 */
void stop_init(void);

extern volatile sig_atomic_t stop_requested;

/*
 * Sleep until a descriptor is ready, the time has passed or the request comes, also when it came
 * since the caller saw `seen` in stop_requested: as poll().
 */
int stop_wait(struct pollfd *fds, nfds_t n, u64 timeout_ns, bool seen);

/* ---- report.c ---- */

/* One line about the progress to --status-fd, twice a second at most; `now`: in any case. */
void report_progress(bool now);

/* The collector ended: print losses on stderr, write the stats. */
void report_end(void);

/* Anything that happened and is not in the output was lost. */
bool report_lossy(void);

/* ---- rights.c ---- */

/* Everything is open: give up what only opening it needed. The trace is `output`. */
void rights_drop(int output);

/* Get to run, write and live in preference to what is traced, as far as that is permitted. */
void priority_raise(void);

/* ---- copy.c ---- */

/* Copy the lines of a file, pipe or trace_pipe to the output until its end or a signal. */
void copy_run(const char *path);

#endif /* ETRACE_COLLECT_H */
