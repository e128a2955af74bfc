// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds each task called `hold` on its way back to user space from a renameat(): its work runs
 * before that which the module under test has left there, for works run in the reverse order, and
 * the probe that adds it comes after that module's. Parameter n_held: how many are held; release:
 * the task that may go on.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/task_work.h>
#include <linux/tracepoint.h>
#include <linux/wait.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#define LAST 0 /* priority of a probe; others have TRACEPOINT_DEFAULT_PRIO */

static DECLARE_WAIT_QUEUE_HEAD(held);
static struct tracepoint *sys_exit;

static int n_held;
module_param(n_held, int, 0444);

static int release;

static int set_release(const char *value, const struct kernel_param *parameter)
{
	int err = param_set_int(value, parameter);

	wake_up_all(&held);
	return err;
}

static const struct kernel_param_ops release_ops = { .set = set_release, .get = param_get_int };
module_param_cb(release, &release_ops, &release, 0644);

static void wait_here(struct callback_head *work)
{
	n_held++;
	wait_event_killable(held, READ_ONCE(release) == current->pid);
	n_held--;
	kfree(work);
}

static void probe(void *data, struct pt_regs *regs, long result)
{
	struct callback_head *work;

	if (strcmp(current->comm, "hold") || syscall_get_nr(current, regs) != __NR_renameat)
		return;
	work = kmalloc(sizeof(*work), GFP_ATOMIC);
	if (!work)
		return;
	init_task_work(work, wait_here);
	if (task_work_add(current, work, TWA_RESUME))
		kfree(work);
}

static void find(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "sys_exit"))
		sys_exit = tracepoint;
}

static int __init hold_init(void)
{
	for_each_kernel_tracepoint(find, NULL);
	return sys_exit ? tracepoint_probe_register_prio(sys_exit, probe, NULL, LAST) : -ENOENT;
}

/* When nobody is held. */
static void __exit hold_exit(void)
{
	tracepoint_probe_unregister(sys_exit, probe, NULL);
	tracepoint_synchronize_unregister();
}

module_init(hold_init);
module_exit(hold_exit);
MODULE_DESCRIPTION("tasks that do not get to user space");
MODULE_LICENSE("GPL");
