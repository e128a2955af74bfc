// SPDX-License-Identifier: Apache-2.0
/*
 * exec*, posix_spawn*, popen, system: what is about to be executed is recorded first, since a program
 * that cannot load the library (a static one, a set-user-ID one) records nothing. A call that returns
 * is recorded too. The new program itself records the rest (start.c).
 *
 * All of this may run in a child of vfork(): nothing is allocated, nothing is kept.
 */
#include "paths.h"
#include "record.h"
#include "variables.h"

#define MAX_INTENT_ARGUMENTS 65536

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static void put_intent(struct record *record, const struct path *path, char *const *arguments)
{
	size_t n = count(arguments);
	struct path cwd;
	size_t i;

	path_of_cwd(&cwd);
	record_string(record, path->text, path->n);
	record_string(record, cwd.text, cwd.n);
	for (i = 0; i < n; i++)
		record_string(record, arguments[i], length(arguments[i]));
	record->values.args[0] = (int)n;
	record->values.args[2] = !variables_have_library();
	record_end(record);
}

/* A file that is not there is not about to be executed: tools try every directory of PATH. */
static bool announce(int dirfd, const char *name, char *const *arguments)
{
	struct record record;
	struct path path;

	if (CALL3(__NR_faccessat, dirfd, name, 1) == -EFAULT || !is_readable(arguments))
		return false;
	if (!*name)
		path_of_fd(&path, dirfd);
	else if (CALL3(__NR_faccessat, dirfd, name, 1))
		return false;
	else if (!path_resolve_directories(&path, dirfd, name))
		return false;
	record_begin(&record, RING_INTENT);
	put_intent(&record, &path, arguments);
	record_leave();
	return true;
}

static int execute(int dirfd, const char *name, char *const *arguments, char *const *environment,
		   int flags)
{
	bool is_traced = name && (!environment || is_readable(environment));
	char **traced = is_traced ? TRACED(environment) : (char **)environment;
	bool is_recorded = is_traced && ring_is_on() && announce(dirfd, name, arguments);
	long result;

	if (dirfd == AT_FDCWD && !flags)
		result = CALL3(__NR_execve, name, arguments, traced);
	else
		result = CALL5(__NR_execveat, dirfd, name, arguments, traced, flags);
	if (is_recorded)
		record_put(RING_EXEC_FAILED, (int)-result, 0, 0);
	return (int)result;
}

PUBLIC int execve(const char *path, char *const arguments[], char *const environment[])
{
	return (int)with_errno(execute(AT_FDCWD, path, arguments, environment, 0));
}

PUBLIC int execv(const char *path, char *const arguments[])
{
	return (int)with_errno(execute(AT_FDCWD, path, arguments, environ, 0));
}

PUBLIC int execveat(int dirfd, const char *path, char *const arguments[],
		    char *const environment[], int flags)
{
	return (int)with_errno(execute(dirfd, path, arguments, environment, flags));
}

PUBLIC int fexecve(int fd, char *const arguments[], char *const environment[])
{
	if (fd < 0 || !arguments || !environment)
		return (int)with_errno(-EINVAL);
	return (int)with_errno(execute(fd, "", arguments, environment, AT_EMPTY_PATH));
}

/* A script without a #! line, as execvp() runs it. */
static int execute_by_shell(const char *path, char *const *arguments, char *const *environment)
{
	size_t n = count(arguments);
	const char *shell[n + 3];
	size_t i;

	shell[0] = "/bin/sh";
	shell[1] = path;
	for (i = 1; i < n; i++)
		shell[i + 1] = arguments[i];
	shell[n ? n + 1 : 2] = NULL;
	return execute(AT_FDCWD, shell[0], (char *const *)shell, environment, 0);
}

static int execute_or_interpret(const char *path, char *const *arguments,
				char *const *environment)
{
	int result = execute(AT_FDCWD, path, arguments, environment, 0);

	return result == -ENOEXEC ? execute_by_shell(path, arguments, environment) : result;
}

/* The variable of the process, as libc looks for it; `environ` is not the one that is handed on. */
static const char *search_path(void)
{
	char **variable;

	for (variable = environ; variable && *variable; variable++)
		if (starts(*variable, "PATH=", 5))
			return *variable + 5;
	return "/bin:/usr/bin";
}

/* The next directory of PATH with `/name` after it; NULL at the end. */
static const char *next_candidate(const char *at, const char *name, char *candidate)
{
	size_t n_name = length(name);
	size_t n = 0;

	while (at[n] && at[n] != ':')
		n++;
	candidate[0] = '\0';
	if (n + 1 + n_name < PATH_MAX) {
		copy(candidate, at, n);
		if (n)
			candidate[n] = '/';
		copy(candidate + n + (n > 0), name, n_name + 1);
	}
	return at[n] ? at + n + 1 : NULL;
}

static bool goes_on(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -ESTALE ||
	       error == -ENODEV || error == -ETIMEDOUT;
}

