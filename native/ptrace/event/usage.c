// SPDX-License-Identifier: Apache-2.0
/*
 * What processes used, for the Usage lines.
 *
 * CPU time is read from the clocks of the process (clock_getcpuclockid(3)), which count all its
 * threads and no children: the scheduler's clock is exact, and the ticks that found it in the
 * program or in the kernel divide it, as in getrusage(2). The files of /proc/TID/task/TID count one
 * thread: what ended threads leave is added up. (/proc/TID/io counts children that were waited for
 * as well.) Each stop for the tracer is one voluntary switch that the process would not have made,
 * and is taken off.
 */
#include "event/event.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"

#define USAGE_NOT_KNOWN { -1, -1, -1, -1, -1, -1, -1 }
#define NS_PER_SECOND 1000000000
#define STATUS_BYTES 4096 /* a mask of 8192 CPUs makes it longer than usual */

/* Kernel's encoding of the clocks of another process, include/linux/posix-timers.h */
#define PROCESS_CLOCK(pid, which) ((clockid_t)((~(unsigned int)(pid) << 3) | (which)))
enum { CLOCK_OF_TICKS, CLOCK_OF_PROGRAM_TICKS, CLOCK_OF_SCHEDULER };

static s64 read_clock(pid_t pid, int which)
{
	struct timespec time;

	if (clock_gettime(PROCESS_CLOCK(pid, which), &time) < 0)
		return -1;
	return (s64)time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

/*
 * As the kernel does it (cputime_adjust): without ticks in the kernel all is the program's, and
 * neither sum gets smaller than it was in `usage`, although the next tick divides all again.
 */
static void read_cpu(pid_t pid, struct usage *usage)
{
	s64 user, system;
	s64 total = read_clock(pid, CLOCK_OF_SCHEDULER);
	s64 ticks = read_clock(pid, CLOCK_OF_TICKS);
	s64 program = read_clock(pid, CLOCK_OF_PROGRAM_TICKS);

	if (total < 0 || ticks < 0 || program < 0 || program > ticks)
		return;
	user = ticks ? (s64)((double)total * ((double)program / (double)ticks)) : total;
	system = total - user;
	if (system < usage->system) {
		system = usage->system;
		user = total - system;
	}
	if (user < usage->user) {
		user = usage->user;
		system = total - user;
	}
	usage->user = user;
	usage->system = system;
}

static bool read_text(pid_t tid, const char *file, char *text, size_t size)
{
	char name[PROC_NAME_MAX];

	proc_thread_name(name, tid, file);
	return proc_read(name, text, size) > 0;
}

/* The number after `key`, which begins a line; the search begins at `at`, which moves there. */
static s64 number_of(const char **at, const char *key)
{
	const char *found = strstr(*at, key);

	if (!found)
		return -1;
	*at = found;
	return strtoll(found + strlen(key), NULL, 10);
}

/*
 * Before 5.7 that file waits for an execution under way in the process, which waits for all other
 * threads to end, and these for the tracer.
 */
static bool can_read_io(void)
{
	static int is_newer = -1;
	struct utsname system;
	int major, minor;

	if (is_newer < 0)
		is_newer = !uname(&system) &&
			   sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
			   (major > 5 || (major == 5 && minor >= 7));
	return is_newer;
}

static void read_io(pid_t tid, struct usage *usage)
{
	char text[512];
	const char *at = text;

	if (!can_read_io() || !read_text(tid, "io", text, sizeof(text)))
		return;
	usage->rchar = number_of(&at, "rchar:");
	usage->wchar = number_of(&at, "\nwchar:");
}

/* The memory is that of all threads. */
static void read_status(const struct task *task, struct usage *usage)
{
	char text[STATUS_BYTES];
	const char *at = text;

	if (!read_text(task->tid, "status", text, sizeof(text)))
		return;
	usage->max_rss = number_of(&at, "\nVmHWM:");
	if (usage->max_rss > 0)
		usage->max_rss *= 1024;
	usage->voluntary = number_of(&at, "\nvoluntary_ctxt_switches:");
	usage->forced = number_of(&at, "\nnonvoluntary_ctxt_switches:");
	if (usage->voluntary >= 0)
		usage->voluntary -= task->n_stops;
	if (usage->voluntary < 0)
		usage->voluntary = -1;
}

static s64 add(s64 a, s64 b)
{
	return a < 0 || b < 0 ? -1 : a + b;
}

/* What one thread has used, without CPU time. */
static struct usage read_thread(const struct task *task)
{
	struct usage own = USAGE_NOT_KNOWN;

	read_io(task->tid, &own);
	read_status(task, &own);
	return own;
}

/* What adds up over threads, without CPU time. */
static void add_thread(struct usage *sum, const struct usage *thread)
{
	sum->rchar = add(sum->rchar, thread->rchar);
	sum->wchar = add(sum->wchar, thread->wchar);
	sum->voluntary = add(sum->voluntary, thread->voluntary);
	sum->forced = add(sum->forced, thread->forced);
}

static void put(struct task *task, u64 time_ns, const struct usage *usage)
{
	s64 values[] = { usage->user,  usage->system,	 usage->max_rss, usage->rchar,
			 usage->wchar, usage->voluntary, usage->forced };

	event_put_at(task, time_ns, ETRACE_EV_USAGE, values, NULL);
}

/*
 * What an ended thread leaves: what adds up, and the memory of all. CPU time is counted for the
 * process, and read when the leader ends, and again by each thread that ends after it.
 */
void usage_take(struct task *task)
{
	struct task *leader = task->tgid == task->tid ? task : task_find(task->tgid);
	struct usage own;
	struct usage *all;

	if (!leader)
		return;
	all = &leader->usage;
	own = read_thread(task);
	add_thread(all, &own);
	if (leader->borrows_memory)
		all->max_rss = -1;
	else if (own.max_rss > all->max_rss)
		all->max_rss = own.max_rss;
	leader->is_ending |= task == leader;
	if (leader->is_ending)
		read_cpu(leader->tid, all);
}

/* What a child does before its first program is next to nothing: its CPU time is enough. */
void usage_put_exec(struct task *task, u64 time_ns)
{
	struct usage own = USAGE_NOT_KNOWN;

	if (!options.usage)
		return;
	if (task->has_executed) {
		own = read_thread(task);
		add_thread(&own, &task->usage);
	}
	read_cpu(task->tgid, &task->usage);
	own.user = task->usage.user;
	own.system = task->usage.system;
	own.max_rss = -1; /* that memory is gone */
	task->usage.max_rss = -1;
	task->has_executed = true;
	task->borrows_memory = false;
	put(task, time_ns, &own);
}

void usage_move(struct task *leader, struct task *thread)
{
	thread->usage = leader->usage;
	thread->n_stops++; /* at its execution: it was reported as the leader's */
	thread->has_executed = leader->has_executed;
	leader->is_ending = false;
}

void usage_put_end(struct task *task, u64 time_ns)
{
	if (options.usage && task->is_ending)
		put(task, time_ns, &task->usage);
}
