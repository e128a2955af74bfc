// SPDX-License-Identifier: Apache-2.0
/*
 * rename*, link*, symlink*, mounts -> RenameFrom/Rename2From, RenameTo, LinkFrom/LinkatFrom, LinkTo,
 * Symlink and the failed forms. Names are read and resolved at the entry, since a rename leaves none of
 * them unchanged and a program may change the strings meanwhile. The last component is kept: these calls do not follow it.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>

#include "capture/options.h"
#include "event/event.h"
#include "task/lookup.h"
#include "task/memory.h"
#include "task/path.h"

static char *keep(const char *text, size_t len)
{
	char *copy = must_alloc(len + 1);

	memcpy(copy, text, len + 1);
	return copy;
}

/* Absent for NULL. */
static struct etrace_text text_of(const char *string)
{
	return (struct etrace_text){ string, string ? strlen(string) : 0 };
}

/* Read a path argument and make it absolute. */
static bool read_name(struct task *task, int dirfd, u64 address, struct path *path, bool *is_empty)
{
	char text[PATH_MAX];
	ssize_t len = memory_read_path(task, address, text);

	*is_empty = !len;
	if (len < 0)
		return false;
	if (path_join(task, dirfd, text, (size_t)len, path))
		return true;
	task->names.is_unresolved = true;
	return false;
}

static char *destination(struct task *task, int dirfd, u64 address)
{
	struct path path;
	bool is_empty;

	if (!read_name(task, dirfd, address, &path, &is_empty))
		return NULL;
	resolve_directories(task, &path);
	return keep(path.text, path.len);
}

/* What the source of a call is. */
enum source { ENTRY, FOLLOWED_NAME, ENTRY_OR_DESCRIPTOR };

/* The file of a descriptor has perhaps no name that leads to it. */
static void find_source(struct task *task, int dirfd, u64 address, enum source source)
{
	struct names *names = &task->names;
	bool follow = source == FOLLOWED_NAME;
	struct path path;
	struct stat st;
	bool is_empty;

	if (!read_name(task, dirfd, address, &path, &is_empty))
		return;
	if (is_empty) {
		names->from_exists = source != ENTRY;
	} else if (follow ? resolve_whole(task, &path) : resolve_directories(task, &path)) {
		names->from_exists = stat_in_task(task, &path, AT_SYMLINK_NOFOLLOW, &st) || follow;
		names->from_is_directory = names->from_exists && !follow && S_ISDIR(st.st_mode);
	} else { /* or this tracer may not look it up: the name stays as it was given */
		names->from_is_directory = true;
	}
	names->from = keep(path.text, path.len);
}

static void put_name(struct task *task, u64 now, enum etrace_event event, s64 flags,
		     const char *name)
{
	struct etrace_text data = text_of(name);

	event_put_at(task, now, event, &flags, &data);
}

static bool enter_rename(struct task *task)
{
	const u64 *args = task->args;

	names_clear(&task->names);
	if (task->call == CALL_RENAME) {
		find_source(task, AT_FDCWD, args[0], ENTRY);
		task->names.to = destination(task, AT_FDCWD, args[1]);
	} else {
		find_source(task, (int)args[0], args[1], ENTRY);
		task->names.to = destination(task, (int)args[2], args[3]);
	}
	return true;
}

static bool enter_link(struct task *task)
{
	const u64 *args = task->args;
	enum source source = ENTRY;

	names_clear(&task->names);
	if (task->call == CALL_LINK) {
		find_source(task, AT_FDCWD, args[0], ENTRY);
		task->names.to = destination(task, AT_FDCWD, args[1]);
	} else {
		if (args[4] & AT_SYMLINK_FOLLOW)
			source = FOLLOWED_NAME;
		else if (args[4] & AT_EMPTY_PATH)
			source = ENTRY_OR_DESCRIPTOR;
		find_source(task, (int)args[0], args[1], source);
		task->names.to = destination(task, (int)args[2], args[3]);
	}
	return true;
}

/* A call was made, but its names are not known. */
static void count_unknown(const struct names *names)
{
	if (names->is_unresolved)
		counters.unresolved_paths++;
	else
		counters.unread_strings++;
}

/* Source and destination, or source and failure, or failure alone. */
static void put_names(struct task *task, s64 result, enum etrace_event from, enum etrace_event to,
		      enum etrace_event failed)
{
	struct names *names = &task->names;
	bool done = result == 0 && names->from && names->to;
	u64 now = monotonic_ns();

