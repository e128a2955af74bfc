// SPDX-License-Identifier: GPL-2.0-only
/*
 * rename*, link*, symlink* -> RenameFrom/Rename2From, RenameTo, LinkFrom/LinkatFrom, LinkTo,
 * Symlink and the failed forms. The names are those of the dentries that the kernel hands to its
 * security hooks, so nothing is looked up twice; names of a call that fails before the hook, or
 * whose hook could not be probed, are found in task_work (walk.c). Context: kprobes (atomic, the
 * directories are locked), sys_exit (atomic), task_work.
 */
#include <linux/fcntl.h>
#include <linux/slab.h>

#include "hooks.h"

/* ---- what a hook saw, kept until the call ends ---- */

void etrace_names_keep(struct etrace_task *entry, enum etrace_call_kind kind,
		       const struct etrace_text *texts)
{
	struct etrace_names *names;
	size_t bytes = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names->text); i++)
		bytes += texts[i].len;
	names = kmalloc(struct_size(names, bytes, bytes), GFP_ATOMIC | __GFP_NOWARN);
	if (!names) /* its end looks the names up instead */
		return;
	names->kind = kind;
	bytes = 0;
	for (i = 0; i < ARRAY_SIZE(names->text); i++) {
		char *copy = names->bytes + bytes;

		memcpy(copy, texts[i].text, texts[i].len);
		names->text[i] = (struct etrace_text){ texts[i].text ? copy : NULL, texts[i].len };
		bytes += texts[i].len;
	}
	etrace_names_free(entry); /* of a call begun again */
	entry->names = names;
}

struct etrace_names *etrace_names_take(struct etrace_task *entry, enum etrace_call_kind kind)
{
	struct etrace_names *names = entry->names;

	entry->names = NULL;
	if (names)
		entry->hooked = false;
	if (!names || names->kind == kind)
		return names;
	kfree(names);
	return NULL;
}

void etrace_names_free(struct etrace_task *entry)
{
	kfree(entry->names);
	entry->names = NULL;
	entry->hooked = false;
}

bool etrace_was_made(const struct etrace_task *entry, const char *symbol)
{
	return entry->hooked || !etrace_may_be_made_up() || !etrace_hooks_fire(symbol);
}

static struct etrace_text dentry_text(struct vfsmount *mnt, struct dentry *dentry, char *buf,
				      size_t size)
{
	struct path path = { .mnt = mnt, .dentry = dentry };

	return etrace_path_text(&path, buf, size);
}

/* Source and destination lie on one mount: the calls fail otherwise, before the hooks. */
static void keep_pair(struct etrace_task *entry, struct vfsmount *mnt, struct dentry *from,
		      struct dentry *to)
{
	struct etrace_scratch *space = etrace_scratch_get();
	struct etrace_text texts[3] = {};

	texts[0] = dentry_text(mnt, from, space->path, sizeof(space->path));
	texts[1] = dentry_text(mnt, to, space->third, sizeof(space->third));
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

static void keep_symlink(struct etrace_task *entry, const struct path *dir, struct dentry *dentry,
			 const char *target)
{
	struct etrace_scratch *space = etrace_scratch_get();
	struct etrace_text texts[3] = { etrace_text_of(target) };

	texts[1] = dentry_text(dir->mnt, dentry, space->path, sizeof(space->path));
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

/* ---- rename and link ---- */

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
	etrace_stream_begin(stream, entry, time_ns);
	if (texts[0].text)
		etrace_stream_event(stream, pair_events[call->kind].from, &flags, &texts[0]);
	if (call->result == 0)
		etrace_stream_event(stream, pair_events[call->kind].to, NULL, &texts[1]);
	else
		etrace_stream_event(stream, pair_events[call->kind].failed, NULL, NULL);
	etrace_stream_end(stream);
}

static const char *hook_of(const struct etrace_call *call)
{
	return call->kind <= ETRACE_CALL_RENAMEAT2 ? "security_path_rename" : "security_path_link";
}

void etrace_exit_pair(struct etrace_task *entry, const struct etrace_call *call)
{
	struct etrace_names *names = etrace_names_take(entry, call->kind);
	struct etrace_scratch *space;

	if (etrace_call_restarts(call->result)) {
		kfree(names);
		return;
	}
	if (!names) {
		if (call->result || etrace_was_made(entry, hook_of(call)))
			etrace_defer(entry, call);
		return;
	}
	space = etrace_scratch_get();
	put_pair(entry, call, etrace_now(), names->text, &space->stream);
	etrace_scratch_put(space);
	kfree(names);
}

/* A name of a call that has succeeded: as given, where its path is longer than any can be. */
static struct etrace_text find_name(int dirfd, u64 address, bool follow, char *scratch, char *buf)
{
	struct etrace_text text = etrace_resolve(dirfd, address, follow, true, scratch, buf);

	return text.text ? text : etrace_given_path(dirfd, address, scratch, buf);
}

/* The name that a call has made. No hook has seen the call: it is made up when none is there. */
static struct etrace_text find_made(const struct etrace_task *entry, int dirfd, u64 address,
				    char *scratch, char *buf)
{
	if (entry->hooked || !etrace_may_be_made_up())
		return find_name(dirfd, address, false, scratch, buf);
	return etrace_resolve(dirfd, address, false, false, scratch, buf);
}

static bool follows_source(const struct etrace_call *call)
{
	return call->kind == ETRACE_CALL_LINKAT && call->args[4] & AT_SYMLINK_FOLLOW;
}

void etrace_work_pair(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space)
{
	bool at = call->kind != ETRACE_CALL_RENAME && call->kind != ETRACE_CALL_LINK;
	const u64 *args = call->args;
	int from_dir = at ? (int)args[0] : AT_FDCWD;
	int to_dir = at ? (int)args[2] : AT_FDCWD;
	bool follow = follows_source(call);
	struct etrace_text texts[3] = {};

	if (call->result == 0) {
		texts[0] = find_name(from_dir, args[at], follow, space->other, space->path);
		texts[1] = find_made(entry, to_dir, args[at ? 3 : 1], space->other, space->third);
	} else {
		texts[0] = etrace_resolve(from_dir, args[at], follow, false, space->other,
					  space->path);
	}
	put_pair(entry, call, call->time_ns, texts, &space->stream);
}

/* ---- symlink ---- */

/* Where the target leads may take memory and time: always in task_work. */
void etrace_exit_symlink(struct etrace_task *entry, const struct etrace_call *call)
{
	if (call->result)
		etrace_names_free(entry);
	else if (etrace_was_made(entry, "security_path_symlink"))
		etrace_defer(entry, call);
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

	etrace_emit(entry, call->time_ns, ETRACE_EV_SYMLINK, NULL, data);
}

/* No hook saw the call: the strings are read again, from the task's memory. */
static void put_missed_symlink(struct etrace_task *entry, const struct etrace_call *call,
			       struct etrace_scratch *space)
{
	bool at = call->kind == ETRACE_CALL_SYMLINKAT;
	char *string = space->other + PATH_MAX;
	struct etrace_text target, link;
	long len;

	link = find_made(entry, at ? (int)call->args[1] : AT_FDCWD, call->args[at ? 2 : 1],
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

void etrace_work_symlink(struct etrace_task *entry, const struct etrace_call *call,
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
