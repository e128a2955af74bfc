// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading. Process context. Nothing is probed and no instance made before START. */
#include <linux/module.h>

#include "compat.h"
#include "event/call.h"
#include "event/handlers.h"
#include "memory.h"
#include "record/emit.h"
#include "record/target.h"
#include "session/session.h"
#include "state.h"
#include "task/deferred.h"

static int __init etrace_init(void)
{
	int err = etrace_work_init();

	if (err)
		return err;
	etrace_text_init();
	etrace_syscall_table_init();
	etrace_usage_init();
	err = etrace_state_init();
	if (err)
		return err;
	err = etrace_scratch_init();
	if (err)
		goto free_state;
	err = etrace_memory_init();
	if (err)
		goto free_scratch;
	err = etrace_control_register();
	if (err)
		goto free_memory;
	return 0;

free_memory:
	etrace_memory_deinit();
free_scratch:
	etrace_scratch_deinit();
free_state:
	etrace_state_deinit();
	return err;
}

/*
 * No session runs: it would pin the module. The notice of its end may be pending, and the group of
 * those who listen goes with the family.
 */
static void __exit etrace_exit(void)
{
	etrace_session_flush();
	etrace_control_unregister();
	etrace_synchronize_tasks(); /* who called module_put() has left our code */
	etrace_deferred_deinit();
	etrace_memory_deinit();
	etrace_scratch_deinit();
	etrace_state_deinit();
}

module_init(etrace_init);
module_exit(etrace_exit);
MODULE_DESCRIPTION("etrace: event lines of a traced process tree, by ftrace");
MODULE_LICENSE("GPL");
