// SPDX-License-Identifier: Apache-2.0
/*
 * Two processes: the front, which the user started, and its child, the tracer. Processes that
 * outlive the command (compiler daemons) need their tracer as long as they live, since without one
 * every filtered call fails with ENOSYS; the front can end when the command ends.
 *
 * SIGINT and SIGQUIT from the terminal reach the whole group, the build included: both processes
 * ignore them. Sent by a process (`kill -INT`, as CI runners do) they are handed to the command.
 * SIGTERM and SIGHUP are handed to it too; the second one kills the whole build.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/options.h"
#include "capture/rlimits.h"
#include "capture/signals.h"
#include "session/session.h"

#define SAME_WISH_NS 100000000u
#define PATIENCE_SECONDS 5 /* for a tracer that was asked to kill the build */

/* What the tracer sends when the command has ended. */
struct result {
	int wait_status;
	bool stays; /* the tracer has others to trace and does not end */
};

/* In memory that both processes share. */
static volatile struct {
	pid_t root; /* the command */
	int wish; /* the signal that the command has to get */
	bool interrupted; /* a signal asked for its end */
	bool is_refused; /* ptrace was, and another program is to take over */
} *shared;

static pid_t tracer;
static char **arguments;
static int result_pipe[2];

/* Called by the front at a signal and by the tracer at the command's start; the later call acts. */
static void send_wish(void)
{
	pid_t root = shared->root;
	int signal = root ? __atomic_exchange_n(&shared->wish, 0, __ATOMIC_SEQ_CST) : 0;

	if (signal)
		kill(root, signal);
}

static void wish(int signal)
{
	__atomic_store_n(&shared->wish, signal, __ATOMIC_SEQ_CST);
	send_wish();
}

/*
 * timeout(1) signals its child and then the whole group: what follows at once is the same wish
 * once more.
 */
static void hand_on(int signal)
{
	static u64 first_time;
	u64 now = monotonic_ns();

	shared->interrupted = true;
	if (!first_time) {
		first_time = now;
		wish(signal);
	} else if (now - first_time > SAME_WISH_NS) {
		kill(tracer, SIGUSR1);
		alarm(PATIENCE_SECONDS);
	}
}

/* Whatever it waits for, the build ends with it (PTRACE_O_EXITKILL). */
static void kill_tracer(int signal)
{
	(void)signal;
	kill(tracer, SIGKILL);
}

/* The kernel's own signals (SI_KERNEL: a key of the terminal) have reached the command already. */
static void hand_on_interrupt(int signal, siginfo_t *info, void *context)
{
	static u64 last_time;
	u64 now = monotonic_ns();

	(void)context;
	shared->interrupted = true;
	if ((info->si_code > 0 && shared->root) || now - last_time <= SAME_WISH_NS)
		return;
	last_time = now;
	wish(signal);
}

static void set_interrupt(int signal)
{
	if (!signals_was_ignored(signal))
		signals_set_info(signal, hand_on_interrupt);
}

static void wake(int signal)
{
	(void)signal;
}

static void set_front_signals(void)
{
	signals_ignore_all();
	signals_set(SIGCHLD, wake);
	signals_set(SIGTERM, hand_on);
	signals_set(SIGALRM, kill_tracer);
	if (!signals_was_ignored(SIGHUP))
		signals_set(SIGHUP, hand_on);
	set_interrupt(SIGINT);
	set_interrupt(SIGQUIT);
}

/* The tracer stopped itself because the command was stopped from the terminal: so does the job. */
static void follow_stop(void)
{
	int status;

	if (waitpid(tracer, &status, WNOHANG | WUNTRACED) == tracer && WIFSTOPPED(status))
		raise(SIGSTOP);
}

/* Its resource usage, the build's included, becomes the front's. */
static int reap_tracer(void)
{
	int status = 0;

	while (waitpid(tracer, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void front_set_arguments(char **given)
{
	arguments = given;
}

void front_ask_substitute(void)
{
	if (options.substitute && shared)
		shared->is_refused = true;
}

static void end_without_result(void)
{
	int status = reap_tracer();

	if (shared->is_refused)
		capture_hand_over("etrace-preload", arguments,
				  "preload is used instead: it misses static programs, and what libc opens for "
				  "itself (docs/capture-preload.md)");

	if (WIFSIGNALED(status))
		say("the tracer was killed by signal %d, and the build with it; the trace so far "
		    "is in '%s'", WTERMSIG(status), options.trace_path);
	exit(STATUS_ETRACE_FAILED);
}

static void run_front(void) __attribute__((noreturn));

static void run_front(void)
{
	struct pollfd poll_result = { .fd = result_pipe[0], .events = POLLIN };
	sigset_t blocked;
	struct result result;
	sigset_t open;
	ssize_t n;

	close(result_pipe[1]);
	sigemptyset(&open);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	while (ppoll(&poll_result, 1, NULL, &open) <= 0)
		follow_stop();
	n = read(result_pipe[0], &result, sizeof(result));
	if (n != sizeof(result))
		end_without_result();
	if (!result.stays)
		reap_tracer();
	signals_end_like(result.wait_status);
}

void front_split(void)
{
	pid_t front = getpid();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED || pipe2(result_pipe, O_CLOEXEC) < 0)
		die("cannot start: %s%s", strerror(errno), limits_blame(errno));
	signals_hold();
	set_front_signals(); /* before the fork: the build may run before the front does */
	tracer = fork();
	if (tracer < 0)
		die("cannot start the tracer: %s%s", strerror(errno), limits_blame(errno));
	if (tracer > 0)
		run_front();
	close(result_pipe[0]);
	prctl(PR_SET_PDEATHSIG, SIGUSR2);
	if (getppid() != front)
		_exit(STATUS_ETRACE_FAILED);
}

void front_set_root(pid_t pid)
{
	__atomic_store_n(&shared->root, pid, __ATOMIC_SEQ_CST);
	send_wish();
}

bool front_was_interrupted(void)
{
	return shared->interrupted;
}

void front_finish(int wait_status, bool stays)
{
	struct result result = { wait_status, stays };

	prctl(PR_SET_PDEATHSIG, 0);
	if (write(result_pipe[1], &result, sizeof(result)) != sizeof(result))
		say("the waiting process is gone");
	close(result_pipe[1]);
}
