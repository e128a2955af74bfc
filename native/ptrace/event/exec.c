// SPDX-License-Identifier: Apache-2.0
/*
 * A program was loaded -> Close (close-on-exec), Comm, New_proc and its strings.
 *
 * The task is before the first instruction of the new program. Its stack holds, from the stack
 * pointer up: argc, argv, envp, the auxiliary vector, and the strings they point to. One read
 * brings all of it. AT_EXECFN is the name given to execve (of the script, for a script).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "capture/response.h"
#include "capture/trace.h"
#include "event/event.h"
#include "task/lookup.h"
#include "task/memory.h"
#include "task/path.h"

#define INITIAL_IMAGE_BYTES (64 << 10)

/* The new stack. Offsets are in bytes from the stack pointer. */
struct image {
	char *buf;
	size_t size;
	size_t len;
	u64 base;
	size_t word; /* bytes of a pointer */
	u64 argc;
	size_t argv;
	size_t envp;
	size_t n_env;
	u64 exec_name; /* address of AT_EXECFN's string, or 0 */
};

static struct image image; /* its buffer is used again by the next execution */

static u64 word_at(size_t offset)
{
	u32 half;
	u64 whole;

	if (offset + image.word > image.len)
		return 0;
	if (image.word == sizeof(half)) {
		memcpy(&half, image.buf + offset, sizeof(half));
		return half;
	}
	memcpy(&whole, image.buf + offset, sizeof(whole));
	return whole;
}

/* A string of the stack; absent when its pointer leads elsewhere. */
static struct etrace_text string_at(u64 address)
{
	struct etrace_text text = { NULL, 0 };
	const char *start;
	const char *end;

	if (address < image.base || address - image.base >= image.len)
		return text;
	start = image.buf + (address - image.base);
	end = memchr(start, '\0', (size_t)(image.buf + image.len - start));
	if (end)
		text = (struct etrace_text){ start, (size_t)(end - start) };
	return text;
}

/* Read from the stack pointer to the end of the stack. */
static ssize_t read_image(const struct task *task, u64 stack_pointer)
{
	image.len = 0;
	image.base = stack_pointer;
	for (;;) {
		ssize_t got;

		if (image.len == image.size) {
			image.size = image.size ? image.size * 2 : INITIAL_IMAGE_BYTES;
			image.buf = must_realloc(image.buf, image.size);
		}
		got = memory_read(task, stack_pointer + image.len, image.buf + image.len,
				  image.size - image.len);
		if (got <= 0)
			return image.len ? 0 : got;
		image.len += (size_t)got;
		if (image.len < image.size)
			return 0;
	}
}

/*
 * argc is a word of its own on 64 bits, and is followed at once by argv[0] on 32 bits (x32
 * included): a 64-bit argc never has a high half.
 */
static size_t word_size(void)
{
	u64 first = 0;

	memcpy(&first, image.buf, image.len < sizeof(first) ? image.len : sizeof(first));
	return first >> 32 ? sizeof(u32) : sizeof(u64);
}

static void parse_image(void)
{
	size_t at;

	image.word = word_size();
	image.argc = word_at(0);
	if (image.argc > image.len / image.word) /* not a fresh stack after all */
		image.argc = 0;
	image.argv = image.word;
	image.envp = image.argv + (image.argc + 1) * image.word;
	image.n_env = 0;
	for (at = image.envp; word_at(at); at += image.word)
		image.n_env++;
	image.exec_name = 0;
	for (at += image.word; word_at(at); at += 2 * image.word)
		if (word_at(at) == AT_EXECFN)
			image.exec_name = word_at(at + image.word);
}

static u64 stack_pointer_of(const struct task *task)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) <= 0)
		return 0;
	return info.stack_pointer;
}