	if (result == 0 && !done) {
		count_unknown(names);
		return;
	}
	if (names->from && (names->from_exists || done))
		put_name(task, now, from, (u32)task->args[4], names->from);
	if (done)
		put_name(task, now, to, 0, names->to);
	else
		event_put_at(task, now, failed, NULL, NULL);
}

/* The other name may be that of a directory. */
static bool exchanges(const struct task *task)
{
	return task->call == CALL_RENAMEAT2 && task->args[4] & RENAME_EXCHANGE;
}

static void exit_rename(struct task *task, s64 result)
{
	put_names(task, result,
		  task->call == CALL_RENAMEAT2 ? ETRACE_EV_RENAME2FROM : ETRACE_EV_RENAME_FROM,
		  ETRACE_EV_RENAME_TO, ETRACE_EV_RENAME_FAILED);
	if (result == 0 && (task->names.from_is_directory || exchanges(task)))
		path_invalidate_all();
	names_clear(&task->names);
}

static void exit_link(struct task *task, s64 result)
{
	put_names(task, result,
		  task->call == CALL_LINKAT ? ETRACE_EV_LINKAT_FROM : ETRACE_EV_LINK_FROM,
		  ETRACE_EV_LINK_TO, ETRACE_EV_LINK_FAILED);
	names_clear(&task->names);
}

const struct syscall_handler rename_handler = { enter_rename, exit_rename, true };
const struct syscall_handler link_handler = { enter_link, exit_link, true };

static char *read_string(struct task *task, u64 address)
{
	char text[PATH_MAX];
	ssize_t len = address ? memory_read_path(task, address, text) : -1;

	return len < 0 ? NULL : keep(text, (size_t)len);
}

static bool enter_symlink(struct task *task)
{
	struct names *names = &task->names;
	const u64 *args = task->args;
	bool at = task->call == CALL_SYMLINKAT;

	names_clear(names);
	names->from = read_string(task, args[0]);
	names->to = destination(task, at ? (int)args[1] : AT_FDCWD, args[at ? 2 : 1]);
	return true;
}

static void exit_symlink(struct task *task, s64 result)
{
	struct names *names = &task->names;
	struct etrace_text data[3] = { text_of(names->from), { NULL, 0 }, text_of(names->to) };
	struct path resolved;

	if (result == 0 && names->from && names->to) {
		path_set(&resolved, names->to, strlen(names->to));
		if (resolve_whole(task, &resolved))
			data[1] = path_text(&resolved);
		if (lookup_is_pending(task))
			return;
		event_put(task, ETRACE_EV_SYMLINK, NULL, data);
	} else if (result == 0) {
		count_unknown(names);
	}
	names_clear(names);
}

const struct syscall_handler symlink_handler = { enter_symlink, exit_symlink, true };

/* ---- mounts ---- */

/*
 * mount, umount, umount2 -> Mount, Umount and their failed forms; only with --mounts. The mount
 * point is resolved at the entry. The newer fsopen() family has no event.
 */

static char *mount_point(struct task *task, u64 address, bool *exists)
{
	struct path path;
	bool is_empty;

	*exists = false;
	if (!read_name(task, AT_FDCWD, address, &path, &is_empty))
		return NULL;
	*exists = resolve_whole(task, &path);
	return keep(path.text, path.len);
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

	data[0] = text_of(names->from);
	data[1] = text_of(names->to ? names->to : "");
	data[2] = text_of(names->type);
	event_put_at(task, now, ETRACE_EV_MOUNT, &flags, data);
	if (result < 0)
		event_put_at(task, now, ETRACE_EV_MOUNT_FAILED, NULL, NULL);
	else
		path_invalidate_all();
	names_clear(names);
}

const struct syscall_handler mount_handler = { enter_mount, exit_mount, true };

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
	struct etrace_text target = text_of(names->to);

	if (names->to && (names->from_exists || result == 0))
		event_put_at(task, now, ETRACE_EV_UMOUNT, &flags, &target);
	if (result < 0)
		event_put_at(task, now, ETRACE_EV_UMOUNT_FAILED, NULL, NULL);
	else
		path_invalidate_all();
	names_clear(names);
}

const struct syscall_handler umount_handler = { enter_umount, exit_umount, true };
