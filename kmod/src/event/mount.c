// SPDX-License-Identifier: GPL-2.0-only
/*
 * mount, umount, umount2 -> Mount, Umount and their failed forms, with the option for mounts. The
 * strings are those that the kernel hands to its security hooks; a call that fails before the hook
 * is found in task_work. The newer calls (fsopen, move_mount) have no event: they are counted.
 * Context: kprobes and sys_exit (atomic), task_work.
 */
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/slab.h>

#include "event/call.h"
#include "event/handlers.h"
#include "event/names.h"
#include "event/path.h"
#include "record/emit.h"
#include "task/deferred.h"

static void keep_mount(struct etrace_task *entry, const struct path *target, const char *source,
		       const char *type)
{
	struct etrace_scratch *space = etrace_scratch_get();
	struct etrace_text texts[3] = { etrace_text_of(source) };

	texts[1] = etrace_path_text(target, space->path, sizeof(space->path));
	texts[2] = etrace_text_of(type);
	if (texts[1].text)
		etrace_names_keep(entry, etrace_call_kind(task_pt_regs(current)), texts);
	etrace_scratch_put(space);
	entry->hooked = true;
}

int etrace_on_sb_mount(struct kprobe *probe, struct pt_regs *regs)
{
	const char *source = (const char *)regs_get_kernel_argument(regs, 0);
	const struct path *target = (const struct path *)regs_get_kernel_argument(regs, 1);
	const char *type = (const char *)regs_get_kernel_argument(regs, 2);
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_in_call(ETRACE_CALL_MOUNT, ETRACE_CALL_MOUNT);
	if (entry)
		keep_mount(entry, target, source, type);
	rcu_read_unlock();
	return 0;
}

int etrace_on_sb_umount(struct kprobe *probe, struct pt_regs *regs)
{
	struct vfsmount *mnt = (struct vfsmount *)regs_get_kernel_argument(regs, 0);
	struct path target = { .mnt = mnt, .dentry = mnt->mnt_root };
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_in_call(ETRACE_CALL_OLDUMOUNT, ETRACE_CALL_UMOUNT2);
	if (entry)
		keep_mount(entry, &target, NULL, NULL);
	rcu_read_unlock();
	return 0;
}

static void put_mount(struct etrace_task *entry, const struct etrace_call *call, u64 time_ns,
		      const struct etrace_text *texts, struct etrace_stream *stream)
{
	s64 flags = call->args[3];

	etrace_stream_begin(stream, &entry->origin, time_ns);
	etrace_stream_event(stream, ETRACE_EV_MOUNT, &flags, texts);
	if (call->result < 0)
		etrace_stream_event(stream, ETRACE_EV_MOUNT_FAILED, NULL, NULL);
	etrace_stream_end(stream);
}

static enum etrace_hook hook_of(const struct etrace_call *call)
{
	return call->kind == ETRACE_CALL_MOUNT ? ETRACE_HOOK_MOUNT : ETRACE_HOOK_UMOUNT;
}

/* Both kinds of call: with the hook's data, or later when the hook was not reached. */
static void exit_call(struct etrace_task *entry, const struct etrace_call *call,
		      const struct etrace_handler *handler,
		      void (*put)(struct etrace_task *entry, const struct etrace_call *call,
				  u64 time_ns, const struct etrace_text *texts,
				  struct etrace_stream *stream))
{
	struct etrace_names *names;
	struct etrace_scratch *space;

	if (!(etrace_options & ETRACE_OPTION_MOUNTS) || etrace_call_restarts(call->result))
		return;
	names = etrace_names_take(entry, call->kind);
	if (!names) {
		if (call->result || etrace_was_made(entry, hook_of(call)))
			etrace_defer(entry, call, handler);
		return;
	}
	space = etrace_scratch_get();
	put(entry, call, etrace_now(), names->text, &space->stream);
	etrace_scratch_put(space);
	kfree(names);
}

static void exit_mount(struct etrace_task *entry, const struct etrace_call *call)
{
	exit_call(entry, call, &etrace_mount, put_mount);
}

static struct etrace_text read_string(u64 address, char *buf)
{
	long len = address ? etrace_user_string_later(buf, address) : -EFAULT;

	return len < 0 ? (struct etrace_text){ NULL, 0 } : (struct etrace_text){ buf, len };
}

/* Mount points that are not there are in the line as they were given. */
static struct etrace_text mount_point(u64 address, struct etrace_scratch *space)
{
	struct etrace_text text = etrace_resolve(AT_FDCWD, address, true, false,
						 space->other, space->path);

	if (text.text)
		return text;
	text = etrace_given_path(AT_FDCWD, address, space->other, space->path);
	return text.text ? text : etrace_text_of("");
}

static void work_mount(struct etrace_task *entry, const struct etrace_call *call,
		       struct etrace_scratch *space)
{
	struct etrace_text texts[3];

	texts[1] = mount_point(call->args[1], space);
	texts[0] = read_string(call->args[0], space->third);
	texts[2] = read_string(call->args[2], space->other);
	put_mount(entry, call, call->time_ns, texts, &space->stream);
}

static void put_umount(struct etrace_task *entry, const struct etrace_call *call, u64 time_ns,
		       const struct etrace_text *texts, struct etrace_stream *stream)
{
	const struct etrace_text *target = &texts[1]; /* the place that it has in a Mount */
	s64 flags = call->kind == ETRACE_CALL_OLDUMOUNT ? 0 : (u32)call->args[1];

	if (call->result == 0 && !target->text) {
		etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
		return;
	}
	etrace_stream_begin(stream, &entry->origin, time_ns);
	if (target->text)
		etrace_stream_event(stream, ETRACE_EV_UMOUNT, &flags, target);
	if (call->result < 0)
		etrace_stream_event(stream, ETRACE_EV_UMOUNT_FAILED, NULL, NULL);
	etrace_stream_end(stream);
}

static void exit_umount(struct etrace_task *entry, const struct etrace_call *call)
{
	exit_call(entry, call, &etrace_umount, put_umount);
}

static void work_umount(struct etrace_task *entry, const struct etrace_call *call,
			struct etrace_scratch *space)
{
	bool keep = call->kind == ETRACE_CALL_UMOUNT2 && call->args[1] & UMOUNT_NOFOLLOW;
	struct etrace_text texts[2] = {};

	texts[1] = etrace_resolve(AT_FDCWD, call->args[0], !keep, false,
				  space->other, space->path);
	put_umount(entry, call, call->time_ns, texts, &space->stream);
}

const struct etrace_handler etrace_mount = { .exit = exit_mount, .work = work_mount };
const struct etrace_handler etrace_umount = { .exit = exit_umount, .work = work_umount };
