// SPDX-License-Identifier: GPL-2.0-only
/*
 * PI and PP of an execution: the requested and the found name of a program, directories resolved,
 * the last symlink kept (ccache, clang++ and busybox depend on it). Links of /proc and /dev/fd do
 * not last and are replaced by their targets. A name is used only if it leads to the file that the
 * kernel loaded, as far as walk.c can say. Context: task_work, sleeps.
 */
#include <linux/fcntl.h>
#include <linux/magic.h>

#include "event/names.h"
#include "event/path.h"

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

/* The name made absolute by putting the working directory before it; absent when too long. */
static struct etrace_text given_name(const char *name, char *buf)
{
	struct etrace_text text;

	if (name[0] == '/')
		return etrace_text_of(name);
	text = etrace_cwd_text(buf, ETRACE_PATH_BYTES);
	return text.text ? etrace_join(text, name, strlen(name), buf) : text;
}

/* A name that is not in memory. Names in /proc go through links without lasting names. */
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

/*
 * The file may be renamed meanwhile: its old name lasts as long as the lock, and its length may be
 * that of the other.
 */
static bool may_be_path_of(struct etrace_text name, const struct file *file)
{
	const struct qstr *last = &file->f_path.dentry->d_name;
	bool same;
	u32 len;

	if (name.text[0] != '/')
		return false;
	rcu_read_lock();
	len = READ_ONCE(last->len);
	same = len < name.len && name.text[name.len - len - 1] == '/' &&
	       !strcmp(name.text + name.len - len, (const char *)READ_ONCE(last->name));
	rcu_read_unlock();
	return same;
}

/* The most frequent case needs no walk: the name is the path of the file itself. */
static struct etrace_text loaded_name(struct etrace_text name, const struct file *file, char *buf)
{
	bool settled = !name.text || etrace_is_proc_name(name.text);
	struct etrace_text text;

	if (settled || may_be_path_of(name, file)) {
		text = etrace_path_text(&file->f_path, buf, ETRACE_PATH_BYTES);
		if (settled || (text.text && !strcmp(name.text, text.text)))
			return text;
	}
	text = find(name.text, file, buf);
	if (!text.text)
		text = etrace_path_text(&file->f_path, buf, ETRACE_PATH_BYTES);
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
static struct etrace_text asked_name(const struct etrace_exec *exec, char *buf, size_t size)
{
	struct etrace_text name = { exec->filename, exec->filename_len };
	struct etrace_text dir;
	const char *rest;
	size_t len;

	if (!exec->dir || !exec->filename)
		return name;
	dir = etrace_path_text(&exec->dir->f_path, buf, size);
	rest = strchrnul(exec->filename + strlen(ETRACE_FD_DIRECTORY), '/');
	len = strlen(rest);
	if (!dir.text || dir.len + len + 1 > size)
		return name;
	memmove(buf, dir.text, dir.len);
	memcpy(buf + dir.len, rest, len + 1);
	return (struct etrace_text){ buf, dir.len + len };
}

void etrace_exec_names(const struct etrace_exec *exec, struct etrace_scratch *space,
		       struct etrace_text *interpreter, struct etrace_text *program)
{
	struct etrace_text asked = asked_name(exec, space->other, PATH_MAX);

	if (exec->interp_len) {
		struct etrace_text interp = { exec->filename + exec->filename_len + 1,
					      exec->interp_len };

		*program = script_name(asked.text, space->third);
		*interpreter = loaded_name(interp, exec->file, space->path);
	} else {
		*interpreter = loaded_name(asked, exec->file, space->path);
		*program = *interpreter;
	}
	if (!interpreter->text) /* longer than any path can be given */
		*interpreter = asked.text && asked.text[0] == '/' ? asked : etrace_text_of("");
	if (!program->text)
		*program = etrace_text_of("");
}