/* Close lines of the descriptors that this exec closed. The table is exact afterwards. */
static void put_closes(struct task *task, u64 now)
{
	s64 fd;

	task_unshare_fds(task);
	task->fds->was_shared = false;
	for (fd = 0; (fd = fd_table_next(task->fds, (int)fd)) >= 0; fd++) {
		enum descriptor_state state = descriptor_look_up(task, (int)fd);

		if (state == DESCRIPTOR_UNKNOWN) { /* a program that may not be read */
			counters.unlisted_descriptors++;
			task->fds->is_doubtful = true;
			return;
		}
		if (state == DESCRIPTOR_FREE) {
			fd_table_remove(task->fds, (int)fd);
			event_put_at(task, now, ETRACE_EV_CLOSE, &fd, NULL);
		}
	}
}

void exec_put_comm(struct task *task, u64 now)
{
	char name[PROC_NAME_MAX];
	char text[64];
	struct etrace_text data = { text, 0 };
	ssize_t len;
	int fd;

	if (!options.thread_names)
		return;
	proc_name(name, task->tid, "comm");
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, text, sizeof(text));
	close(fd);
	if (len <= 0)
		return;
	data.len = (size_t)len - (text[len - 1] == '\n');
	event_put_at(task, now, ETRACE_EV_COMM, NULL, &data);
}

