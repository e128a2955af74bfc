// SPDX-License-Identifier: Apache-2.0
/*
 * The last words of `etrace run`, in the form that etrace/cli/captured.py gives them for the other
 * backend: here, the command that started this program has become it.
 */
#include "session/summary.h"

#include <stdio.h>
#include <string.h>

#include "session/report.h"
#include "tracer.h"

#define COUNT_MAX 64
#define NS_PER_SECOND 1e9
#define UNIT 1000

/* `1,234 opens` */
static const char *count(char *text, u64 n, const char *one, const char *many)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	char *at = text;
	size_t i;

	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	snprintf(at, (size_t)(text + COUNT_MAX - at), " %s", n == 1 ? one : many);
	return text;
}

/* `12 B`, `1.5 MB` */
static const char *size(char *text, u64 n_bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double value = (double)n_bytes;
	size_t unit = 0;

	for (; value >= UNIT && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
		value /= UNIT;
	snprintf(text, COUNT_MAX, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

void summary_tell(bool is_interrupted)
{
	char processes[COUNT_MAX], programs[COUNT_MAX], opens[COUNT_MAX], bytes[COUNT_MAX];
	const char *trace = options.trace_path;

	if (!counters.executions)
		return;
	if (is_interrupted)
		say("the build was interrupted; the trace ends there");
	say("%s, %s and %s in %.1f s -> %s (%s)%s",
	    count(processes, counters.processes, "process", "processes"),
	    count(programs, counters.executions, "program", "programs"),
	    count(opens, counters.opens, "open", "opens"),
	    (double)report_duration_ns() / NS_PER_SECOND, trace, size(bytes, counters.bytes),
	    counters.untraced ? ", incomplete" : "");
	say("next: cas parse %s", trace);
}
