// SPDX-License-Identifier: Apache-2.0
/*
 * The command: forked, attached, then continued to install the filter and execute. The order
 * matters: a filtered call without a tracer fails.
 *
 * LeakSanitizer stops the threads of its program with ptrace and aborts where that is refused, so
 * leak detection is switched off in the environment unless the user has decided on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/options.h"
#include "capture/report.h"
#include "capture/rlimits.h"
#include "capture/signals.h"
#include "capture/unrunnable.h"
#include "session/session.h"
#include "task/task.h"

#define TRACE_OPTIONS                                                                              \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |  \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL)

#define LEAK_OPTION "detect_leaks"
#define NO_LEAKS LEAK_OPTION "=0"

enum step { FAILED_FILTER, FAILED_EXEC };

/* What the command's process could not do, sent through a pipe that execve() closes. */
struct failure {
	enum step step;
	int error;
};

static int failure_pipe[2];
static bool asan_added;
static bool lsan_added;

void command_put_stats(FILE *file)
{
	report_put_text(file, "asan_options_added", asan_added ? NO_LEAKS : "");
	report_put_text(file, "lsan_options_added", lsan_added ? NO_LEAKS : "");
}

static int failure_status(const struct failure *failure)
{
	if (failure->step == FAILED_FILTER)
		return STATUS_ETRACE_FAILED;
	return command_failure_status(failure->error);
}

static void fail(enum step step, int error)
{
	struct failure failure = { .step = step, .error = error };

	if (write(failure_pipe[1], &failure, sizeof(failure)) < 0)
		say("cannot reach the tracer: %s", strerror(errno));
	_exit(failure_status(&failure));
}

/*
 * Without no_new_privs only root may install a filter; as root it is left off, so that sudo and
 * other set-user-ID programs of the build work as they should.
 */
static void run_command(int gate)
{
	char byte;
	int error;

	if (read(gate, &byte, 1) != 1) /* the tracer could not attach, and reports it */
		_exit(STATUS_ETRACE_FAILED);
	signals_restore();
	if (geteuid() != 0)
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	error = filter_install();
	if (error == -EACCES) { /* root without CAP_SYS_ADMIN, as in containers */
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		error = filter_install();
	}
	if (error)
		fail(FAILED_FILTER, -error);
	limits_restore();
	command_execute(options.command);
	fail(FAILED_EXEC, errno);
}

static void attach(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, 0, TRACE_OPTIONS | (options.usage ? PTRACE_O_TRACEEXIT : 0)) < 0) {
		int error = errno;

		front_ask_substitute();
		denied_explain("ptrace", error);
	}
}

pid_t command_start(void)
{
	struct task *task;
	int gate[2];
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(failure_pipe, O_CLOEXEC) < 0)
		die("cannot start the command: %s%s", strerror(errno), limits_blame(errno));
	asan_added = capture_add_variable("ASAN_OPTIONS", NO_LEAKS, LEAK_OPTION);
	lsan_added = capture_add_variable("LSAN_OPTIONS", NO_LEAKS, LEAK_OPTION);
	pid = fork();
	if (pid < 0)
		die("cannot start the command: %s%s", strerror(errno), limits_blame(errno));
	if (pid == 0) {
		close(gate[1]);
		run_command(gate[0]);
	}
	close(gate[0]);
	close(failure_pipe[1]);
	attach(pid);
	front_set_root(pid);
	task = task_create(pid);
	task_begin(task, NULL, 0);
	if (write(gate[1], "", 1) != 1)
		die("cannot start the command: %s%s", strerror(errno), limits_blame(errno));
	close(gate[1]);
	return pid;
}

int command_failure(void)
{
	struct failure failure;
	ssize_t n;

	do {
		n = read(failure_pipe[0], &failure, sizeof(failure));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(failure))
		return 0;
	if (failure.step == FAILED_FILTER) {
		front_ask_substitute();
		denied_explain("the seccomp filter", failure.error);
	}
	return command_explain(options.command, failure.error);
}
