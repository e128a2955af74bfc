// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Stopping and continuing prints nothing, and the parent sees both. */
#include "expect.h"

static void wait_state(long pid, int options, bool stopped)
{
	int status;

	MUST(waitpid((pid_t)pid, &status, options));
	if (stopped ? !WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP : !WIFCONTINUED(status))
		die("waitpid saw another state");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	struct task child = expect_child(&task);
	long fd, pid;
	sigset_t seen;

	sigemptyset(&seen);
	sigaddset(&seen, SIGUSR1);
	MUST(sigprocmask(SIG_BLOCK, &seen, NULL));
	pid = MUST(fork_call());
	if (!pid) {
		MUST(kill(getpid(), SIGSTOP));
		fd = MUST(open("/dev/null", O_RDONLY));
		expect_open(&child, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
		/* stopping again hides from the parent that it went on */
		MUST(sigwaitinfo(&seen, NULL));
		MUST(kill(getpid(), SIGSTOP));
		leave(&child, 3);
	}
	expect_forked(&task, &child, pid);
	wait_state(pid, WUNTRACED, true);
	MUST(kill((pid_t)pid, SIGCONT));
	wait_state(pid, WCONTINUED, false);
	MUST(kill((pid_t)pid, SIGUSR1));
	wait_state(pid, WUNTRACED, true);
	MUST(kill((pid_t)pid, SIGCONT));
	wait_for(pid);
	leave(&task, 0);
}
