// SPDX-License-Identifier: Apache-2.0
/* Messages, memory that does not fail, the clock. */
#include "capture/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 1024
#define SHOWN_BYTES (4 * MESSAGE_BYTES) /* a byte may become \xHH */
#define REPLACEMENT 0xfffd

void program_start(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
			_exit(STATUS_ETRACE_FAILED); /* there is nowhere to report it */
}

void program_sibling(char path[PATH_MAX], const char *name)
{
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	own[n > 0 ? n : 0] = '\0';
	slash = strrchr(own, '/');
	if (slash)
		slash[1] = '\0';
	if (!slash || snprintf(path, PATH_MAX, "%s%s", own, name) >= PATH_MAX)
		*path = '\0';
}

int program_take_fd(const char *option, const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (*text == '\0' || *end || fd < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0)
		die("%s %s: not an open descriptor", option, text);
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		die("%s %s: %s", option, text, strerror(errno));
	return (int)fd;
}

int program_take_number(const char *option, const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*text == '\0' || *end || number <= 0 || number > INT_MAX)
		die("%s %s: not a positive number", option, text);
	return (int)number;
}

uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct timespec monotonic_after(uint64_t ns)
{
	uint64_t then = monotonic_ns() + ns;

	return (struct timespec){ .tv_sec = (time_t)(then / 1000000000u),
				  .tv_nsec = (long)(then % 1000000000u) };
}

/* The length of the UTF-8 character at `text`; 1 and U+FFFD for a byte that begins none. */
static size_t decode(const unsigned char *text, uint32_t *code)
{
	size_t n = *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : *text >= 0xc2 ? 2 : 1;
	size_t i;

	*code = n == 1 ? *text : *text & (0x7fu >> n);
	for (i = 1; i < n && (text[i] & 0xc0) == 0x80; i++)
		*code = *code << 6 | (text[i] & 0x3f);
	if (i == n && (n > 1 || *text < 0x80))
		return n;
	*code = REPLACEMENT;
	return 1;
}

/* Whether a terminal only shows it: not a control character, not one that turns or ends a line. */
static bool is_harmless(uint32_t code)
{
	if (code < 0x20)
		return code == '\n' || code == '\t';
	return !(code >= 0x7f && code < 0xa0) && code != 0x61c && code != 0x200e &&
	       code != 0x200f && !(code >= 0x2028 && code <= 0x202e) &&
	       !(code >= 0x2066 && code <= 0x2069) && code != REPLACEMENT;
}

/* Names of files and processes are part of messages and may hold any bytes. */
static void tame(const char *text, char *shown)
{
	const unsigned char *at = (const unsigned char *)text;
	uint32_t code;
	size_t n;

	while (*at) {
		n = decode(at, &code);
		if (is_harmless(code)) {
			memcpy(shown, at, n);
			shown += n;
			at += n;
			continue;
		}
		for (; n; n--)
			shown += sprintf(shown, "\\x%02x", *at++);
	}
	*shown = '\0';
}

static void say_args(const char *format, va_list args)
{
	char text[MESSAGE_BYTES];
	char shown[SHOWN_BYTES];

	vsnprintf(text, sizeof(text), format, args);
	tame(text, shown);
	dprintf(STDERR_FILENO, "%s: %s\n", program_name, shown); /* one write: others write too */
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
