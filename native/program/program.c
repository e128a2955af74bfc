// SPDX-License-Identifier: Apache-2.0
/* Messages, memory that does not fail, the clock. */
#include "program.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 1024

void program_start(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
			_exit(STATUS_ETRACE_FAILED); /* there is nowhere to say it */
}

uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say_args(const char *format, va_list args)
{
	char text[MESSAGE_BYTES];

	vsnprintf(text, sizeof(text), format, args);
	dprintf(STDERR_FILENO, "%s: %s\n", program_name, text); /* one write: others write here too */
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_args(format, args);
	va_end(args);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_args(format, args);
	va_end(args);
	program_save();
	exit(STATUS_ETRACE_FAILED);
}

void *must_alloc(size_t size)
{
	return must_realloc(NULL, size);
}

void *must_realloc(void *old, size_t size)
{
	void *new = realloc(old, size ? size : 1);

	if (!new)
		die("out of memory (%zu bytes)", size);
	return new;
}
