// SPDX-License-Identifier: GPL-2.0-only
/*
 * PI and PP of an execution: the names under which a program was asked for and found, directories
 * resolved, the last symlink kept (compilers look at it: ccache, clang++, busybox). Links of /proc
 * and /dev/fd name nothing that lasts: what they lead to stands instead. A name is believed only if
 * it leads to the very file that the kernel loaded, as far as memory tells (walk.c). Context:
 * task_work, sleeps.
 */
#include <linux/fcntl.h>
#include <linux/magic.h>

#include "hooks.h"

#define FD_DIRECTORY "/dev/fd/" /* with a descriptor: what execveat puts before its name */

static bool is_proc_link(const struct dentry *dentry)
{
	return dentry->d_sb->s_magic == PROC_SUPER_MAGIC;
}

static bool is_file(const struct path *path, const struct file *file)
{
	return !file || d_inode(path->dentry) == file_inode(file);
}

/*
 * A symlink that `name` ends with: false when it is one of /proc, or known not to lead to `file`.
 * The kernel has followed it a moment ago, but not all file systems keep what their links say.
 */
static bool check_link(const char *name, const struct file *file, const struct dentry *link,
		       char *buf)
{
	struct path target;
	bool ok;
	int err;

	if (is_proc_link(link))
		return false;
	err = etrace_walk(name, true, buf, &target);
	if (err)
		return err == -EAGAIN;
	ok = is_file(&target, file);
	path_put(&target);
	return ok;
}

/* The name made absolute by putting the working directory before it; as it is when too long. */
static struct etrace_text given_name(const char *name, char *buf)
{
	size_t len = strlen(name);
	struct etrace_text cwd;

	if (name[0] == '/')
		return etrace_text_of(name);
	cwd = etrace_cwd_text(buf, ETRACE_PATH_BYTES);
	if (cwd.len == 1) /* the root directory */
		cwd.len = 0;
	if (cwd.len + 1 + len >= ETRACE_PATH_BYTES)
		return etrace_text_of(name);
	memmove(buf, cwd.text, cwd.len);
	buf[cwd.len] = '/';
	memcpy(buf + cwd.len + 1, name, len + 1);
	return (struct etrace_text){ buf, cwd.len + 1 + len };
}

/* Of what is not in memory. Names in /proc go through links that name nothing that lasts. */
static struct etrace_text unknown_name(const char *name, char *buf)
{
	if (!strncmp(name, "/proc/", strlen("/proc/")))
		return (struct etrace_text){ NULL, 0 };
	return given_name(name, buf);
}

/*
 * Where `name` leads, a symlink at its end kept; as given where the way is not in memory. Absent
 * when it leads nowhere, or not to `file` where that is given.
 */
static struct etrace_text find(const char *name, const struct file *file, char *buf)
{
	struct etrace_text text = { NULL, 0 };
	struct path path;
	int err = etrace_walk(name, false, buf, &path);
	bool ok;

	if (err)
		return err == -EAGAIN ? unknown_name(name, buf) : text;
	if (d_is_symlink(path.dentry))
		ok = check_link(name, file, path.dentry, buf);
	else
		ok = is_file(&path, file);
	if (ok)
		text = etrace_path_text(&path, buf, ETRACE_PATH_BYTES);
	path_put(&path);
	return text;
}

/* Where such a link leads is where the kernel has gone: the file itself tells. */
static bool is_proc_name(const char *name)
{
	static const char *const directories[] = { "/proc/self/", "/proc/self/fd/", FD_DIRECTORY };
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

/* The file may be renamed meanwhile: its old name lasts as long as the lock. */
static bool may_be_path_of(const char *name, const struct file *file)
{
	bool same;

	rcu_read_lock();
	same = !strcmp(kbasename(name),
		       (const char *)READ_ONCE(file->f_path.dentry->d_name.name));
	rcu_read_unlock();
	return same && name[0] == '/';
}

/* The most frequent case needs no walk: the name is the path of the file itself. */
static struct etrace_text loaded_name(const char *name, const struct file *file, char *buf)
{
	bool settled = !name || is_proc_name(name);
	struct etrace_text text;

	if (settled || may_be_path_of(name, file)) {
		text = etrace_path_text(&file->f_path, buf, ETRACE_PATH_BYTES);
		if (settled || (text.text && !strcmp(name, text.text)))
			return text;
	}
	text = find(name, file, buf);
	if (!text.text)
		text = etrace_path_text(&file->f_path, buf, ETRACE_PATH_BYTES);
	return text;
}

struct etrace_text etrace_descriptor_name(const char *name, char *buf)
{
	struct etrace_text text = { NULL, 0 };
	struct etrace_file file;
	unsigned int fd;

	if (!is_proc_name(name) || kstrtouint(kbasename(name), 10, &fd))
		return text;
	file = etrace_file_get((int)fd);
	if (file.file)
		text = etrace_path_text(&file.file->f_path, buf, ETRACE_PATH_BYTES);
	etrace_file_put(file);
	return text;
}

/* Of a script, whose file is closed by now: as given when it is not there any more. */
static struct etrace_text script_name(const char *name, char *buf)
{
	struct etrace_text text = etrace_descriptor_name(name, buf);

	if (!text.text)
		text = find(name, NULL, buf);
	if (text.text)
		return text;
	etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
	return given_name(name, buf);
}

/*
 * The name that was asked for. By a descriptor it begins with /dev/fd/N, which the execution may
 * have closed: the path of what the descriptor was takes its place.
 */
static const char *asked_name(const struct etrace_exec *exec, char *buf, size_t size)
{
	struct etrace_text dir;
	const char *rest;
	size_t len;

	if (!exec->dir)
		return exec->filename;
	dir = etrace_path_text(&exec->dir->f_path, buf, size);
	rest = strchrnul(exec->filename + strlen(FD_DIRECTORY), '/');
	len = strlen(rest);
	if (!dir.text || dir.len + len + 1 > size)
		return exec->filename;
	memmove(buf, dir.text, dir.len);
	memcpy(buf + dir.len, rest, len + 1);
	return buf;
}

void etrace_exec_names(const struct etrace_exec *exec, struct etrace_scratch *space,
		       struct etrace_text *interpreter, struct etrace_text *program)
{
	const char *asked = exec->filename ?
				    asked_name(exec, space->other, PATH_MAX) : NULL;

	if (exec->interp) {
		*program = script_name(asked, space->third);
		*interpreter = loaded_name(exec->interp, exec->file, space->path);
	} else {
		*interpreter = loaded_name(asked, exec->file, space->path);
		*program = *interpreter;
	}
	if (!interpreter->text) /* longer than any path can be given */
		*interpreter = etrace_text_of(asked ?: "");
	if (!program->text)
		*program = *interpreter;
}
