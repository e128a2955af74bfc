// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names given by a task -> their files, as far as they are in memory (walk.c); names of the calls
 * that rename, link and mount: those that a security hook of the kernel saw, kept until the call
 * ends, or else those that are found afterwards. Context: kprobes and sys_exit (atomic); task_work
 * for finding.
 */
#include <linux/fcntl.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "event/call.h"
#include "event/names.h"
#include "event/path.h"

/* ---- resolving ---- */

/* Where such a link leads is where the kernel has gone: only the file itself says. */
bool etrace_is_proc_name(const char *name)
{
	static const char *const directories[] = {
		"/proc/self/", "/proc/self/fd/", ETRACE_FD_DIRECTORY,
	};
	unsigned int i;
	size_t len;

	if (strncmp(name, "/proc/", strlen("/proc/")) && strncmp(name, "/dev/", strlen("/dev/")))
		return false;
	len = kbasename(name) - name;
	for (i = 0; i < ARRAY_SIZE(directories); i++)
		if (len == strlen(directories[i]) && !memcmp(name, directories[i], len))
			return true;
	return false;
}

struct etrace_text etrace_descriptor_name(const char *name, char *buf)
{
	struct etrace_text text = { NULL, 0 };
	struct etrace_file file;
	unsigned int fd;

	if (!etrace_is_proc_name(name) || kstrtouint(kbasename(name), 10, &fd))
		return text;
	file = etrace_file_get((int)fd);
	if (file.file)
		text = etrace_path_text(&file.file->f_path, buf, ETRACE_PATH_BYTES);
	etrace_file_put(file);
	return text;
}

/* The directory of `name`, followed, with the last component after it. */
static struct etrace_text follow_parent(char *name, char *buf)
{
	char *slash = strrchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	struct etrace_text dir;

	if (slash > name)
		*slash = '\0';
	dir = etrace_walk_text(!slash ? "." : slash == name ? "/" : name, true, buf);
	return dir.text ? etrace_join(dir, last, strlen(last), buf) : dir;
}

/* Calls that do not follow a last component also take one with slashes at its end. */
static void strip_slashes(char *name, size_t len)
{
	while (len > 1 && name[len - 1] == '/')
		name[--len] = '\0';
}

struct etrace_text etrace_resolve(int dirfd, u64 address, bool follow, bool or_new, char *scratch,
				  char *buf)
{
	char *name = scratch + PATH_MAX;
	long len = etrace_user_string_later(name, address);
	struct etrace_text text = { name, len };

	if (len < 0)
		return (struct etrace_text){ NULL, 0 };
	strip_slashes(name, len);
	text.len = strlen(name);
	/* below the working directory the kernel looks by itself, however long its path is */
	if (name[0] != '/' && (dirfd != AT_FDCWD || !text.len)) {
		bool is_directory = !text.len; /* the file of the descriptor, AT_EMPTY_PATH */

		if (etrace_put_directory(dirfd, scratch, &text))
			return (struct etrace_text){ NULL, 0 };
		name = scratch + (text.text - scratch);
		if (is_directory) {
			memmove(buf, text.text, text.len);
			buf[text.len] = '\0';
			return (struct etrace_text){ buf, text.len };
		}
	}
	if (or_new && !follow) /* the name itself may be gone or new */
		return follow_parent(name, buf);
	text = follow ? etrace_descriptor_name(name, buf) : (struct etrace_text){ NULL, 0 };
	if (!text.text)
		text = etrace_walk_text(name, follow, buf);
	if (!text.text && or_new)
		text = follow_parent(name, buf);
	return text;
}

/* ---- names of calls ---- */

u32 etrace_firing_hooks;

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

bool etrace_was_made(const struct etrace_task *entry, enum etrace_hook hook)
{
	return entry->hooked || !etrace_may_be_made_up() ||
	       !(READ_ONCE(etrace_firing_hooks) & hook);
}

struct etrace_text etrace_find_name(int dirfd, u64 address, bool follow, char *scratch, char *buf)
{
	struct etrace_text text = etrace_resolve(dirfd, address, follow, true, scratch, buf);

	return text.text ? text : etrace_given_path(dirfd, address, scratch, buf);
}

/* No hook has seen the call: it is made up when no such name is there. */
struct etrace_text etrace_find_made(const struct etrace_task *entry, int dirfd, u64 address,
				    char *scratch, char *buf)
{
	if (entry->hooked || !etrace_may_be_made_up())
		return etrace_find_name(dirfd, address, false, scratch, buf);
	return etrace_resolve(dirfd, address, false, false, scratch, buf);
}
