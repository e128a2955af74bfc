/* SPDX-License-Identifier: Apache-2.0 */
/* What etrace-ptrace and etrace_cat share: their messages, memory that does not fail, the clock. */
#ifndef ETRACE_COMMON_H
#define ETRACE_COMMON_H

#include <stddef.h>
#include <stdint.h>

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

/* Message on stderr, with the name and `: ` before it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* say(), program_save() and exit with STATUS_ETRACE_FAILED. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* malloc and realloc that do not fail: a program without memory ends, and says so. */
void *must_alloc(size_t size);
void *must_realloc(void *old, size_t size);

#endif /* ETRACE_COMMON_H */
