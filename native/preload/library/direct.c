// SPDX-License-Identifier: Apache-2.0
/*
 * syscall() with the number of a call that is recorded is made by the function that records it; prctl()
 * and seccomp() by which a process restricts its own calls: from there on the library makes none.
 */
#include "paths.h"
#include "record.h"

#define O_ACCMODE 03
#define F_DUPFD 0
#define F_GETFL 3
#define F_DUPFD_CLOEXEC 1030
#define PR_SET_SECCOMP 22
#define CLONE_VM 0x100
#define SECCOMP_GET_ACTION_AVAIL 2

int open(const char *name, int flags, ...);
int openat(int dirfd, const char *name, int flags, ...);
int creat(const char *name, unsigned int mode);
int close(int fd);
int close_range(unsigned int first, unsigned int last, int flags);
int dup(int fd);
int dup2(int from, int to);
int dup3(int from, int to, int flags);
int fcntl(int fd, int command, ...);
int pipe(int *fds);
int pipe2(int *fds, int flags);
int rename(const char *from, const char *to);
int renameat(int from_dir, const char *from, int to_dir, const char *to);
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags);
int link(const char *from, const char *to);
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int symlink(const char *target, const char *name);
int symlinkat(const char *target, int dirfd, const char *name);
int execve(const char *path, char *const arguments[], char *const environment[]);
int execveat(int dirfd, const char *path, char *const arguments[], char *const environment[],
	     int flags);
int chdir(const char *path);
int fchdir(int fd);
int chroot(const char *path);
void _exit(int status) __attribute__((noreturn));

struct open_how {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

/* Before the filter is there: each call after it may be the last. */
static void confine(void)
{
	record_put(RING_CONFINED, 0, 0, 0);
	record_leave();
	ring_silence();
}

static bool is_recorded_fcntl(long command)
{
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

#define KEPT_FLAGS (O_ACCMODE | O_APPEND | O_PATH)

/* Another thread may have changed the structure since the kernel read it: the file says how it is open. */
static long open_how(const long *a, long result)
{
	const struct open_how *how = (const struct open_how *)a[2];
	long flags, kept;

	if (result < 0)
		return with_errno(result);
	flags = (int)how->flags;
	kept = CALL3(__NR_fcntl, result, F_GETFL, 0);
	if (kept >= 0)
		flags = (flags & ~KEPT_FLAGS) | (kept & KEPT_FLAGS);
	return record_open((int)with_errno(result), (int)a[0], (const char *)a[1], (int)flags,
			 (unsigned int)how->mode);
}

/* Such a call names no file: the descriptor does. */
static long record_handle(long fd, int flags)
{
	struct path path;

	if (fd >= 0 && ring_is_on()) {
		path_of_fd(&path, (int)fd);
		record_open((int)fd, AT_FDCWD, path.text, flags, 0);
	}
	return with_errno(fd);
}

int open_by_handle_at(int mount, void *handle, int flags);

PUBLIC int open_by_handle_at(int mount, void *handle, int flags)
{
	return (int)record_handle(CALL3(__NR_open_by_handle_at, mount, handle, flags), flags);
}

static long clone_directly(long n, const long *a)
{
	uint64_t start = ring_is_on() ? record_now() : 0;
	long child;

	if (n != __NR_clone3 && (a[0] & CLONE_VM))
		record_expect_sharing();
	child = CALL6(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (child > 0 && start && !(n == __NR_clone && (a[0] & 0x10000)))
		record_put_at(RING_FORK, start, (int)child, 0, 0);
	else if (!child && ring_is_on())
		record_pid();
	return with_errno(child);
}

#define TEXT(i) ((const char *)a[i])
#define INT(i) ((int)a[i])
#define RECORDED(name, call) \
	case __NR_##name: \
		*result = (call); \
		return true;

/* True when the call was made. */
static bool call_recorded(long n, const long *a, long *result)
{
	switch (n) {
#include "calls.h"
#ifdef __NR_fcntl64
	case __NR_fcntl64:
#endif
	case __NR_fcntl:
		if (!is_recorded_fcntl(a[1]))
			return false;
		*result = fcntl(INT(0), INT(1), INT(2));
		return true;
#ifdef __NR_fork
	case __NR_fork:
#endif
	case __NR_clone:
	case __NR_clone3:
		*result = clone_directly(n, a);
		return true;
	case __NR_exit_group:
		_exit(INT(0));
	case __NR_seccomp:
		if (a[0] < SECCOMP_GET_ACTION_AVAIL)
			confine();
		return false;
	case __NR_prctl:
		if (a[0] == PR_SET_SECCOMP)
			confine();
		return false;
	}
	return false;
}

long syscall(long n, long a, long b, long c, long d, long e, long f);

PUBLIC long syscall(long n, long a, long b, long c, long d, long e, long f)
{
	const long arguments[] = { a, b, c, d, e, f };
	long result;

	if (call_recorded(n, arguments, &result))
		return result;
	return with_errno(CALL6(n, a, b, c, d, e, f));
}

int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

PUBLIC int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	if (option == PR_SET_SECCOMP)
		confine();
	return (int)with_errno(CALL5(__NR_prctl, option, a, b, c, d));
}
