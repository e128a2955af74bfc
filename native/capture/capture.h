/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that run a build do alike in the course of a capture. */
#ifndef ETRACE_CAPTURE_CAPTURE_H
#define ETRACE_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Append to a variable of the command, whose parts are separated by colons, unless it has `option`
 * (or NULL) already. Return whether it was appended.
 */
bool capture_add_variable(const char *variable, const char *value, const char *option);

/* The command runs: the files get their names. */
void capture_publish(void);

/* One line about the progress to --status-fd, when it is due. */
void capture_report_status(size_t n_live);

/* A process outlives the command; then one warning for all of them. */
void capture_add_survivor(pid_t pid);
void capture_warn_survivors(void);

/* Warn when a write error ended the trace. */
void capture_warn_of_writing(void);

enum ending {
	ENDING_COMMAND, /* with the command: by its exit or by a signal */
	ENDING_INTERRUPTED, /* a signal ended the build */
	ENDING_TRACER, /* the tracer was ended */
};

/* `was_asked`, `was_killed`: signals asked for the end of the build, or made it end. */
enum ending capture_ending(int wait_status, bool was_asked, bool was_killed);

/* The wait status to end with: an incomplete trace must not look like success. */
int capture_final_status(int wait_status, bool is_incomplete);

/* Write the stats with the members that `put` puts. */
void capture_write_stats(enum ending ending, int wait_status, const char *backend,
			 void (*put)(FILE *file));

/*
 * The program of that name beside this one takes over, with the same options; says `notice`, if there
 * is one, before. Returns if there is no such program.
 */
void capture_hand_over(const char *name, char **arguments, const char *notice);

/* Print the summary that was asked for and the next step, if any program ran. */
void capture_print_summary(enum ending ending);

#endif /* ETRACE_CAPTURE_CAPTURE_H */
