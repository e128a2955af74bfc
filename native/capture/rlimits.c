// SPDX-License-Identifier: Apache-2.0
/*
 * A limit of files, memory or time is meant for the build. A trace is longer than any file of it, and
 * the tracer works as long as all of its processes together. Only root may raise the hard limit.
 */
#include "capture/rlimits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/program.h"

#define ANY RLIM_INFINITY
#define TEXT_BYTES 512
#define MESSAGE_BYTES 200
#define LEAST_TRACE_BYTES (1u << 20)
#define LEAST_CPU_SECONDS 600

/* In the units of `ulimit`, which the message gives. */
static const struct row {
	int resource;
	rlim_t wanted;
	int error; /* of a call that meets it */
	char option;
	rlim_t unit;
	const char *what;
} rows[] = {
	{ RLIMIT_FSIZE, ANY, EFBIG, 'f', 1024, "file size" },
	{ RLIMIT_AS, ANY, ENOMEM, 'v', 1024, "memory" },
	{ RLIMIT_DATA, ANY, ENOMEM, 'd', 1024, "data" },
	{ RLIMIT_MEMLOCK, ANY, ENOMEM, 'l', 1024, "locked memory" },
	{ RLIMIT_NOFILE, 1024, EMFILE, 'n', 1, "open files" },
	{ RLIMIT_NPROC, ANY, EAGAIN, 'u', 1, "processes" },
	{ RLIMIT_STACK, 8u << 20, 0, 's', 1024, "stack size" },
	{ RLIMIT_CPU, ANY, 0, 't', 1, "CPU time" },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static struct rlimit original[N_ROWS];
static bool is_known[N_ROWS];

/* `RESOURCE:SOFT:HARD` for each, with spaces between. */
static void read_variable(const char *text)
{
	unsigned long long soft, hard;
	int resource, n;
	size_t i;

	for (; sscanf(text, " %d:%llu:%llu%n", &resource, &soft, &hard, &n) == 3; text += n) {
		for (i = 0; i < N_ROWS; i++) {
			if (rows[i].resource != resource)
				continue;
			original[i] = (struct rlimit){ (rlim_t)soft, (rlim_t)hard };
			is_known[i] = true;
		}
	}
}

static void raise_one(const struct row *row, const struct rlimit *now)
{
	struct rlimit wanted = { row->wanted, now->rlim_max < row->wanted ? row->wanted : now->rlim_max };

	if (now->rlim_cur >= row->wanted || setrlimit((__rlimit_resource_t)row->resource, &wanted) == 0)
		return;
	wanted.rlim_max = now->rlim_max;
	wanted.rlim_cur = row->wanted < now->rlim_max ? row->wanted : now->rlim_max;
	setrlimit((__rlimit_resource_t)row->resource, &wanted);
}

void limits_raise(void)
{
	const char *text = getenv(LIMITS_VARIABLE);
	struct rlimit now;
	size_t i;

	if (text)
		read_variable(text);
	for (i = 0; i < N_ROWS; i++) {
		if (getrlimit((__rlimit_resource_t)rows[i].resource, &now) < 0)
			continue;
		if (!is_known[i])
			original[i] = now;
		is_known[i] = true;
		raise_one(&rows[i], &now);
	}
}

void limits_check(void)
{
	const char *lack = limits_lack(RLIMIT_FSIZE, LEAST_TRACE_BYTES);

	if (!lack)
		lack = limits_lack(RLIMIT_CPU, LEAST_CPU_SECONDS);
	if (lack)
		die("%s", lack);
}

void limits_restore(void)
{
	size_t i;

	for (i = 0; i < N_ROWS; i++) {
		if (is_known[i])
			setrlimit((__rlimit_resource_t)rows[i].resource, &original[i]);
	}
	unsetenv(LIMITS_VARIABLE);
}

void limits_hand_on(void)
{
	char text[TEXT_BYTES];
	size_t len = 0;
	size_t i;

	for (i = 0; i < N_ROWS; i++) {
		if (is_known[i])
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%d:%llu:%llu ",
						rows[i].resource, (unsigned long long)original[i].rlim_cur,
						(unsigned long long)original[i].rlim_max);
	}
	if (len)
		setenv(LIMITS_VARIABLE, text, 1);
}

const char *limits_lack(int resource, rlim_t needed)
{
	static char text[MESSAGE_BYTES];
	struct rlimit now;
	size_t i;

	for (i = 0; i < N_ROWS && rows[i].resource != resource; i++)
		;
	if (i == N_ROWS || getrlimit((__rlimit_resource_t)resource, &now) < 0 || now.rlim_cur >= needed)
		return NULL;
	snprintf(text, sizeof(text),
		 "the limit of %s is too low for etrace (ulimit -%c %llu): raise it to %llu or more",
		 rows[i].what, rows[i].option, (unsigned long long)(now.rlim_cur / rows[i].unit),
		 (unsigned long long)((needed + rows[i].unit - 1) / rows[i].unit));
	return text;
}

const char *limits_blame(int error)
{
	static char text[MESSAGE_BYTES];
	struct rlimit now;
	size_t i;

	for (i = 0; i < N_ROWS; i++) {
		if (!error || rows[i].error != error || rows[i].resource == RLIMIT_MEMLOCK ||
		    getrlimit((__rlimit_resource_t)rows[i].resource, &now) < 0 ||
		    now.rlim_cur == RLIM_INFINITY)
			continue;
		snprintf(text, sizeof(text), " (raise the limit of %s: ulimit -%c is %llu)", rows[i].what,
			 rows[i].option, (unsigned long long)(now.rlim_cur / rows[i].unit));
		return text;
	}
	return "";
}
