/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process has used. The scheduler adds up CPU time when it takes a task off its processor, and at
 * ticks; most programs of a configure script end before the first of these. So it is noted when a task is
 * put on one, and what has passed since is added.
 */
#ifndef ETRACE_BPF_USAGE_H
#define ETRACE_BPF_USAGE_H

#include "state.h"

#define SIGNAL_GROUP_EXIT 4
#define MOST_THREADS 64 /* of a process that live when its first one ends */

static __always_inline u64 run_time(struct task_struct *thread)
{
	struct task *task = task_of((u64)thread);
	u64 counted = BPF_CORE_READ(thread, se.sum_exec_runtime);
	u64 exact;

	if (!task || !task->on_since || (u64)thread != bpf_get_current_task())
		return counted;
	exact = task->run_before + bpf_ktime_get_ns() - task->on_since;
	return exact > counted ? exact : counted;
}

static __always_inline void add_thread(struct record_usage *sum, struct task_struct *thread)
{
	sum->runtime_ns += (s64)run_time(thread);
	sum->user_ns += (s64)BPF_CORE_READ(thread, utime);
	sum->system_ns += (s64)BPF_CORE_READ(thread, stime);
	sum->voluntary += (s64)BPF_CORE_READ(thread, nvcsw);
	sum->forced += (s64)BPF_CORE_READ(thread, nivcsw);
	if (bpf_core_field_exists(thread->ioac.rchar)) {
		sum->rchar += (s64)BPF_CORE_READ(thread, ioac.rchar);
		sum->wchar += (s64)BPF_CORE_READ(thread, ioac.wchar);
	}
}

/*
 * What ended threads have left. The kernel keeps one sum of their I/O and of that of children that were
 * waited for: it is that of the threads if no child was, and of no interest if no thread has ended.
 */
static __always_inline void add_ended(struct record_usage *sum, struct signal_struct *process)
{
	u64 runtime = BPF_CORE_READ(process, sum_sched_runtime);
	u64 voluntary = BPF_CORE_READ(process, nvcsw);
	u64 forced = BPF_CORE_READ(process, nivcsw);
	bool has_thread = runtime || voluntary || forced || BPF_CORE_READ(process, min_flt);
	bool has_child = BPF_CORE_READ(process, cmin_flt) || BPF_CORE_READ(process, cnvcsw) ||
			 BPF_CORE_READ(process, cnivcsw);

	sum->runtime_ns += (s64)runtime;
	sum->user_ns += (s64)BPF_CORE_READ(process, utime);
	sum->system_ns += (s64)BPF_CORE_READ(process, stime);
	sum->voluntary += (s64)voluntary;
	sum->forced += (s64)forced;
	if (!bpf_core_field_exists(process->ioac.rchar) || (has_thread && has_child)) {
		sum->rchar = sum->wchar = -1;
	} else if (has_thread) {
		sum->rchar += (s64)BPF_CORE_READ(process, ioac.rchar);
		sum->wchar += (s64)BPF_CORE_READ(process, ioac.wchar);
	}
}

/* The largest resident memory that the process had so far, in pages; 0 when it is gone. */
static __always_inline u64 memory_pages(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 most, now = 0;
	s64 pages;

	if (!mm)
		return 0;
	most = BPF_CORE_READ(mm, hiwater_rss);
	if (bpf_core_field_exists(struct mm_struct___before_6_2, rss_stat.count)) {
		struct mm_struct___before_6_2 *old = (struct mm_struct___before_6_2 *)mm;

		now += (pages = BPF_CORE_READ(old, rss_stat.count[0].counter)) > 0 ? pages : 0;
		now += (pages = BPF_CORE_READ(old, rss_stat.count[1].counter)) > 0 ? pages : 0;
		now += (pages = BPF_CORE_READ(old, rss_stat.count[3].counter)) > 0 ? pages : 0;
	} else {
		now += (pages = BPF_CORE_READ(mm, rss_stat[0].count)) > 0 ? pages : 0;
		now += (pages = BPF_CORE_READ(mm, rss_stat[1].count)) > 0 ? pages : 0;
		now += (pages = BPF_CORE_READ(mm, rss_stat[3].count)) > 0 ? pages : 0;
	}
	return now > most ? now : most;
}

/* Send what the process of the running task has used. */
__attribute__((noinline)) int put_usage(u64 key, u32 pid, u32 is_exec)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct signal_struct *process = BPF_CORE_READ(current, signal);
	u64 node_at = bpf_core_field_offset(struct task_struct, thread_node);
	u64 head = (u64)process + bpf_core_field_offset(struct signal_struct, thread_head);
	struct scratch *scratch = record_begin(key, pid, RECORD_USAGE);
	struct task *task = task_of(key);
	struct record_usage sum = {};
	u64 node = head;
	int i;

	if (!scratch || !task)
		return 0;
	for (i = 0; i < MOST_THREADS; i++) {
		node = (u64)READ(struct list_head, node, next);
		if (!node || node == head)
			break;
		add_thread(&sum, (struct task_struct *)(node - node_at));
	}
	add_ended(&sum, process);
	sum.max_bytes = is_exec || !task->max_pages ? -1 : (s64)(task->max_pages * page_bytes);
	scratch->head.values[0] = is_exec;
	scratch->head.lens[0] = sizeof(sum);
	__builtin_memcpy(scratch->text, &sum, sizeof(sum));
	record_put(task, scratch, sizeof(sum), wake_flags());
	return 0;
}

#endif /* ETRACE_BPF_USAGE_H */
