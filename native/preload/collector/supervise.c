// SPDX-License-Identifier: Apache-2.0
/*
 * The command and what outlives it. This process is the subreaper of the build: whatever loses its
 * parent becomes its child, and so it learns how that ends and when all have ended.
 *
 * A signal from the terminal reaches the whole group, the build included. Sent to this process alone
 * it is handed to the command; SIGTERM or SIGHUP for the second time kills the build.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/options.h"
#include "capture/proc.h"
#include "capture/signals.h"
#include "capture/trace.h"
#include "library.h"
#include "names.h"

#define TICK_NS 10000000
#define SETTLED_NS 100000000u /* a record that is older has arrived */
#define GRACE_NS 1000000000u
#define SAME_WISH_NS 100000000u
#define RECLAIM_NS 1000000000u
#define MAX_DEPTH 4096 /* of the tree of processes */

static pid_t root;
static int root_status;
static bool root_ended;
static bool root_stopped;
static size_t n_live;
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

static void run_command(int failure)
{
	int error;

	setenv(RING_VARIABLE, ring_variable(), 1);
	capture_add_variable("LD_PRELOAD", library_name(), NULL);
	capture_add_variable("ASAN_OPTIONS", "verify_asan_link_order=0", "verify_asan_link_order");
	signals_restore();
	execvp(options.command[0], options.command);
	error = errno;
	if (write(failure, &error, sizeof(error)) < 0)
		say("cannot report why the command did not start: %s", strerror(errno));
	_exit(capture_exec_status(error));
}

/* Where execvp() found the command. */
static void find_command(struct etrace_text *path, char text[PATH_MAX])
{
	const char *name = options.command[0];
	const char *at = getenv("PATH");

	if (strchr(name, '/') || !at)
		snprintf(text, PATH_MAX, "%s", name);
	for (; !strchr(name, '/') && at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		snprintf(text, PATH_MAX, "%.*s/%s", (int)strcspn(at, ":"), at, name);
		if (access(text, X_OK) == 0)
			break;
	}
	*path = (struct etrace_text){ text, strlen(text) };
}

/* What the library would have recorded: the command itself may be a static program. */
static void expect_command(u64 start)
{
	char text[PATH_MAX], cwd[PATH_MAX];
	struct name absolute;
	struct etrace_text path;
	struct event *event;
	size_t size = 4 * PATH_MAX;
	size_t n_cwd;
	size_t i;

	find_command(&path, text);
	n_cwd = getcwd(cwd, sizeof(cwd)) ? strlen(cwd) : 0;
	name_join(&absolute, cwd, n_cwd, &path);
	name_resolve_directories(&absolute);
	path = name_text(&absolute);
	for (i = 0; options.command[i]; i++)
		size += strlen(options.command[i]) + sizeof(uint32_t);
	event = event_make(RING_INTENT, root, start, size);
	event_add_text(event, path.text, path.len);
	event_add_text(event, cwd, n_cwd);
	for (i = 0; options.command[i]; i++)
		event_add_text(event, options.command[i], strlen(options.command[i]));
	event->head.args[0] = (int32_t)i;
	process_set_cwd(process_begin(root, NULL, start), cwd, n_cwd);
	order_add(event);
}

int supervise_start(void)
{
	u64 start = monotonic_ns();
	int failure[2];
	int error = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(failure, O_CLOEXEC) < 0)
		die("cannot start the command: %s", strerror(errno));
	signals_hold();
	set_signals();
	root = fork();
	if (root < 0)
		die("cannot start the command: %s", strerror(errno));
	if (root == 0)
		run_command(failure[1]);
	root_to_signal = root;
	signals_release();
	close(failure[1]);
	while (read(failure[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(failure[0]);
	if (!error) {
		expect_command(start);
		capture_publish();
		return 0;
	}
	waitpid(root, NULL, 0);
	return capture_explain_exec(error);
}

/* ---- the build runs ---- */

static void put_until(u64 limit)
{
	struct event *event;

	while ((event = order_take(limit)))
		events_put(event);
}

/* The last records of a child that ended are taken out first. */
static void take_end(pid_t pid, int status)
{
	struct event *event;

	ring_drain(order_add);
	event = event_make(RING_CHILD_END, pid, monotonic_ns(), 0);
	event->head.args[0] = pid;
	event->head.args[1] = status;
	event->order = UINT64_MAX;
	order_add(event);
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

/* Its parents lead to this process, the subreaper. */
static bool is_of_build(pid_t pid)
{
	int i;

	for (i = 0; i < MAX_DEPTH && pid > 1; i++)
		if ((pid = proc_parent(pid)) == getpid())
			return true;
	return false;
}

/*
 * Numbers come from records, and any process of the build can write those of others. The descriptor
 * keeps the number from another process between look and signal.
 */
static void kill_one(struct process *process)
{
	int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

	if (fd < 0 && errno != ENOSYS) /* before Linux 5.3 */
		return;
	if (is_of_build(process->pid)) {
		if (fd < 0)
			kill(process->pid, SIGKILL);
		else
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	}
	if (fd >= 0)
		close(fd);
}

static void count_one(struct process *process)
{
	(void)process;
	n_live++;
}

static void on_tick(void)
{
	static u64 reclaimed;
	u64 now = monotonic_ns();

	ring_drain(order_add);
	outside_take(order_add);
	put_until(now - SETTLED_NS);
	if (kill_asked)
		process_for_each(kill_one);
	if (stop_asked && root_stopped)
		stop_with_command();
	if (now - reclaimed < RECLAIM_NS)
		return;
	reclaimed = now;
	ring_reclaim();
	n_live = 0;
	process_for_each(count_one);
	capture_report_status(n_live);
	trace_flush();
}

static void name_survivor(struct process *process)
{
	if (is_of_build(process->pid))
		capture_add_survivor(process->pid);
}

void supervise_run(void)
{
	struct timespec tick = { 0, TICK_NS };
	struct pollfd outside = { .fd = outside_fd(), .events = POLLIN };
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
		ppoll(&outside, 1, &tick, &none);
	}
	ring_drain(order_add);
	ring_close();
	ring_drain(order_add);
	outside_take(order_add);
	put_until(UINT64_MAX);
	process_for_each(name_survivor);
	capture_warn_survivors();
	events_settle();
}

int supervise_status(void)
{
	return root_status;
}

enum ending supervise_ending(void)
{
	return capture_ending(root_status, interrupted, kill_asked);
}
