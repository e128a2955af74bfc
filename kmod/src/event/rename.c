// SPDX-License-Identifier: GPL-2.0-only
/*
 * rename*, link* -> RenameFrom/Rename2From, RenameTo, LinkFrom/LinkatFrom, LinkTo and the failed
 * forms; symlink* -> Symlink. The names are those of the dentries that the kernel hands to its
 * security hooks, so nothing is looked up twice; names of a call that fails before the hook, or
 * whose hook could not be probed, are found in task_work, and so is the target of a symlink.
 * Context: kprobes (atomic, the directories are locked), sys_exit (atomic), task_work.
 */
#include <linux/fcntl.h>
#include <linux/slab.h>

#include "event/call.h"
#include "event/handlers.h"
#include "event/names.h"
#include "event/path.h"
#include "record/emit.h"
#include "task/deferred.h"

/* ---- rename, link ---- */

/* Source and destination are on one mount: the calls fail otherwise, before the hooks. */
static void keep_pair(struct etrace_task *entry, struct vfsmount *mnt, struct dentry *from,
		      struct dentry *to)
{
	struct etrace_scratch *space = etrace_scratch_get();
	struct etrace_text texts[3] = {};

	texts[0] = etrace_dentry_text(mnt, from, space->path, sizeof(space->path));
	texts[1] = etrace_dentry_text(mnt, to, space->third, sizeof(space->third));
	if (texts[0].text && texts[1].text)
		etrace_names_keep(entry, etrace_call_kind(task_pt_regs(current)), texts);
	etrace_scratch_put(space);
	entry->hooked = true;
}

int etrace_on_path_rename(struct kprobe *probe, struct pt_regs *regs)
{
	const struct path *old_dir = (const struct path *)regs_get_kernel_argument(regs, 0);
	struct dentry *old_dentry = (struct dentry *)regs_get_kernel_argument(regs, 1);
	struct dentry *new_dentry = (struct dentry *)regs_get_kernel_argument(regs, 3);
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_in_call(ETRACE_CALL_RENAME, ETRACE_CALL_RENAMEAT2);
	if (entry)
		keep_pair(entry, old_dir->mnt, old_dentry, new_dentry);
	rcu_read_unlock();
	return 0;
}

int etrace_on_path_link(struct kprobe *probe, struct pt_regs *regs)
{
	struct dentry *old_dentry = (struct dentry *)regs_get_kernel_argument(regs, 0);
	const struct path *new_dir = (const struct path *)regs_get_kernel_argument(regs, 1);
	struct dentry *new_dentry = (struct dentry *)regs_get_kernel_argument(regs, 2);
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_in_call(ETRACE_CALL_LINK, ETRACE_CALL_LINKAT);
	if (entry)
		keep_pair(entry, new_dir->mnt, old_dentry, new_dentry);
	rcu_read_unlock();
	return 0;
}

static const struct {
	u8 from;
	u8 to;
	u8 failed;
} pair_events[ETRACE_N_CALLS] = {
	[ETRACE_CALL_RENAME] = { ETRACE_EV_RENAME_FROM, ETRACE_EV_RENAME_TO,
				 ETRACE_EV_RENAME_FAILED },
	[ETRACE_CALL_RENAMEAT] = { ETRACE_EV_RENAME_FROM, ETRACE_EV_RENAME_TO,
				   ETRACE_EV_RENAME_FAILED },
	[ETRACE_CALL_RENAMEAT2] = { ETRACE_EV_RENAME2FROM, ETRACE_EV_RENAME_TO,
				    ETRACE_EV_RENAME_FAILED },
	[ETRACE_CALL_LINK] = { ETRACE_EV_LINK_FROM, ETRACE_EV_LINK_TO, ETRACE_EV_LINK_FAILED },
	[ETRACE_CALL_LINKAT] = { ETRACE_EV_LINKAT_FROM, ETRACE_EV_LINK_TO, ETRACE_EV_LINK_FAILED },
};

/* Source and destination, or source and failure, or failure alone. */
static void put_pair(struct etrace_task *entry, const struct etrace_call *call, u64 time_ns,
		     const struct etrace_text *texts, struct etrace_stream *stream)
{
	s64 flags = (u32)call->args[4]; /* of renameat2 and linkat, the only events to print them */

	if (call->result == 0 && !(texts[0].text && texts[1].text)) {
		etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
		return;
	}
	etrace_stream_begin(stream, &entry->origin, time_ns);
	if (texts[0].text)
		etrace_stream_event(stream, pair_events[call->kind].from, &flags, &texts[0]);
	if (call->result == 0)
		etrace_stream_event(stream, pair_events[call->kind].to, NULL, &texts[1]);
	else
		etrace_stream_event(stream, pair_events[call->kind].failed, NULL, NULL);
	etrace_stream_end(stream);
}

static enum etrace_hook hook_of(const struct etrace_call *call)
{
	return call->kind <= ETRACE_CALL_RENAMEAT2 ? ETRACE_HOOK_RENAME : ETRACE_HOOK_LINK;
}

static void exit_pair(struct etrace_task *entry, const struct etrace_call *call)
{
	struct etrace_names *names = etrace_names_take(entry, call->kind);
	struct etrace_scratch *space;

	if (etrace_call_restarts(call->result)) {
		kfree(names);
		return;
	}
	if (!names) {
		if (call->result || etrace_was_made(entry, hook_of(call)))
			etrace_defer(entry, call, &etrace_pair);
		return;
	}
	space = etrace_scratch_get();
	put_pair(entry, call, etrace_now(), names->text, &space->stream);
	etrace_scratch_put(space);
	kfree(names);
}

static bool follows_source(const struct etrace_call *call)
{
	return call->kind == ETRACE_CALL_LINKAT && call->args[4] & AT_SYMLINK_FOLLOW;
}

static void work_pair(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space)
{
	bool at = call->kind != ETRACE_CALL_RENAME && call->kind != ETRACE_CALL_LINK;
	const u64 *args = call->args;
	int from_dir = at ? (int)args[0] : AT_FDCWD;
	int to_dir = at ? (int)args[2] : AT_FDCWD;
	bool follow = follows_source(call);
	struct etrace_text texts[3] = {};

	if (call->result == 0) {
		texts[0] = etrace_find_name(from_dir, args[at], follow, space->other, space->path);
		texts[1] = etrace_find_made(entry, to_dir, args[at ? 3 : 1], space->other,
					    space->third);
	} else {
		texts[0] = etrace_resolve(from_dir, args[at], follow, false, space->other,
					  space->path);
	}
	put_pair(entry, call, call->time_ns, texts, &space->stream);
}

const struct etrace_handler etrace_pair = { .exit = exit_pair, .work = work_pair };

/* ---- symlink ---- */

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
	len = etrace_user_string_later(string, call->args[0]);
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
