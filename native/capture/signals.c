// SPDX-License-Identifier: Apache-2.0
/* Signal dispositions: the tracer changes its own, the command gets the original ones. */
#include "capture/signals.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool ignored[NSIG];
static sigset_t original_mask;

void signals_save(void)
{
	struct sigaction action;
	sigset_t none;
	int signal;

	for (signal = 1; signal < NSIG; signal++)
		ignored[signal] = sigaction(signal, NULL, &action) == 0 &&
				  action.sa_handler == SIG_IGN;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, &original_mask);
}

void signals_hold(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

void signals_release(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

bool signals_was_ignored(int signal)
{
	return ignored[signal];
}

void signals_set(int signal, void (*handler)(int signal))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	sigemptyset(&action.sa_mask);
	sigaction(signal, &action, NULL);
}

void signals_set_info(int signal, void (*handler)(int signal, siginfo_t *info, void *context))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO;
	sigemptyset(&action.sa_mask);
	sigaction(signal, &action, NULL);
}

static bool is_fault(int signal)
{
	switch (signal) {
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGSYS:
		return true;
	default:
		return false;
	}
}

static bool is_restorable(int signal)
{
	return signal != SIGKILL && signal != SIGSTOP;
}

void signals_ignore_all(void)
{
	int signal;

	for (signal = 1; signal < NSIG; signal++)
		if (is_restorable(signal) && !is_fault(signal) && signal != SIGCHLD)
			signals_set(signal, SIG_IGN);
}

void signals_set_child_default(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	action.sa_flags = SA_NOCLDSTOP;
	sigaction(SIGCHLD, &action, NULL);
}

void signals_restore(void)
{
	int signal;

	for (signal = 1; signal < NSIG; signal++)
		if (is_restorable(signal))
			signals_set(signal, ignored[signal] ? SIG_IGN : SIG_DFL);
	sigprocmask(SIG_SETMASK, &original_mask, NULL);
}

void signals_end_like(int wait_status)
{
	sigset_t all;
	int signal;

	if (!WIFSIGNALED(wait_status))
		exit(WEXITSTATUS(wait_status));
	signal = WTERMSIG(wait_status);
	prctl(PR_SET_DUMPABLE, 0); /* the build may have left a core file: do not overwrite it */
	signals_set(signal, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(signal);
	exit(128 + signal); /* a signal whose default is not to end a process */
}
