// SPDX-License-Identifier: GPL-2.0-only
/*
 * What must sleep on behalf of a traced task runs in the task before it returns to user space. Each
 * pending piece of work holds the module; STOP waits for them, within reason: a debugger may stop a
 * task for as long as it likes before its work has run.
 */
#include <linux/atomic.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include "etrace.h"
#include "work.h"

#define WAIT_JIFFIES (2 * HZ)

static atomic_t n_pending;
static int n_stuck; /* of these from earlier sessions */
static DECLARE_WAIT_QUEUE_HEAD(none_pending);

#ifdef ETRACE_TASK_WORK_EXPORTED
#define add_task_work task_work_add

int etrace_work_init(void)
{
	return 0;
}
#else
static int (*add_task_work)(struct task_struct *task, struct callback_head *work,
			    enum task_work_notify_mode notify);

/* A probe may stand behind the landing pad (IBT, BTI) where the function begins. */
static void *function_of(const void *address)
{
	char symbol[KSYM_SYMBOL_LEN]; /* name+0xoffset/0xsize */
	unsigned long offset = 0;
	const char *plus;

	sprint_symbol(symbol, (unsigned long)address);
	plus = strchr(symbol, '+');
	if (!plus || sscanf(plus, "+0x%lx", &offset) != 1)
		return NULL;
	return (char *)address - offset;
}

/* Where task_work_add() is not exported a kprobe, set and removed at once, tells its address. */
int etrace_work_init(void)
{
	struct kprobe probe = { .symbol_name = "task_work_add" };
	int err = register_kprobe(&probe);

	if (err) {
		pr_err("etrace: cannot find task_work_add (%d): needs CONFIG_KPROBES\n", err);
		return err;
	}
	add_task_work = function_of(probe.addr);
	unregister_kprobe(&probe);
	return add_task_work ? 0 : -ENOENT;
}
#endif

int etrace_work_add(struct callback_head *work, void (*function)(struct callback_head *work))
{
	int err;

	init_task_work(work, function);
	__module_get(THIS_MODULE);
	err = add_task_work(current, work, TWA_RESUME);
	if (err)
		module_put(THIS_MODULE);
	else
		atomic_inc(&n_pending); /* it runs when current is about to leave the kernel */
	return err;
}

void etrace_work_done(void)
{
	atomic_dec(&n_pending);
	if (wq_has_sleeper(&none_pending))
		wake_up(&none_pending);
	module_put(THIS_MODULE); /* module_exit waits until the caller has left our code */
}

void etrace_work_begin(void)
{
	n_stuck = atomic_read(&n_pending);
}

static int n_left(void)
{
	return max(atomic_read(&n_pending) - n_stuck, 0);
}

unsigned int etrace_work_wait(void)
{
	wait_event_timeout(none_pending, !n_left(), WAIT_JIFFIES);
	return (unsigned int)n_left();
}