static bool is_same_path(const struct path *a, const struct path *b)
{
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

/*
 * The kernel names the program of an execveat with a descriptor /dev/fd/N or /dev/fd/N/NAME
 * (fs/exec.c): leave NAME, if it is so.
 */
static bool skip_descriptor(const struct task *task, struct etrace_text *name)
{
	char start[32];
	size_t len = (size_t)snprintf(start, sizeof(start), "/dev/fd/%d", (int)task->args[0]);

	if (name->len < len || memcmp(name->text, start, len) ||
	    (name->len > len && name->text[len] != '/'))
		return false;
	if (name->len > len)
		len++;
	*name = (struct etrace_text){ name->text + len, name->len - len };
	return true;
}

/* The path that was asked for, absolute; its last component is not looked at. */
static bool asked_path(struct task *task, struct path *path)
{
	struct etrace_text name = string_at(image.exec_name);

	if (task->exec_path && skip_descriptor(task, &name)) {
		path_set(path, task->exec_path, strlen(task->exec_path));
		return path_extend(path, name.text, name.len);
	}
	return name.text && path_join(task, AT_FDCWD, name.text, name.len, path);
}

/* A link of /proc does not last: take its target. */
static bool is_proc_link(const struct path *path)
{
	return !strncmp(path->text, "/proc/", 6) || !strncmp(path->text, "/dev/fd/", 8);
}

/* Whether a name leads to the program that runs: `loaded` is its path. */
static bool leads_to(struct task *task, const struct path *path, const struct path *loaded)
{
	char exe[PROC_NAME_MAX];
	struct stat program;
	struct stat named;

	if (is_same_path(path, loaded))
		return true;
	proc_name(exe, task->tid, "exe");
	return lookup_stat_link(exe, &program) && stat_in_task(task, path, 0, &named) &&
	       named.st_dev == program.st_dev && named.st_ino == program.st_ino;
}

/*
 * The interpreter of a script: the kernel puts the name that the #! line gives before the
 * arguments, for a script of a script the last one (fs/binfmt_script.c). The line itself is not
 * read: the file system may be the one that waits for this tracer.
 */
static bool interpreter_path(struct task *task, struct path *path)
{
	struct etrace_text name = string_at(word_at(image.argv));

	if (!image.argc || !name.len || !path_join(task, AT_FDCWD, name.text, name.len, path))
		return false;
	return resolve_directories(task, path);
}

/*
 * The name under which the kernel found the program it loaded: what was asked for, or for a script
 * what its #! line names. Where no name leads there (a file replaced in the meantime, an
 * interpreter of binfmt_misc from elsewhere) it is the resolved path of the program.
 */
static void find_interpreter(struct task *task, const struct path *asked, const struct path *loaded,
			     struct path *found)
{
	path_set(found, asked->text, asked->len);
	if (!loaded->len || leads_to(task, asked, loaded))
		return;
	if (!interpreter_path(task, found) || !leads_to(task, found, loaded))
		path_set(found, loaded->text, loaded->len);
}

static void find_programs(struct task *task, struct path *interpreter, struct path *program)
{
	struct path loaded;
	bool asked = asked_path(task, program);

	if (!path_of_link(task, "exe", &loaded))
		path_set(&loaded, "", 0);
	if (asked && !is_proc_link(program)) {
		if (!is_same_path(program, &loaded)) /* or it is resolved already */
			resolve_directories(task, program);
	} else if (!asked && !*path_cwd(task)) { /* a name below it */
		path_set(program, "", 0);
	} else if (!asked || !resolve_whole(task, program)) {
		/* a program that may be executed but not read has no name at all for the tracer */
		if (loaded.len || !asked)
			path_set(program, loaded.text, loaded.len);
	}
	find_interpreter(task, program, &loaded, interpreter);
}

/* Each argument as a text; the result is used again by the next execution. */
static const struct etrace_text *strings_of(size_t at, size_t n)
{
	static struct etrace_text *texts;
	static size_t n_max;
	size_t i;

	if (n > n_max) {
		n_max = n;
		texts = must_realloc(texts, n * sizeof(*texts));
	}
	for (i = 0; i < n; i++) {
		texts[i] = string_at(word_at(at + i * image.word));
		if (!texts[i].text) {
			texts[i] = (struct etrace_text){ "", 0 };
			counters.unread_strings++;
		}
	}
	return texts;
}

/* While the task is stopped, its rights and its root directory are those of the event. */
static void add_responses(struct task *task, const struct etrace_text *arguments, const char *cwd)
{
	bool elsewhere = is_elsewhere(task);
	char name[PROC_NAME_MAX];
	struct rights rights;
	bool known;
	int root = -1;

	if (!response_is_wanted(arguments, image.argc))
		return;
	known = rights_of_task(task->tid, &rights);
	if (elsewhere) {
		proc_name(name, task->tid, "root");
		root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		known = known && root >= 0;
	}
	response_add(task->upid, arguments, image.argc, cwd, known ? &rights : NULL, root);
	if (root >= 0)
		close(root);
}

static void put_program(struct task *task, u64 now)
{
	struct path interpreter;
	struct path program;
	const struct etrace_text *arguments;
	struct etrace_prefix prefix;
	struct etrace_text data[3];
	const char *cwd;

	find_programs(task, &interpreter, &program);
	if (lookup_is_pending(task))
		return;
	task->is_narrow = image.word == sizeof(u32);
	fd_table_note_exec(task->fds);
	cwd = path_cwd(task);
	counters.unresolved_paths += !*cwd;
	data[0] = path_text(&interpreter);
	data[1] = path_text(&program);
	data[2] = (struct etrace_text){ cwd, strlen(cwd) };
	written_put(task, now, false);
	usage_put_exec(task, now);
	put_closes(task, now);
	exec_put_comm(task, now);
	arguments = strings_of(image.argv, image.argc);
	etrace_prefix_init(&prefix, task->upid, task->cpu, now);
	trace_put_execution(&prefix, data, arguments, image.argc);
	add_responses(task, arguments, cwd);
	if (environment_is_wanted(&data[0]))
		environment_add(task->upid, strings_of(image.envp, image.n_env), image.n_env);
}

void exec_put(struct task *task)
{
	u64 now = monotonic_ns();
	ssize_t error;

	memory_begin_program(task);
	error = read_image(task, stack_pointer_of(task));
	if (error == -ESRCH) /* killed before the program began */
		return;
	if (error < 0) {
		counters.unread_strings++;
		image.len = 0;
	}
	parse_image();
	put_program(task, now);
}
