// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that does one bad thing when loaded, in process context, so that tests know that the
 * runner sees what a kernel says of it. `what` chooses; those of a debug kernel say so.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *what = "";
module_param(what, charp, 0);

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static void use_after_free(void) /* KASAN */
{
	char *block = kmalloc(64, GFP_KERNEL);
	char *volatile freed = block;

	kfree(block);
	if (freed)
		pr_info("complain: %d\n", READ_ONCE(freed[1]));
}

static void sleep_with_preemption_off(void) /* DEBUG_ATOMIC_SLEEP */
{
	preempt_disable();
	might_sleep();
	preempt_enable();
}

static void lock_both_ways(void) /* PROVE_LOCKING */
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void leak(void) /* kmemleak, at its next scan */
{
	void *volatile block;
	int i;

	for (i = 0; i < 16; i++)
		block = kmalloc(128, GFP_KERNEL);
	block = NULL;
}

static void stay_in_rcu(void) /* PROVE_RCU: a sleep in a read-side section */
{
	rcu_read_lock();
	might_sleep();
	rcu_read_unlock();
}

static const struct {
	const char *name;
	void (*run)(void);
} deeds[] = {
	{ "use_after_free", use_after_free },
	{ "atomic_sleep", sleep_with_preemption_off },
	{ "lock_order", lock_both_ways },
	{ "leak", leak },
	{ "rcu_sleep", stay_in_rcu },
};

static int __init complain_init(void)
{
	unsigned int i;

	WARN(!strcmp(what, "warn"), "complain: asked to warn\n");
	for (i = 0; i < ARRAY_SIZE(deeds); i++)
		if (!strcmp(what, deeds[i].name))
			deeds[i].run();
	return 0;
}

static void __exit complain_exit(void)
{
}

module_init(complain_init);
module_exit(complain_exit);
MODULE_DESCRIPTION("etrace: shows that a machine under test reports what goes wrong");
MODULE_LICENSE("GPL");
