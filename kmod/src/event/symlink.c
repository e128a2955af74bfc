// SPDX-License-Identifier: GPL-2.0-only
/*
 * symlink* -> Symlink. Its name comes from the dentry that the kernel passes to its security hook,
 * or from task_work when the hook could not be probed. The target is always resolved in task_work.
 * Context: kprobes (atomic, the directory is locked), sys_exit (atomic), task_work.
 */
#include <linux/fcntl.h>
#include <linux/slab.h>

#include "event/call.h"
#include "event/handlers.h"
#include "event/names.h"
#include "event/path.h"
#include "event/walk.h"
#include "record/emit.h"
#include "record/scratch.h"
#include "task/deferred.h"

static void keep_symlink(struct etrace_task *entry, const struct path *dir, struct dentry *dentry,
			 const char *target)
{
	struct etrace_scratch *space = etrace_scratch_get();
	struct etrace_text texts[3] = { etrace_text_of(target) };

	texts[1] = etrace_dentry_text(dir->mnt, dentry, space->path, sizeof(space->path));
	if (texts[1].text)
		etrace_names_keep(entry, etrace_call_kind(task_pt_regs(current)), texts);
	etrace_scratch_put(space);
	entry->hooked = true;
}

int etrace_on_path_symlink(struct kprobe *probe, struct pt_regs *regs)
{
	const struct path *dir = (const struct path *)regs_get_kernel_argument(regs, 0);
	struct dentry *dentry = (struct dentry *)regs_get_kernel_argument(regs, 1);
	const char *target = (const char *)regs_get_kernel_argument(regs, 2);
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_in_call(ETRACE_CALL_SYMLINK, ETRACE_CALL_SYMLINKAT);
	if (entry)
		keep_symlink(entry, dir, dentry, target);
	rcu_read_unlock();
	return 0;
}

/* Resolving the target takes memory and time, so it runs in task_work. */
static void exit_symlink(struct etrace_task *entry, const struct etrace_call *call)
{
	if (call->result)
		etrace_names_free(entry);
	else if (etrace_was_made(entry, ETRACE_HOOK_SYMLINK))
		etrace_defer(entry, call, &etrace_symlink);
}

/*
 * Where a link leads, without reading the link: from its directory, whose path has no symlinks, by
 * the target's string. Absent when it leads to nothing that is in memory.
 */
static struct etrace_text link_leads_to(const struct etrace_text *link,
					const struct etrace_text *target,
					struct etrace_scratch *space)
{
	char *name = space->other;
	size_t dir_len = 0;

	if (!target->len)
		return (struct etrace_text){ NULL, 0 };
	if (target->text[0] != '/')
		dir_len = strrchr(link->text, '/') + 1 - link->text;
	if (dir_len + target->len >= PATH_MAX) {
		etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
		return (struct etrace_text){ NULL, 0 };
	}
	memmove(name + dir_len, target->text, target->len);
	memcpy(name, link->text, dir_len);
	name[dir_len + target->len] = '\0';
	return etrace_walk_text(name, true, space->third);
}

/* `link` is ended by a null byte. */
static void put_symlink(struct etrace_task *entry, const struct etrace_call *call,
			const struct etrace_text *target, const struct etrace_text *link,
			struct etrace_scratch *space)
{
	struct etrace_text data[3] = { *target, link_leads_to(link, target, space), *link };

	etrace_emit(&entry->origin, call->time_ns, ETRACE_EV_SYMLINK, NULL, data);
}

/* No hook saw the call: the strings are read again, from the task's memory. */
static void put_missed_symlink(struct etrace_task *entry, const struct etrace_call *call,
			       struct etrace_scratch *space)
{
	bool at = call->kind == ETRACE_CALL_SYMLINKAT;
	char *string = space->other + PATH_MAX;
	struct etrace_text target, link;
	long len;

	link = etrace_find_made(entry, at ? (int)call->args[1] : AT_FDCWD, call->args[at ? 2 : 1],
				space->other, space->path);
	if (!link.text) {
		etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
		return;
	}
	len = etrace_user_string(string, call->args[0]);
	if (len < 0) {
		etrace_count(ETRACE_COUNT_UNREAD_STRINGS);
		return;
	}
	target = (struct etrace_text){ string, len };
	put_symlink(entry, call, &target, &link, space);
}

static void work_symlink(struct etrace_task *entry, const struct etrace_call *call,
			 struct etrace_scratch *space)
{
	struct etrace_names *names = etrace_names_take(entry, call->kind);
	struct etrace_text link;

	if (!names) {
		put_missed_symlink(entry, call, space);
		return;
	}
	link = (struct etrace_text){ space->path, names->text[1].len };
	memcpy(space->path, names->text[1].text, link.len);
	space->path[link.len] = '\0';
	put_symlink(entry, call, &names->text[0], &link, space);
	kfree(names);
}

const struct etrace_handler etrace_symlink = { .exit = exit_symlink, .work = work_symlink };
