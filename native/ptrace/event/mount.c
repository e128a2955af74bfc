// SPDX-License-Identifier: Apache-2.0
/*
 * mount, umount, umount2 -> Mount, Umount and their failed forms; only with --mounts. The mount
 * point is resolved at the entry. The newer fsopen() family has no event.
 */
#include <fcntl.h>
#include <string.h>

#include "event/syscall.h"
#include "task/memory.h"
#include "task/resolve.h"
#include "tracer.h"

static char *read_string(struct task *task, u64 address)
{
	char text[PATH_MAX];
	ssize_t len = address ? memory_read_path(task, address, text) : -1;
	char *copy;

	if (len < 0)
		return NULL;
	copy = must_alloc((size_t)len + 1);
	memcpy(copy, text, (size_t)len + 1);
	return copy;
}

static char *mount_point(struct task *task, u64 address, bool *exists)
{
	char text[PATH_MAX];
	ssize_t len = memory_read_path(task, address, text);
	struct path path;
	char *copy;

	*exists = false;
	if (len < 0 || !path_join(task, AT_FDCWD, text, (size_t)len, &path))
		return NULL;
	*exists = resolve_whole(task, &path);
	copy = must_alloc(path.len + 1);
	memcpy(copy, path.text, path.len + 1);
	return copy;
}

static struct etrace_text text_or_absent(const char *string)
{
	return (struct etrace_text){ string, string ? strlen(string) : 0 };
}

static bool enter_mount(struct task *task)
{
	struct names *names = &task->names;
	bool exists;

	names_clear(names);
	names->from = read_string(task, task->args[0]);
	names->to = mount_point(task, task->args[1], &exists);
	names->type = read_string(task, task->args[2]);
	return true;
}

static void exit_mount(struct task *task, s64 result)
{
	struct names *names = &task->names;
	struct etrace_text data[3];
	s64 flags = (s64)task->args[3];
	u64 now = monotonic_ns();

	data[0] = text_or_absent(names->from);
	data[1] = text_or_absent(names->to ? names->to : "");
	data[2] = text_or_absent(names->type);
	event_put_at(task, now, ETRACE_EV_MOUNT, &flags, data);
	if (result < 0)
		event_put_at(task, now, ETRACE_EV_MOUNT_FAILED, NULL, NULL);
	else
		path_invalidate_all();
	names_clear(names);
}

const struct syscall_handler mount_handler = { .enter = enter_mount, .exit = exit_mount };

static bool enter_umount(struct task *task)
{
	struct names *names = &task->names;

	names_clear(names);
	names->to = mount_point(task, task->args[0], &names->from_exists);
	return true;
}

static void exit_umount(struct task *task, s64 result)
{
	struct names *names = &task->names;
	s64 flags = task->call == CALL_OLDUMOUNT ? 0 : (u32)task->args[1];
	u64 now = monotonic_ns();
	struct etrace_text target = text_or_absent(names->to);

	if (names->to && (names->from_exists || result == 0))
		event_put_at(task, now, ETRACE_EV_UMOUNT, &flags, &target);
	if (result < 0)
		event_put_at(task, now, ETRACE_EV_UMOUNT_FAILED, NULL, NULL);
	else
		path_invalidate_all();
	names_clear(names);
}

const struct syscall_handler umount_handler = { .enter = enter_umount, .exit = exit_umount };
