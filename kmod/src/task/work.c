// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that a probe must not do runs in the traced task before it returns to user space. Each
 * pending piece of work pins the module. STOP waits for them for a limited time, because work that
 * others have given the task may run first and take long.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/static_call.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include "lookup.h"
#include "task/deferred.h"

#define WAIT_JIFFIES (2 * HZ)

/*
 * The session in the upper half, how many of its works are pending in the lower. Works of earlier
 * sessions are in neither: nobody waits for them any more, whenever they end.
 */
static atomic64_t pending;
static DECLARE_WAIT_QUEUE_HEAD(none_pending);

#ifdef ETRACE_TASK_WORK_EXPORTED
#define add_task_work task_work_add

int etrace_work_init(void)
{
	return 0;
}
#else
DEFINE_STATIC_CALL_NULL(etrace_add_task_work, task_work_add);
#define add_task_work static_call(etrace_add_task_work)

int etrace_work_init(void)
{
	typeof(task_work_add) *function = etrace_lookup("task_work_add");

	if (!function)
		return -ENOENT;
	static_call_update(etrace_add_task_work, function);
	return 0;
}
#endif

static u32 session_of(u64 state)
{
	return state >> 32;
}

static u32 n_pending(void)
{
	return lower_32_bits(atomic64_read(&pending));
}

/* Only the probes of the session that runs add work: the upper half is theirs. */
int etrace_work_add(struct callback_head *work, void (*function)(struct callback_head *work))
{
	int err;

	init_task_work(work, function);
	__module_get(THIS_MODULE);
	err = add_task_work(current, work, TWA_RESUME);
	if (err)
		module_put(THIS_MODULE);
	else
		atomic64_inc(&pending); /* it runs when current is about to leave the kernel */
	return err;
}

void etrace_work_done(u32 session)
{
	s64 state = atomic64_read(&pending);

	while (session_of(state) == session)
		if (atomic64_try_cmpxchg(&pending, &state, state - 1))
			break;
	if (wq_has_sleeper(&none_pending))
		wake_up(&none_pending);
	module_put(THIS_MODULE); /* module_exit waits until the caller has left our code */
}

void etrace_work_begin(u32 session)
{
	atomic64_set(&pending, (s64)((u64)session << 32));
}

u32 etrace_work_wait(void)
{
	wait_event_timeout(none_pending, !n_pending(), WAIT_JIFFIES);
	return n_pending();
}
