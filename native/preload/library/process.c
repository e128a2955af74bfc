// SPDX-License-Identifier: Apache-2.0
/*
 * fork, vfork, clone, wait*, _exit, and calls after which the process sees other files. A parent that
 * waits learns how its child ended: that is how the ends of killed and of static programs are known.
 */
#include "record.h"
#include "paths.h"

#define P_PID 1
#define CLD_EXITED 1
#define CLONE_VM 0x100
#define CLONE_THREAD 0x10000
#define CLONE_NEWNS 0x20000

int fork(void);
int _Fork(void);

/* The time comes before all events of the child. */
#define FORKED(function) \
	({ \
		__typeof__(&function) next_ = NEXT(function); \
		uint64_t start_ = ring_is_on() ? record_now() : 0; \
		int child_ = next_ ? next_() : (int)with_errno(-ENOSYS); \
		if (child_ > 0 && start_) \
			record_put_at(RING_FORK, start_, child_, 0, 0); \
		else if (!child_ && start_ && ring_is_on()) \
			record_pid(); \
		child_; \
	})

PUBLIC int fork(void)
{
	return FORKED(fork);
}

PUBLIC int _Fork(void)
{
	return FORKED(_Fork);
}

int vfork(void);

/* Called by vfork() in entry.S, which goes on in what this returns: the child uses its stack frame. */
void *preload_before_vfork(void);

void *preload_before_vfork(void)
{
	__typeof__(&vfork) next = NEXT(vfork);

	record_expect_sharing();
	return next ? (void *)next : (void *)fork;
}

int clone(int (*function)(void *), void *stack, int flags, void *argument, int *parent_tid,
	  void *tls, int *child_tid);

PUBLIC int clone(int (*function)(void *), void *stack, int flags, void *argument, int *parent_tid,
		 void *tls, int *child_tid)
{
	__typeof__(&clone) next = NEXT(clone);
	uint64_t start = ring_is_on() ? record_now() : 0;
	int child;

	if (!next)
		return (int)with_errno(-ENOSYS);
	if (!(flags & CLONE_THREAD) && (flags & CLONE_VM))
		record_expect_sharing();
	child = next(function, stack, flags, argument, parent_tid, tls, child_tid);
	if (child > 0 && start && !(flags & CLONE_THREAD))
		record_put_at(RING_FORK, start, child, 0, 0);
	return child;
}

static void put_exit(int status)
{
	if (!ring_is_on())
		return;
	record_put(RING_EXIT, status & 0xff, 0, 0);
	record_leave();
	record_stop();
}

PUBLIC void _exit(int status)
{
	put_exit(status);
	for (;;)
		CALL1(__NR_exit_group, status);
}

PUBLIC void _Exit(int status)
{
	_exit(status);
}

void quick_exit(int status) __attribute__((noreturn));

/* It runs no handler of on_exit(), and ends by a call of libc's own. */
PUBLIC void quick_exit(int status)
{
	__typeof__(&quick_exit) next = NEXT(quick_exit);

	put_exit(status);
	if (next)
		next(status);
	for (;;)
		CALL1(__NR_exit_group, status);
}

/* ---- ends of children ---- */

static void put_child_end(int pid, int status)
{
	bool has_ended = (status & 0x7f) != 0x7f && status != 0xffff;

	if (pid > 0 && has_ended && ring_is_on())
		record_put(RING_CHILD_END, pid, status, 0);
}

static int wait_by_call(int pid, int *status, int options, void *usage)
{
	return (int)with_errno(CALL4(__NR_wait4, pid, status, options, usage));
}

int wait4(int pid, int *status, int options, void *usage);
int waitpid(int pid, int *status, int options);

PUBLIC int wait4(int pid, int *status, int options, void *usage)
{
	__typeof__(&wait4) next = has_threads() ? NEXT(wait4) : NULL;
	int ended = 0;
	int child = (next ? next : wait_by_call)(pid, &ended, options, usage);

	if (child > 0 && status)
		*status = ended;
	put_child_end(child, ended);
	return child;
}

PUBLIC int waitpid(int pid, int *status, int options)
{
	__typeof__(&waitpid) next = has_threads() ? NEXT(waitpid) : NULL;
	int ended = 0;
	int child = next ? next(pid, &ended, options) : wait_by_call(pid, &ended, options, NULL);

	if (child > 0 && status)
		*status = ended;
	put_child_end(child, ended);
	return child;
}

PUBLIC int wait(int *status)
{
	return waitpid(-1, status, 0);
}

PUBLIC int wait3(int *status, int options, void *usage)
{
	return wait4(-1, status, options, usage);
}

/* The beginning of siginfo_t for a child. */
struct child_info {
	int signal;
	int error;
	int code;
#if __SIZEOF_POINTER__ == 8
	int padding;
#endif
	int pid;
	unsigned int uid;
	int status;
};

int waitid(int type, unsigned int id, struct child_info *info, int options);

static int waitid_by_call(int type, unsigned int id, struct child_info *info, int options)
{
	return (int)with_errno(CALL5(__NR_waitid, type, id, info, options, NULL));
}

PUBLIC int waitid(int type, unsigned int id, struct child_info *info, int options)
{
	__typeof__(&waitid) next = has_threads() ? NEXT(waitid) : NULL;
	int result;

	if (info)
		info->pid = 0;
	result = (next ? next : waitid_by_call)(type, id, info, options);
	if (!result && info && info->pid && info->code >= CLD_EXITED && info->code <= 3)
		put_child_end(info->pid, info->code == CLD_EXITED ? (info->status & 0xff) << 8
								   : info->status & 0x7f);
	return result;
}

/* ---- what the process sees ---- */

static int put_cwd(long result)
{
	struct record record;
	struct path path;

	if (result >= 0 && ring_is_on()) {
		path_of_cwd(&path);
		record_begin(&record, RING_CWD);
		record_string(&record, path.text, path.n);
		record_end(&record);
	}
	return (int)with_errno(result);
}

PUBLIC int chdir(const char *path)
{
	return put_cwd(CALL1(__NR_chdir, path));
}

PUBLIC int fchdir(int fd)
{
	return put_cwd(CALL1(__NR_fchdir, fd));
}

PUBLIC int chroot(const char *path)
{
	long result = CALL1(__NR_chroot, path);

	return put_cwd(result);
}
