// SPDX-License-Identifier: Apache-2.0
/*
 * Processes of Windows -> event lines. The CPU is not known and printed as 0. Sources of the codes:
 * ntstatus.h; `signal` of Microsoft's C library ends a program with 3 for SIGABRT.
 */
#include "lines.h"

#include "etrace_format.h"

#define MAX_STATUS 255

static const struct {
	uint32_t code;
	uint32_t signal; /* of Linux */
} exceptions[] = {
	{ 0xC0000005, 11 }, /* STATUS_ACCESS_VIOLATION: SIGSEGV */
	{ 0xC00000FD, 11 }, /* STATUS_STACK_OVERFLOW: SIGSEGV */
	{ 0xC000001D, 4 }, /* STATUS_ILLEGAL_INSTRUCTION: SIGILL */
	{ 0xC0000094, 8 }, /* STATUS_INTEGER_DIVIDE_BY_ZERO: SIGFPE */
	{ 0xC000013A, 2 }, /* STATUS_CONTROL_C_EXIT: SIGINT */
	{ 0xC0000409, 6 }, /* STATUS_STACK_BUFFER_OVERRUN, abort(): SIGABRT */
	{ 0x80000003, 5 }, /* STATUS_BREAKPOINT: SIGTRAP */
};

int64_t lines_upid(uint64_t sequence, unsigned long pid)
{
	uint64_t mask = (1u << ETRACE_UPID_PID_BITS) - 1;

	return (int64_t)(sequence << ETRACE_UPID_PID_BITS | (pid & mask));
}

uint32_t lines_status(uint32_t code)
{
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
		if (exceptions[i].code == code)
			return ETRACE_SIGNAL_STATUS_BASE + exceptions[i].signal;
	}
	return code <= MAX_STATUS ? code : MAX_STATUS;
}

void lines_begin(struct buffer *out, struct text directory)
{
	buffer_add(out, LITERAL(ETRACE_FIRST_LINE));
	buffer_add_text(out, directory); /* no name of Windows has a newline */
	buffer_add_char(out, '\n');
}

/* Print into the buffer with `print`, twice when the room was too small. */
#define PUT(buffer, print)                                                                         \
	do {                                                                                       \
		struct etrace_out sink;                                                            \
		size_t room = reserve(buffer, 0);                                                  \
		etrace_out_init(&sink, (buffer)->data + (buffer)->len, room);                      \
		print;                                                                             \
		if (sink.len > room) {                                                             \
			room = reserve(buffer, sink.len);                                          \
			etrace_out_init(&sink, (buffer)->data + (buffer)->len, room);              \
			print;                                                                     \
		}                                                                                  \
		(buffer)->len += sink.len;                                                         \
	} while (0)

/* Make room for `len` bytes more; return how much there is. */
static size_t reserve(struct buffer *buffer, size_t len)
{
	size_t room = buffer->room ? buffer->room : 4096;

	while (room - buffer->len < len)
		room *= 2;
	if (room != buffer->room) {
		buffer->data = must_realloc(buffer->data, room);
		buffer->room = room;
	}
	return buffer->room - buffer->len;
}

static void put_event(struct buffer *out, int64_t upid, uint64_t time_ns, enum etrace_event event,
		      const s64 *values, const struct etrace_text *strings)
{
	struct etrace_prefix prefix;

	etrace_prefix_init(&prefix, upid, 0, time_ns);
	PUT(out, etrace_put_event(&sink, &prefix, event, values, strings));
}

void lines_fork(struct buffer *out, int64_t parent, uint64_t time_ns, int64_t child)
{
	s64 values[] = { child };

	put_event(out, parent, time_ns, ETRACE_EV_SCHED_FORK, values, NULL);
}

void lines_exit(struct buffer *out, int64_t upid, uint64_t time_ns, uint32_t code)
{
	s64 values[] = { lines_status(code) };

	put_event(out, upid, time_ns, ETRACE_EV_EXIT, values, NULL);
}

void lines_exec(struct buffer *out, int64_t upid, uint64_t time_ns, const struct lines_exec *exec)
{
	const struct etrace_text strings[] = {
		{ exec->image.data, exec->image.len },
		{ exec->asked.data, exec->asked.len },
		{ exec->directory.data, exec->directory.len },
	};
	s64 values[] = { (s64)exec->arguments->bytes.len };
	struct etrace_prefix prefix;
	size_t n = words_count(exec->arguments);

	put_event(out, upid, time_ns, ETRACE_EV_NEW_PROC, values, strings);
	etrace_prefix_init(&prefix, upid, 0, time_ns);
	for (size_t i = 0; i < n; i++) {
		struct text word = words_at(exec->arguments, i);

		PUT(out, etrace_put_item(&sink, &prefix, ETRACE_DATA_A, (u32)i, word.data, word.len));
	}
	PUT(out, etrace_put_end_of_args(&sink, &prefix));
}

void lines_variable(struct buffer *out, const int64_t *upids, size_t n, uint64_t time_ns,
		    struct text variable)
{
	struct etrace_prefix prefix;

	etrace_prefix_init(&prefix, 0, 0, time_ns);
	for (size_t i = 0; i < n; i++) {
		s64 values[] = { upids[i] };

		PUT(out, etrace_put_line(&sink, &prefix, ETRACE_EV_UPID, values, NULL));
	}
	PUT(out, etrace_put_env(&sink, &prefix, variable.data, variable.len));
}
