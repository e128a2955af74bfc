// SPDX-License-Identifier: GPL-2.0-only
/* Making and freeing the entries of traced tasks. Context: any but hard interrupts. */
#include <linux/build_bug.h>
#include <linux/file.h>
#include <linux/rcupdate.h>

#include "memory.h"
#include "task/entry.h"

struct etrace_task *etrace_task_new(struct task_struct *task, const struct etrace_origin *origin)
{
	struct etrace_task *entry = etrace_alloc(sizeof(*entry));

	BUILD_BUG_ON(sizeof(*entry) > 256); /* or kmalloc() takes twice that */
	if (entry)
		*entry = (struct etrace_task){
			.origin = *origin,
			.task = task,
			.refs = REFCOUNT_INIT(1),
		};
	return entry;
}

void etrace_task_get(struct etrace_task *entry)
{
	refcount_inc(&entry->refs);
}

void etrace_task_put(struct etrace_task *entry)
{
	if (!refcount_dec_and_test(&entry->refs))
		return;
	etrace_names_free(entry);
	etrace_exec_free(entry);
	etrace_descriptors_free(entry);
	etrace_opens_free(entry);
	kfree_rcu(entry, rcu);
}

void etrace_names_free(struct etrace_task *entry)
{
	kfree(entry->names);
	entry->names = NULL;
	entry->hooked = false;
}

void etrace_exec_free(struct etrace_task *entry)
{
	struct etrace_exec exec = entry->exec;

	entry->exec = (struct etrace_exec){};
	if (exec.file)
		fput(exec.file);
	if (exec.dir)
		fput(exec.dir);
	etrace_free(exec.filename);
}

void etrace_descriptors_free(struct etrace_task *entry)
{
	if (entry->closing != (void *)entry->few_closing)
		etrace_free(entry->closing);
	entry->closing = NULL;
}

void etrace_opens_free(struct etrace_task *entry)
{
	etrace_free(entry->opens);
	entry->opens = NULL;
}
