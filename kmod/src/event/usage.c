// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a process has used -> Usage. Counters of all threads are added up as getrusage(2) does it,
 * but without its locks, which sleep on PREEMPT_RT. Context: the task itself, at an execution (in
 * task_work) and at its end (atomic).
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched/cputime.h>
#include <linux/sched/signal.h>
#include <linux/static_call.h>

#include "event/handlers.h"
#include "lookup.h"
#include "task/set.h"

/* ---- CPU time ---- */

/*
 * The scheduler counts a task's time when it switches and at ticks: most programs of a configure
 * script end before the first of them. This function counts up to now. It takes raw locks only.
 */
DEFINE_STATIC_CALL_NULL(etrace_task_runtime, task_sched_runtime);
static bool has_runtime;

void etrace_usage_init(void)
{
	typeof(task_sched_runtime) *function = etrace_lookup("task_sched_runtime");

	if (function)
		static_call_update(etrace_task_runtime, function);
	has_runtime = function;
}

bool etrace_usage_has_cpu(void)
{
	return has_runtime;
}

/* `total` * `part` / `whole`, exact as far as 32 bits of `whole` are. `part` <= `whole`. */
static u64 share(u64 total, u64 part, u64 whole)
{
	int shift = max(fls64(whole) - 32, 0);

	whole >>= shift;
	part >>= shift;
	return total / whole * part + total % whole * part / whole;
}

/* ---- sums of all threads ---- */

struct sums {
	u64 runtime; /* ns */
	u64 user; /* ns, found by ticks */
	u64 system;
	u64 rchar;
	u64 wchar;
	u64 voluntary;
	u64 forced;
	bool has_io;
};

static void add_thread(struct sums *sums, struct task_struct *thread)
{
	if (has_runtime)
		sums->runtime += static_call(etrace_task_runtime)(thread);
	sums->user += thread->utime;
	sums->system += thread->stime;
#ifdef CONFIG_TASK_XACCT
	sums->rchar += thread->ioac.rchar;
	sums->wchar += thread->ioac.wchar;
#endif
	sums->voluntary += thread->nvcsw;
	sums->forced += thread->nivcsw;
}

/*
 * The kernel keeps one sum of the I/O of ended threads and of children that were waited for. It is
 * that of the threads if no child was, and of no interest if no thread has ended.
 */
static void add_ended_io(struct sums *sums, const struct signal_struct *process)
{
#ifdef CONFIG_TASK_XACCT
	/* a clock that only ticks (after suspend) may have seen none of what a thread ran */
	bool has_thread = process->sum_sched_runtime || process->min_flt || process->nvcsw ||
			  process->nivcsw;
	bool has_child = process->cmin_flt || process->cnvcsw || process->cnivcsw;

	sums->has_io = !has_thread || !has_child;
	if (has_thread) {
		sums->rchar += process->ioac.rchar;
		sums->wchar += process->ioac.wchar;
	}
#endif
}

/* What threads have left that are gone. */
static void add_ended(struct sums *sums, const struct signal_struct *process)
{
	sums->runtime += process->sum_sched_runtime;
	sums->user += process->utime;
	sums->system += process->stime;
	add_ended_io(sums, process);
	sums->voluntary += process->nvcsw;
	sums->forced += process->nivcsw;
}

static void add_up(struct sums *sums)
{
	struct task_struct *thread;

	*sums = (struct sums){};
	rcu_read_lock();
	for_each_thread(current, thread)
		add_thread(sums, thread);
	rcu_read_unlock();
	add_ended(sums, current->signal);
}

/* As often as the kernel tries it; where the lock cannot be taken, a little more. */
#define N_TRIES (IS_ENABLED(CONFIG_PREEMPT_RT) ? 3 : 1)

/* A thread that goes meanwhile would be counted twice or not at all: then again. */
static bool add_up_undisturbed(struct sums *sums)
{
	const seqcount_t *changes = &current->signal->stats_lock.seqcount.seqcount;
	unsigned int before;
	int tries;

	for (tries = 0; tries < N_TRIES; tries++) {
		before = raw_read_seqcount(changes);
		add_up(sums);
		if (!(before & 1) && !read_seqcount_retry(changes, before))
			return true;
	}
	return false;
}

/* False: threads end all the time, and to stop them is not allowed here. */
static bool add_up_process(struct sums *sums)
{
	if (add_up_undisturbed(sums))
		return true;
#ifdef CONFIG_PREEMPT_RT
	return false;
#else
	read_seqlock_excl_irq(&current->signal->stats_lock);
	add_up(sums);
	read_sequnlock_excl_irq(&current->signal->stats_lock);
	return true;
#endif
}

/* ---- the line ---- */

enum { USER, SYSTEM, MAX_RSS, RCHAR, WCHAR, VOLUNTARY, FORCED, N_VALUES };

/*
 * As the kernel divides it: without ticks all is the program's, and neither sum gets smaller than
 * it was in the last line, although the next tick divides all again.
 */
static void put_cpu_time(s64 *values, struct etrace_task *entry, const struct sums *sums)
{
	u64 ticks = sums->user + sums->system;
	u64 system = sums->system ? share(sums->runtime, sums->system, ticks) : 0;

	if (!has_runtime)
		return;
	system = clamp_t(u64, system, entry->reported_system,
			 max(sums->runtime - entry->reported_user, entry->reported_system));
	entry->reported_system = system;
	entry->reported_user = max(sums->runtime - system, entry->reported_user);
	values[USER] = (s64)entry->reported_user;
	values[SYSTEM] = (s64)entry->reported_system;
}

static void put_counters(s64 *values, const struct sums *sums)
{
	if (sums->has_io) {
		values[RCHAR] = (s64)sums->rchar;
		values[WCHAR] = (s64)sums->wchar;
	}
	values[VOLUNTARY] = (s64)sums->voluntary;
	values[FORCED] = (s64)sums->forced;
}

void etrace_put_usage(struct etrace_stream *stream, struct etrace_task *entry)
{
	s64 values[N_VALUES] = { -1, -1, -1, -1, -1, -1, -1 };
	struct sums sums;

	BUILD_BUG_ON(N_VALUES > ETRACE_MAX_VALUES);
	if (add_up_process(&sums)) {
		put_cpu_time(values, entry, &sums);
		put_counters(values, &sums);
	}
	if (entry->max_rss)
		values[MAX_RSS] = (s64)entry->max_rss;
	etrace_stream_event(stream, ETRACE_EV_USAGE, values, NULL);
}

/* ---- the end ---- */

bool etrace_usage_is_due(void)
{
	if (!(etrace_options & ETRACE_OPTION_USAGE) || !thread_group_leader(current))
		return false;
	return !atomic_read(&current->signal->live) ||
	       READ_ONCE(current->signal->flags) & ETRACE_SIGNAL_ALL_END;
}

void etrace_usage_end_thread(void)
{
	if (etrace_options & ETRACE_OPTION_USAGE && has_runtime)
		static_call(etrace_task_runtime)(current);
}

void etrace_usage_note_memory(struct etrace_task *entry)
{
	struct mm_struct *mm = current->mm;

	if (!mm || !thread_group_leader(current) || entry->borrows_memory)
		return;
	entry->max_rss = (u64)max(mm->hiwater_rss, etrace_mm_rss(mm)) << PAGE_SHIFT;
}

#if !ETRACE_EXIT_HAS_MEMORY
int etrace_on_exit_signals(struct kprobe *probe, struct pt_regs *regs)
{
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_find(current);
	if (entry)
		etrace_usage_note_memory(entry);
	rcu_read_unlock();
	return 0;
}
#endif