static int search_and_execute(const char *name, char *const *arguments, char *const *environment)
{
	const char *at = search_path();
	char candidate[PATH_MAX];
	bool was_refused = false;
	int result = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (find(name, "/"))
		return execute_or_interpret(name, arguments, environment);
	while (at) {
		at = next_candidate(at, name, candidate);
		if (!candidate[0])
			continue;
		result = execute_or_interpret(candidate, arguments, environment);
		was_refused |= result == -EACCES;
		if (!goes_on(result))
			return result;
	}
	return was_refused ? -EACCES : result;
}

PUBLIC int execvpe(const char *name, char *const arguments[], char *const environment[])
{
	return (int)with_errno(search_and_execute(name, arguments, environment));
}

PUBLIC int execvp(const char *name, char *const arguments[])
{
	return (int)with_errno(search_and_execute(name, arguments, environ));
}

/* The arguments of execl() and its like as an array, with NULL at its end. */
static size_t count_listed(const char *first, va_list list)
{
	size_t n = first != NULL;

	while (n && va_arg(list, const char *))
		n++;
	return n;
}

#define LIST(array, first) \
	va_list list_, again_; \
	size_t n_, i_; \
	va_start(list_, first); \
	va_copy(again_, list_); \
	n_ = count_listed(first, again_); \
	va_end(again_); \
	char *array[n_ + 1]; \
	array[0] = (char *)(uintptr_t)(first); \
	for (i_ = 1; i_ <= n_; i_++) \
		array[i_] = va_arg(list_, char *);

PUBLIC int execl(const char *path, const char *first, ...)
{
	LIST(arguments, first)
	va_end(list_);
	return (int)with_errno(execute(AT_FDCWD, path, arguments, environ, 0));
}

PUBLIC int execlp(const char *name, const char *first, ...)
{
	LIST(arguments, first)
	va_end(list_);
	return (int)with_errno(search_and_execute(name, arguments, environ));
}

PUBLIC int execle(const char *path, const char *first, ...)
{
	LIST(arguments, first)
	char *const *environment;

	environment = n_ ? va_arg(list_, char *const *) : NULL;
	va_end(list_);
	return (int)with_errno(execute(AT_FDCWD, path, arguments, environment, 0));
}

/* ---- functions of libc that start a process of their own ---- */

int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
		char *const arguments[], char *const environment[]);
int posix_spawnp(int *pid, const char *path, const void *actions, const void *attributes,
		 char *const arguments[], char *const environment[]);
void *popen(const char *command, const char *mode);
int system(const char *command);

/* The program was executed already: the child has recorded that, if it can. */
static void put_spawned(int pid, uint64_t start, const char *name, bool is_searched,
			 char *const *arguments)
{
	char candidate[PATH_MAX];
	const char *at = is_searched && !find(name, "/") ? search_path() : NULL;
	struct record record;
	struct path path;

	if (!ring_is_on())
		return;
	record_put_at(RING_FORK, start, pid, 0, 0);
	while (at) {
		at = next_candidate(at, name, candidate);
		if (candidate[0] && !CALL3(__NR_faccessat, AT_FDCWD, candidate, 1)) {
			name = candidate;
			break;
		}
	}
	if (!path_resolve_directories(&path, AT_FDCWD, name))
		return;
	record_begin_at(&record, RING_INTENT, start + 1);
	if (record.head)
		record.head->pid = record.values.pid = (uint32_t)pid;
	record.values.args[1] = 1; /* the child may have another working directory */
	put_intent(&record, &path, arguments);
}

static int spawn(__typeof__(&posix_spawn) next, bool is_searched, int *pid, const char *name,
		 const void *actions, const void *attributes, char *const arguments[],
		 char *const environment[])
{
	uint64_t start = ring_is_on() ? record_now() : 0;
	int child;
	int error = next ? next(&child, name, actions, attributes, arguments, TRACED(environment))
			 : ENOSYS;

	if (error)
		return error;
	if (pid)
		*pid = child;
	put_spawned(child, start, name, is_searched, arguments);
	return 0;
}

PUBLIC int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
		       char *const arguments[], char *const environment[])
{
	return spawn(NEXT(posix_spawn), false, pid, path, actions, attributes, arguments, environment);
}

PUBLIC int posix_spawnp(int *pid, const char *name, const void *actions, const void *attributes,
			char *const arguments[], char *const environment[])
{
	return spawn(NEXT(posix_spawnp), true, pid, name, actions, attributes, arguments, environment);
}

/* These hand on `environ`: while they run it is one that keeps the library. */
#define WITH_TRACED_ENVIRON(call) \
	({ \
		char **own_ = environ; \
		char **traced_ = TRACED(own_); \
		if (traced_ != own_) \
			environ = traced_; \
		__typeof__(call) result_ = (call); \
		if (environ == traced_) \
			environ = own_; \
		result_; \
	})

PUBLIC int system(const char *command)
{
	__typeof__(&system) next = NEXT(system);

	return next ? WITH_TRACED_ENVIRON(next(command)) : (int)with_errno(-ENOSYS);
}

PUBLIC void *popen(const char *command, const char *mode)
{
	__typeof__(&popen) next = NEXT(popen);

	if (next)
		return WITH_TRACED_ENVIRON(next(command, mode));
	with_errno(-ENOSYS);
	return NULL;
}
