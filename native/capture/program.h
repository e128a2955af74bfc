/* SPDX-License-Identifier: Apache-2.0 */
/* What every program of captures has: messages, memory that does not fail, the clock. */
#ifndef ETRACE_CAPTURE_PROGRAM_H
#define ETRACE_CAPTURE_PROGRAM_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define STATUS_USAGE 2
#define STATUS_ETRACE_FAILED 125

/* Of each program: the name before its messages, and what it saves before die() ends it. */
extern const char program_name[];
void program_save(void);

/*
 * First of all: open /dev/null where 0, 1 or 2 is closed, or messages would go into the first files
 * that the program opens. An execve() closes them again.
 */
void program_start(void);

uint64_t monotonic_ns(void);

/* That many nanoseconds from now, as a condition variable of CLOCK_MONOTONIC takes it. */
struct timespec monotonic_after(uint64_t ns);

/* The path of a file in the folder of this program; "" when it has no such path. */
void program_sibling(char path[PATH_MAX], const char *name);

/* An open descriptor that an option gives, for this process alone. Ends the program without one. */
int program_take_fd(const char *option, const char *text);

/* A positive number given as an option; ends the program if it is not one. */
int program_take_number(const char *option, const char *text);

/* Message on stderr, with the name and `: ` before it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* say(), program_save() and exit with STATUS_ETRACE_FAILED. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* malloc and realloc; without memory the program ends with a message. */
void *must_alloc(size_t size);
void *must_realloc(void *old, size_t size);

#endif /* ETRACE_CAPTURE_PROGRAM_H */
