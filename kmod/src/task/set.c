// SPDX-License-Identifier: GPL-2.0-only
/*
 * The set of traced tasks (set.h says who reads and writes it), and the first ones of a session: a
 * process and what it has started. These walk the list of all tasks under RCU; the probes of fork
 * and exit are there before, so that nobody slips through.
 */
#include <linux/sched/signal.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "memory.h"
#include "state.h"
#include "task/set.h"

struct hlist_head etrace_task_hash[1 << ETRACE_TASK_HASH_BITS];

/*
 * Guards the hash and what follows. Taken with interrupts off by a cgroup's tracepoint, and with
 * preemption off by others, where PREEMPT_RT allows no lock that sleeps.
 */
static DEFINE_RAW_SPINLOCK(set_lock);
static struct etrace_task_set_state {
	const struct signal_struct *root; /* of the root process: all its threads share it */
	u32 n_root_threads;
	u32 n_tasks;
	bool closed;
} set = { .closed = true };

static atomic64_t last_sequence_number;

static s64 next_upid(const struct task_struct *task)
{
	u64 sequence_number = (u64)atomic64_inc_return(&last_sequence_number);

	return (s64)((sequence_number << ETRACE_UPID_PID_BITS | (u32)task->pid) & S64_MAX);
}

static struct etrace_task *new_entry(struct task_struct *task)
{
	struct etrace_origin origin = { .upid = next_upid(task), .session = etrace_session };
	struct etrace_task *entry = etrace_task_new(task, &origin);

	if (!entry)
		etrace_count(ETRACE_COUNT_UNTRACKED);
	return entry;
}

static struct etrace_task *insert_locked(struct etrace_task *entry)
{
	struct etrace_task *other = etrace_task_find(entry->task);

	if (set.closed || other)
		return other;
	if (entry->task->signal == set.root) {
		entry->root = true;
		set.n_root_threads++;
	}
	set.n_tasks++;
	hlist_add_head_rcu(&entry->node,
			   &etrace_task_hash[hash_ptr(entry->task, ETRACE_TASK_HASH_BITS)]);
	return entry;
}

static bool remove_locked(struct etrace_task *entry)
{
	if (hlist_unhashed(&entry->node))
		return false;
	hlist_del_init_rcu(&entry->node);
	set.n_tasks--;
	if (entry->root)
		set.n_root_threads--;
	return true;
}

static void report_end_locked(const struct etrace_task *entry)
{
	if (entry->root && !set.n_root_threads) {
		set.root = NULL;
		etrace_notice(ETRACE_NOTICE_ROOT_EXITED);
	}
	if (!set.n_tasks)
		etrace_notice(ETRACE_NOTICE_EMPTY);
}

/* Not yet inserted: no reader knows it. */
static struct etrace_task *insert(struct etrace_task *entry)
{
	struct etrace_task *inserted;
	unsigned long flags;

	raw_spin_lock_irqsave(&set_lock, flags);
	inserted = insert_locked(entry);
	raw_spin_unlock_irqrestore(&set_lock, flags);
	if (inserted != entry)
		etrace_free(entry);
	else
		etrace_count(ETRACE_COUNT_TASKS);
	return inserted;
}

/* `ended`: the task itself did; listeners are notified of the last one. */
static void remove(struct etrace_task *entry, bool ended)
{
	unsigned long flags;
	bool removed;

	raw_spin_lock_irqsave(&set_lock, flags);
	removed = remove_locked(entry);
	if (removed && ended)
		report_end_locked(entry);
	raw_spin_unlock_irqrestore(&set_lock, flags);
	if (removed)
		etrace_task_put(entry);
}

/* The function that is called for new tasks, or NULL. */
static void (*watcher)(struct task_struct *task);

void etrace_task_set_watch(void (*added)(struct task_struct *task))
{
	WRITE_ONCE(watcher, added);
}

struct etrace_task *etrace_task_add(struct task_struct *task)
{
	void (*added)(struct task_struct *task);
	struct etrace_task *entry;

	if (READ_ONCE(task->flags) & (ETRACE_KERNEL_TASKS | PF_EXITING))
		return NULL;
	entry = new_entry(task);
	entry = entry ? insert(entry) : NULL;
	if (!entry)
		return NULL;
	/*
	 * Its exit probe may have looked for the entry before it was there. An exiting task sets
	 * the flag long before the probe: either we see the flag or the probe sees the entry. In
	 * the same way isolation sees the entry, or its bit is given back here (isolate.c).
	 */
	smp_mb();
	added = READ_ONCE(watcher);
	if (added)
		added(task);
	if (READ_ONCE(task->flags) & PF_EXITING) {
		remove(entry, false);
		return NULL;
	}
	return entry;
}

void etrace_task_remove(struct etrace_task *entry)
{
	remove(entry, true);
}

void etrace_task_set_open(const struct signal_struct *root)
{
	raw_spin_lock_irq(&set_lock);
	set = (struct etrace_task_set_state){ .root = root };
	raw_spin_unlock_irq(&set_lock);
}

void etrace_task_set_close(void)
{
	u32 bucket;

	raw_spin_lock_irq(&set_lock);
	set.closed = true;
	set.root = NULL;
	raw_spin_unlock_irq(&set_lock);
	for (bucket = 0; bucket < ARRAY_SIZE(etrace_task_hash); bucket++) {
		struct etrace_task *entry;
		struct hlist_node *next;

		/* nobody adds or removes any more: the probes are gone */
		hlist_for_each_entry_safe(entry, next, &etrace_task_hash[bucket], node) {
			hlist_del_init_rcu(&entry->node);
			etrace_task_put(entry);
		}
		cond_resched();
	}
	set.n_tasks = 0;
}

u32 etrace_task_set_live(void)
{
	return READ_ONCE(set.n_tasks);
}

/* ---- the first tasks; process context ---- */

/* The named thread may have ended while others live: then the first of these is used. */
int etrace_roots_add_process(struct task_struct *task, u64 *upid)
{
	const struct etrace_task *entry, *named;
	struct task_struct *thread;

	rcu_read_lock();
	named = etrace_task_add(task);
	for_each_thread(task, thread) {
		entry = etrace_task_add(thread);
		if (!named)
			named = entry;
	}
	if (named)
		*upid = (u64)named->origin.upid;
	rcu_read_unlock();
	return named ? 0 : -ESRCH;
}

static bool has_traced_parent(const struct task_struct *task)
{
	const struct task_struct *parent = rcu_dereference(task->real_parent);

	return etrace_task_find(parent) || etrace_task_find(parent->group_leader);
}

static bool add_children(void)
{
	struct task_struct *process, *task;
	bool added = false;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (!etrace_task_find(task) && has_traced_parent(task) && etrace_task_add(task))
			added = true;
	rcu_read_unlock();
	return added;
}

void etrace_roots_add_descendants(void)
{
	while (add_children())
		cond_resched();
}
