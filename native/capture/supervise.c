// SPDX-License-Identifier: Apache-2.0
/*
 * The command and what outlives it, as child processes.
 *
 * A signal from the terminal reaches the whole group, the build included. Sent to this process alone
 * it is handed to the command; SIGTERM or SIGHUP for the second time kills the build.
 */
#include "capture/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "capture/rlimits.h"
#include "capture/signals.h"
#include "capture/trace.h"
#include "capture/unrunnable.h"

#define TICK_NS 10000000
#define GRACE_NS 1000000000u
#define SAME_WISH_NS 100000000u
#define REPORT_NS 1000000000u
#define MAX_DEPTH 4096 /* of the tree of processes */

static const struct supervised *parts;
static pid_t root;
static int root_status;
static bool root_ended;
static bool root_stopped;
static volatile sig_atomic_t interrupted, stop_asked, kill_asked;
static volatile pid_t root_to_signal;

/* ---- signals ---- */

static void hand_on(int signal)
{
	static u64 first_time;
	u64 now = monotonic_ns();

	interrupted = 1;
	if (!first_time) {
		first_time = now;
		if (root_to_signal)
			kill(root_to_signal, signal);
	} else if (now - first_time > SAME_WISH_NS) {
		kill_asked = 1;
	}
}

/* The kernel's own signals (a key of the terminal) have reached the command already. */
static void hand_on_interrupt(int signal, siginfo_t *info, void *context)
{
	static u64 last_time;
	u64 now = monotonic_ns();

	(void)context;
	interrupted = 1;
	if (info->si_code > 0 || now - last_time <= SAME_WISH_NS)
		return;
	last_time = now;
	if (root_to_signal)
		kill(root_to_signal, signal);
}

static void note_stop(int signal)
{
	(void)signal;
	stop_asked = 1;
}

static void wake(int signal)
{
	(void)signal;
}

static void set_interrupt(int signal)
{
	if (!signals_was_ignored(signal))
		signals_set_info(signal, hand_on_interrupt);
}

static void set_signals(void)
{
	signals_ignore_all();
	signals_set(SIGCHLD, wake);
	signals_set(SIGTERM, hand_on);
	if (!signals_was_ignored(SIGHUP))
		signals_set(SIGHUP, hand_on);
	signals_set(SIGTSTP, note_stop);
	signals_set(SIGTTIN, note_stop);
	signals_set(SIGTTOU, note_stop);
	set_interrupt(SIGINT);
	set_interrupt(SIGQUIT);
}

/* ---- start ---- */

/*
 * A process that runs is traced, and not a command: until a signal ends this one, which takes the command's
 * place. It holds nothing, and ends with its parent.
 */
static void wait_to_be_ended(void)
{
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	syscall(SYS_close_range, 0, ~0U, 0);
	for (;;)
		pause();
}

static void run_command(int failure)
{
	int error;

	if (parts->prepare)
		parts->prepare();
	signals_restore();
	if (options_follow())
		wait_to_be_ended();
	limits_restore();
	command_execute(options.command);
	error = errno;
	if (write(failure, &error, sizeof(error)) < 0)
		say("cannot report why the command did not start: %s", strerror(errno));
	_exit(command_failure_status(error));
}

int supervise_start(const struct supervised *given)
{
	u64 start = monotonic_ns();
	int failure[2];
	int error = 0;

	parts = given;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(failure, O_CLOEXEC) < 0)
		die("cannot start the command: %s%s", strerror(errno), limits_blame(errno));
	signals_hold();
	set_signals();
	if (parts->forking)
		parts->forking();
	root = fork();
	if (root < 0)
		die("cannot start the command: %s%s", strerror(errno), limits_blame(errno));
	if (root == 0)
		run_command(failure[1]);
	root_to_signal = root;
	signals_release();
	close(failure[1]);
	while (read(failure[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(failure[0]);
	if (!error) {
		parts->start(root, start);
		capture_publish();
		return 0;
	}
	waitpid(root, NULL, 0);
	return command_explain(options.command, error);
}

/* ---- the build runs ---- */

static void take_end(pid_t pid, int status)
{
	if (parts->end)
		parts->end(pid, status);
	if (pid != root)
		return;
	root_ended = true;
	root_to_signal = 0;
	root_status = status;
}

/* False when there is no child left. */
static bool reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			if (pid == root)
				root_stopped = WIFSTOPPED(status);
			continue;
		}
		take_end(pid, status);
	}
	return pid == 0;
}

static void stop_with_command(void)
{
	stop_asked = 0;
	root_stopped = false;
	trace_flush();
	raise(SIGSTOP);
}

bool supervise_is_of_build(pid_t pid)
{
	int i;

	for (i = 0; i < MAX_DEPTH && pid > 1; i++)
		if ((pid = proc_parent(pid)) == getpid())
			return true;
	return false;
}

/* The descriptor keeps the number from another process between look and signal. */
void supervise_kill(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && errno != ENOSYS) /* before Linux 5.3 */
		return;
	if (supervise_is_of_build(pid)) {
		if (fd < 0)
			kill(pid, SIGKILL);
		else
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	}
	if (fd >= 0)
		close(fd);
}

static void on_tick(void)
{
	static u64 reported;
	u64 now = monotonic_ns();

	parts->tick(now);
	if (kill_asked)
		parts->kill();
	if (stop_asked && root_stopped)
		stop_with_command();
	if (now - reported < REPORT_NS)
		return;
	reported = now;
	capture_report_status(parts->n_live());
	trace_flush();
}

void supervise_run(void)
{
	struct timespec tick = { 0, TICK_NS };
	struct pollfd input = { .fd = parts->fd, .events = POLLIN };
	sigset_t child, none;
	u64 end = 0;

	sigemptyset(&none);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	while (reap()) {
		u64 now = monotonic_ns();

		if (root_ended && !end)
			end = now;
		if (end && !options.wait_all && now - end > GRACE_NS)
			break;
		on_tick();
		ppoll(&input, 1, &tick, &none);
	}
	parts->drain();
}

int supervise_status(void)
{
	return root_status;
}

enum ending supervise_ending(void)
{
	return capture_ending(root_status, interrupted, kill_asked);
}
