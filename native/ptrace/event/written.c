// SPDX-License-Identifier: Apache-2.0
/*
 * What processes write to standard error and output, for the Written lines.
 *
 * The filter stops writes to descriptor 2 (and 1 with --stdout) and no others. The bytes are read
 * when the call has returned: only then is it known how many were taken, and the program has not
 * touched them meanwhile. The leader of a process has those of all its threads.
 *
 * A shell that runs `echo text >&2` makes descriptor 1 a copy of 2 and writes to that. The filter
 * cannot know, so all calls of such a task stop as long as the copy is there (task_sees_writes()).
 */
#include "event/event.h"

#include <string.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/written.h"
#include "task/memory.h"

_Static_assert(WRITTEN_READ_MAX <= MEMORY_LOOK_MAX, "read at once");

#define VECTORS_MAX 1024 /* IOV_MAX */

/*
 * At most MEMORY_LOOK_MAX bytes. The call has just read them, so they are there unless another thread
 * has taken them away; who brings them back may be a process that waits for this tracer.
 */
static bool read_memory(const struct task *task, u64 address, char *into, size_t n)
{
	if (memory_is_there(task, address, n) && memory_read(task, address, into, n) == (ssize_t)n)
		return true;
	counters.unread_strings++;
	memset(into, '?', n);
	return false;
}

/* The bytes of a task at an address. */
struct memory_source {
	struct written_source source;
	const struct task *task;
	u64 address;
};

static void read_source(const struct written_source *source, u64 offset, char *into, size_t n)
{
	const struct memory_source *memory = (const struct memory_source *)source;

	read_memory(memory->task, memory->address + offset, into, n);
}

/* Keep what a task wrote, for the leader of its process, if somebody wants it. */
static void keep(struct task *task, u64 address, u64 n)
{
	struct memory_source memory = { { read_source }, task, address };
	struct task *leader = task_find(task->tgid);
	int fd = (int)task->args[0];
	bool is_error = fd == STDERR_FILENO || fd_table_leads_to_error(task->fds, fd);

	if (leader && (is_error ? options.keeps_stderr : options.keeps_stdout && fd == STDOUT_FILENO))
		written_add(&leader->written, is_error, &memory.source, n);
}

static void exit_write(struct task *task, s64 result)
{
	if (result > 0)
		keep(task, task->args[1], (u64)result);
}

/* Address and length of a vector, of two words. */
struct vector {
	u64 address;
	u64 len;
};

static struct vector vector_at(const struct task *task, const char *vectors, size_t i)
{
	struct vector found;
	u32 narrow[2];

	if (task->is_narrow) {
		memcpy(narrow, vectors + i * sizeof(narrow), sizeof(narrow));
		return (struct vector){ narrow[0], narrow[1] };
	}
	memcpy(&found, vectors + i * sizeof(found), sizeof(found));
	return found;
}

static void exit_writev(struct task *task, s64 result)
{
	static char vectors[VECTORS_MAX * sizeof(struct vector)]; /* 16 KiB */
	size_t n = task->args[2] < VECTORS_MAX ? task->args[2] : VECTORS_MAX;
	size_t bytes = n * (task->is_narrow ? 2 * sizeof(u32) : sizeof(struct vector));
	u64 left = result > 0 ? (u64)result : 0;
	size_t i;

	if (!left || !read_memory(task, task->args[1], vectors, bytes))
		return;
	for (i = 0; i < n && left; i++) {
		struct vector vector = vector_at(task, vectors, i);
		u64 len = vector.len < left ? vector.len : left;

		keep(task, vector.address, len);
		left -= len;
	}
}

const struct syscall_handler write_handler = { .exit = exit_write };
const struct syscall_handler writev_handler = { .exit = exit_writev };

/* ---- the lines ---- */

struct place {
	struct task *task;
	u64 time_ns;
};

static void put_line(void *context, const s64 *values, const struct etrace_text *text)
{
	const struct place *place = context;

	event_put_at(place->task, place->time_ns, ETRACE_EV_WRITTEN, values, text);
}

void written_put(struct task *task, u64 time_ns, bool has_failed)
{
	struct place place = { task, time_ns };

	written_take(&task->written, has_failed, put_line, &place);
}
