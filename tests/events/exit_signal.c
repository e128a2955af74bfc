// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Death by signal N is Exit with status 128 + N; signals that do not kill change nothing. */
#include "expect.h"

#include <linux/futex.h>
#include <sys/resource.h>

static int never;

static int waits_forever(void *argument)
{
	(void)argument;
	for (;;)
		syscall(SYS_futex, &never, FUTEX_WAIT, 0, NULL, NULL, 0);
	return 0;
}

static void dies_of(struct task *task, int signal_number)
{
	struct task child = expect_child(task);
	long pid = MUST(fork_call());

	if (!pid) {
		expect_exit(&child, 128 + signal_number);
		syscall(SYS_kill, getpid(), signal_number);
		die("survived its signal");
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

static void faults(struct task *task)
{
	struct task child = expect_child(task);
	long pid = MUST(fork_call());

	if (!pid) {
		expect_exit(&child, 128 + SIGSEGV);
		*(volatile int *)WILD = 0;
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

/* A signal that kills ends every thread with it. */
static void kills_threads(struct task *task)
{
	struct task child = expect_child(task);
	struct task thread;
	int gone;
	long tid, pid = MUST(fork_call());

	if (!pid) {
		thread = expect_child(&child);
		expect_exit(&thread, 128 + SIGTERM);
		tid = MUST(start_clone(waits_forever, NULL, THREAD_FLAGS, &gone));
		expect(&child, "SysClone|flags=%lu",
		       THREAD_FLAGS | (unsigned long)CLONE_CHILD_CLEARTID);
		expect_fork(&child, &thread, tid);
		expect_exit(&child, 128 + SIGTERM);
		syscall(SYS_kill, getpid(), SIGTERM);
		waits_forever(NULL); /* the thread may take the signal, and this one goes on */
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

/* Killed from outside while it sleeps in a system call. */
static void is_killed(struct task *task, int signal_number)
{
	struct task child = expect_child(task);
	int fds[2];
	char byte;
	long pid;

	MUST(pipe2(fds, 0));
	expect(task, "Pipe|fd1=%d,fd2=%d,flags=0", fds[0], fds[1]);
	pid = MUST(fork_call());
	if (!pid) {
		expect_exit(&child, 128 + signal_number);
		MUST(write(fds[1], "x", 1));
		waits_forever(NULL);
	}
	expect_forked(task, &child, pid);
	MUST(read(fds[0], &byte, 1));
	MUST(kill((pid_t)pid, signal_number));
	wait_for(pid);
}

static void handler(int signal_number)
{
	(void)signal_number;
}

static void survives(void)
{
	MUST(signal(SIGUSR2, handler) == SIG_ERR ? -1 : 0);
	MUST(kill(getpid(), SIGUSR2));
	MUST(signal(SIGTERM, SIG_IGN) == SIG_ERR ? -1 : 0);
	MUST(kill(getpid(), SIGTERM));
	MUST(signal(SIGTERM, SIG_DFL) == SIG_ERR ? -1 : 0);
	MUST(kill(getpid(), SIGWINCH));
	MUST(kill(getpid(), SIGCONT));
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT,
				       SIGBUS, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV, SIGPIPE,
				       SIGALRM, SIGTERM, SIGXCPU, SIGSYS, 34, 64 };
	struct rlimit no_core = { 0, 0 };

	MUST(setrlimit(RLIMIT_CORE, &no_core));
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		dies_of(&task, signals[i]);
	faults(&task);
	kills_threads(&task);
	is_killed(&task, SIGKILL);
	is_killed(&task, SIGTERM);
	survives();
	leave(&task, 0);
}
