// SPDX-License-Identifier: Apache-2.0
/* What a capture reports about itself; see report.h. */
#include "capture/report.h"

#include <poll.h>
#include <stdarg.h>
#include <unistd.h>

#include "capture/program.h"

#define MAX_WARNINGS 32
#define WARNING_MAX 500
#define STATUS_INTERVAL_NS 450000000u

static char warnings[MAX_WARNINGS][WARNING_MAX];
static size_t n_warnings;
static u64 start_time;

void report_start(void)
{
	start_time = monotonic_ns();
}

u64 report_duration_ns(void)
{
	return monotonic_ns() - start_time;
}

void report_warn(const char *format, ...)
{
	va_list args;

	if (n_warnings == MAX_WARNINGS)
		return;
	va_start(args, format);
	vsnprintf(warnings[n_warnings], WARNING_MAX, format, args);
	va_end(args);
	say("%s", warnings[n_warnings++]);
}

void report_warn_count(u64 n, const char *one, const char *many, const char *what)
{
	if (n)
		report_warn("%llu %s %s", (unsigned long long)n, n == 1 ? one : many, what);
}

void report_warn_unresolved(u64 n)
{
	report_warn_count(n, "name has", "names have",
			  "no resolved path: the given path is used; below a directory whose path is too long, "
			  "nothing is recorded");
}

bool report_is_due(void)
{
	static u64 last;
	u64 now = monotonic_ns();

	if (now - last < STATUS_INTERVAL_NS)
		return false;
	last = now;
	return true;
}

bool report_put_line(int fd, const char *text, size_t len)
{
	struct pollfd writable = { .fd = fd, .events = POLLOUT };

	if (poll(&writable, 1, 0) != 1 || !(writable.revents & POLLOUT))
		return true; /* a reader that does not read must not stop the build */
	return write(fd, text, len) == (ssize_t)len;
}

/* A string in JSON. */
static void put_string(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20)
			fprintf(file, "\\u%04x", c);
		else if (c > 0x7e) /* the name of a thread or file: any bytes */
			fprintf(file, "\\udc%02x", c);
		else
			putc(c, file);
	}
	putc('"', file);
}

void report_put_counts(FILE *file, const struct report_count *counts, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fprintf(file, ",\"%s\":%llu", counts[i].key, (unsigned long long)counts[i].value);
}

void report_put_text(FILE *file, const char *key, const char *text)
{
	fprintf(file, ",\"%s\":", key);
	put_string(file, text);
}

void report_put_stats(FILE *file, const char *backend, void (*put)(FILE *file))
{
	size_t i;

	fprintf(file, "{\"schema\":1,\"backend\":\"%s\"", backend);
	put(file);
	fputs(",\"warnings\":[", file);
	for (i = 0; i < n_warnings; i++) {
		fputs(i ? "," : "", file);
		put_string(file, warnings[i]);
	}
	fputs("]}\n", file);
}
