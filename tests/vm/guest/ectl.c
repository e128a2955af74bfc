// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * ectl: drives the kernel module in a machine under test, where Python takes a minute to start.
 * Written from kmod/include/etrace/control.h alone.
 *
 *	ectl start PID|--cgroup PATH [OPTION...]
 *			returns when the session runs; a background process owns it until it stops
 *	ectl run [OPTION...] [--drain SECONDS] -- COMMAND...
 *			session over the command; waits for its descendants, up to 30 s or SECONDS
 *	ectl stop [--no-ack]	ends the session	ectl status
 *	ectl watch [SECONDS]	prints notices until the session stops
 *	ectl family NAME	asks the kernel for a generic netlink family
 *
 * stop, status and run print `name value` lines; run prints them to descriptor 3 if that is open,
 * else to standard error, and exits as the command did. 125: ectl itself failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "etrace/control.h"
#include "genl.h"

#define FAILED 125
#define REPORT_FD 3
#define POLL_NS 10000000

static const char *const counter_names[ETRACE_N_COUNTERS] = {
	[ETRACE_COUNT_EVENTS] = "events",
	[ETRACE_COUNT_RECORDS] = "records",
	[ETRACE_COUNT_LOST_EVENTS] = "lost_events",
	[ETRACE_COUNT_LOST_RECORDS] = "lost_records",
	[ETRACE_COUNT_LIVE] = "live",
	[ETRACE_COUNT_TASKS] = "tasks",
	[ETRACE_COUNT_UNTRACKED] = "untracked",
	[ETRACE_COUNT_UNREAD_STRINGS] = "unread_strings",
	[ETRACE_COUNT_UNRESOLVED_PATHS] = "unresolved_paths",
	[ETRACE_COUNT_RACES] = "races",
	[ETRACE_COUNT_NO_MEMORY] = "no_memory",
	[ETRACE_COUNT_IO_URING] = "io_uring",
	[ETRACE_COUNT_PASSED_FDS] = "passed_fds",
	[ETRACE_COUNT_NEW_MOUNT_API] = "new_mount_api",
	[ETRACE_COUNT_FOREIGN_ROOT] = "foreign_root",
	[ETRACE_COUNT_SUPPRESSED_OPENS] = "suppressed_opens",
	[ETRACE_COUNT_MISSED_PROBES] = "missed_probes",
	[ETRACE_COUNT_NOT_IN_MEMORY] = "not_in_memory",
	[ETRACE_COUNT_PRIVILEGED] = "privileged",
};

_Static_assert(sizeof(counter_names) / sizeof(*counter_names) == ETRACE_N_COUNTERS,
	       "a counter has no name");

static const char *const state_names[] = {
	[ETRACE_STATE_IDLE] = "idle",
	[ETRACE_STATE_RUNNING] = "running",
	[ETRACE_STATE_STOPPED] = "stopped",
	[ETRACE_STATE_STOPPING] = "stopping",
	[ETRACE_STATE_STARTING] = "starting",
};

static const char *const notice_names[] = {
	[ETRACE_NOTICE_LOSS] = "loss",
	[ETRACE_NOTICE_ROOT_EXITED] = "root_exited",
	[ETRACE_NOTICE_EMPTY] = "empty",
	[ETRACE_NOTICE_STOPPED] = "stopped",
};

static const struct {
	const char *word;
	uint32_t bit;
} option_words[] = {
	{ "--thread-names", ETRACE_OPTION_THREAD_NAMES },
	{ "--env", ETRACE_OPTION_ENVIRONMENT },
	{ "--mounts", ETRACE_OPTION_MOUNTS },
	{ "--isolate", ETRACE_OPTION_ISOLATE },
	{ "--open-once", ETRACE_OPTION_OPEN_ONCE },
	{ "--descendants", ETRACE_OPTION_DESCENDANTS },
	{ "--unprivileged", ETRACE_OPTION_UNPRIVILEGED },
	{ "--usage", ETRACE_OPTION_USAGE },
};

struct arguments {
	uint32_t options;
	const char *instance;
	const char *cgroup;
	uint32_t root_pid;
	int drain_seconds;
	char **command; /* after `--` */
};

/* What an answer said. */
struct status {
	uint32_t state;
	uint32_t session;
	uint32_t owner;
	uint32_t notice;
	uint64_t root_upid;
	uint64_t started_ns;
	uint64_t counters[ETRACE_N_COUNTERS];
	bool counted[ETRACE_N_COUNTERS];
	FILE *missing; /* where probes that are missing are printed */
};

/* A command that waits to be let go; ended when its session fails. */
static pid_t waiting_pid;

static void fail(const char *what, int error)
{
	const char *hint = error == -ENOENT ? " (is the module loaded?)" : "";

	fprintf(stderr, "ectl: %s: %s%s%s%s\n", what, strerror(-error), hint,
		*genl_said ? ": " : "", genl_said);
	if (waiting_pid)
		kill(waiting_pid, SIGKILL);
	exit(FAILED);
}

static void usage(void)
{
	fprintf(stderr, "usage: ectl start PID|--cgroup PATH [OPTION...]\n"
			"       ectl run [OPTION...] [--drain SECONDS] -- COMMAND...\n"
			"       ectl stop [--no-ack] | status | watch [SECONDS] | family NAME\n"
			"options: --instance NAME");
	for (size_t i = 0; i < sizeof(option_words) / sizeof(*option_words); i++)
		fprintf(stderr, " %s", option_words[i].word);
	fprintf(stderr, "\n");
	exit(2);
}

static bool read_option(struct arguments *arguments, const char *word)
{
	for (size_t i = 0; i < sizeof(option_words) / sizeof(*option_words); i++)
		if (!strcmp(word, option_words[i].word)) {
			arguments->options |= option_words[i].bit;
			return true;
		}
	return false;
}

static struct arguments read_arguments(char **argv)
{
	struct arguments arguments = { .drain_seconds = 30 };

	for (; *argv; argv++) {
		if (!strcmp(*argv, "--")) {
			arguments.command = argv + 1;
			break;
		}
		if (read_option(&arguments, *argv))
			continue;
		if (!strcmp(*argv, "--instance") && argv[1])
			arguments.instance = *++argv;
		else if (!strcmp(*argv, "--cgroup") && argv[1])
			arguments.cgroup = *++argv;
		else if (!strcmp(*argv, "--drain") && argv[1])
			arguments.drain_seconds = atoi(*++argv);
		else if (**argv >= '0' && **argv <= '9')
			arguments.root_pid = (uint32_t)strtoul(*argv, NULL, 10);
		else
			usage();
	}
	return arguments;
}

static void read_counter(uint16_t type, const void *value, size_t len, void *argument)
{
	struct status *status = argument;

	if (!type || type > ETRACE_N_COUNTERS || len != sizeof(uint64_t))
		return;
	memcpy(&status->counters[type - 1], value, len);
	status->counted[type - 1] = true;
}

static void copy(void *to, size_t size, const void *value, size_t len)
{
	if (len == size)
		memcpy(to, value, size);
}

static void read_status(uint16_t type, const void *value, size_t len, void *argument)
{
	struct status *status = argument;

	switch (type) {
	case ETRACE_ATTR_STATE:
		return copy(&status->state, sizeof(status->state), value, len);
	case ETRACE_ATTR_SESSION:
		return copy(&status->session, sizeof(status->session), value, len);
	case ETRACE_ATTR_OWNER_PID:
		return copy(&status->owner, sizeof(status->owner), value, len);
	case ETRACE_ATTR_NOTICE:
		return copy(&status->notice, sizeof(status->notice), value, len);
	case ETRACE_ATTR_ROOT_UPID:
		return copy(&status->root_upid, sizeof(status->root_upid), value, len);
	case ETRACE_ATTR_STARTED_NS:
		return copy(&status->started_ns, sizeof(status->started_ns), value, len);
	case ETRACE_ATTR_COUNTERS:
		return genl_attributes(value, len, read_counter, status);
	case ETRACE_ATTR_MISSING_PROBE:
		if (status->missing)
			fprintf(status->missing, "missing_probe %s\n", (const char *)value);
		return;
	}
}

static const char *name_of(const char *const *names, size_t n_names, uint32_t value)
{
	return value < n_names && names[value] ? names[value] : "unknown";
}

static void print_status(const struct status *status, FILE *out)
{
	fprintf(out, "state %s\nsession %" PRIu32 "\nowner %" PRIu32 "\nroot_upid %" PRIu64
		     "\nstarted_ns %" PRIu64 "\n",
		name_of(state_names, sizeof(state_names) / sizeof(*state_names), status->state),
		status->session, status->owner, status->root_upid, status->started_ns);
	for (int i = 0; i < ETRACE_N_COUNTERS; i++)
		if (status->counted[i])
			fprintf(out, "%s %" PRIu64 "\n", counter_names[i], status->counters[i]);
	fflush(out);
}

static struct genl connect_module(void)
{
	struct genl genl;
	int error = genl_open(&genl, ETRACE_GENL_NAME, ETRACE_GENL_GROUP);

	if (error)
		fail("family " ETRACE_GENL_NAME, error);
	return genl;
}

static struct status ask(struct genl *genl, uint8_t command, FILE *missing)
{
	struct status status = { .missing = missing };
	struct genl_message message;
	int error;

	genl_begin(genl, &message, command);
	error = genl_ask(genl, &message, read_status, &status);
	if (error)
		fail(command == ETRACE_CMD_STOP ? "STOP" : "STATUS", error);
	return status;
}

static struct status start(struct genl *genl, const struct arguments *arguments)
{
	struct status status = { 0 };
	struct genl_message message;
	int error;

	genl_begin(genl, &message, ETRACE_CMD_START);
	if (arguments->cgroup)
		genl_put_string(&message, ETRACE_ATTR_CGROUP, arguments->cgroup);
	else
		genl_put_u32(&message, ETRACE_ATTR_ROOT_PID, arguments->root_pid);
	genl_put_u32(&message, ETRACE_ATTR_OPTIONS, arguments->options);
	if (arguments->instance)
		genl_put_string(&message, ETRACE_ATTR_INSTANCE, arguments->instance);
	error = genl_ask(genl, &message, read_status, &status);
	if (error)
		fail("START", error);
	return status;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			fail("waitpid", -errno);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The session is the socket's: keep it open until the session stops. */
static void own(struct genl *genl)
{
	struct status status = { 0 };

	while (status.notice != ETRACE_NOTICE_STOPPED) {
		int command = genl_next_notice(genl, -1, read_status, &status);

		if (command < 0 && command != -EAGAIN && command != -ENOBUFS)
			break;
	}
	exit(0);
}

/* In the process that stays; says on `ready` that the session runs. */
static void start_and_own(const struct arguments *arguments, int ready)
{
	struct genl genl = connect_module();
	int error = genl_join(&genl);
	struct status status;

	if (error)
		fail("group " ETRACE_GENL_GROUP, error);
	status = start(&genl, arguments);
	printf("session %" PRIu32 "\nroot_upid %" PRIu64 "\n", status.session, status.root_upid);
	fflush(stdout);
	setsid();
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr) ||
	    write(ready, "\n", 1) != 1)
		exit(FAILED);
	close(ready);
	own(&genl);
}

static int command_start(char **argv)
{
	struct arguments arguments = read_arguments(argv);
	int ready[2];
	char byte;
	pid_t pid;

	if (!arguments.cgroup && !arguments.root_pid)
		usage();
	if (pipe(ready))
		fail("pipe", -errno);
	pid = fork();
	if (pid < 0)
		fail("fork", -errno);
	if (!pid)
		start_and_own(&arguments, ready[1]);
	close(ready[1]);
	return read(ready[0], &byte, 1) == 1 ? 0 : wait_for(pid);
}

static int command_stop(char **argv)
{
	struct genl genl = connect_module();
	struct status status;

	genl.unacknowledged = *argv && !strcmp(*argv, "--no-ack");
	status = ask(&genl, ETRACE_CMD_STOP, stdout);
	print_status(&status, stdout);
	return 0;
}

static int command_status(char **argv)
{
	struct genl genl = connect_module();
	struct status status = ask(&genl, ETRACE_CMD_STATUS, stdout);

	(void)argv;
	print_status(&status, stdout);
	return 0;
}

static int command_watch(char **argv)
{
	int seconds = *argv ? atoi(*argv) : -1;
	struct genl genl = connect_module();
	struct status status = { 0 };
	int error = genl_join(&genl);

	if (error)
		fail("group " ETRACE_GENL_GROUP, error);
	while (status.notice != ETRACE_NOTICE_STOPPED) {
		int command = genl_next_notice(&genl, seconds < 0 ? -1 : seconds * 1000,
					       read_status, &status);

		if (command < 0)
			fail("notices", command);
		printf("%s %" PRIu32 "\n",
		       name_of(notice_names, sizeof(notice_names) / sizeof(*notice_names),
			       status.notice),
		       status.session);
		fflush(stdout);
	}
	return 0;
}

static int command_family(char **argv)
{
	struct genl genl;
	int error = *argv ? genl_open(&genl, *argv, "") : -EINVAL;

	if (error)
		fail("family", error);
	printf("%s %u\n", *argv, genl.family);
	return 0;
}

/* The child stops itself before execve(), and has no descriptor that the command should not. */
static pid_t prepare(char **command)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fail("fork", -errno);
	if (!pid) {
		raise(SIGSTOP);
		execvp(command[0], command);
		fprintf(stderr, "ectl: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	waiting_pid = pid;
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		fail("the command did not get to its start", -ECHILD);
	return pid;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_until_empty(struct genl *genl, int seconds)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	uint64_t end_ns = now_ns() + (uint64_t)seconds * 1000000000u;

	while (now_ns() < end_ns) {
		struct status status = ask(genl, ETRACE_CMD_STATUS, NULL);

		if (!status.counters[ETRACE_COUNT_LIVE])
			return;
		nanosleep(&pause, NULL);
	}
}

static int command_run(char **argv)
{
	struct arguments arguments = read_arguments(argv);
	FILE *report = fcntl(REPORT_FD, F_GETFD) < 0 ? stderr : fdopen(REPORT_FD, "w");
	struct genl genl;
	struct status status;
	int code;

	if (!arguments.command || !*arguments.command || !report)
		usage();
	if (report != stderr)
		fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC);
	genl = connect_module();
	arguments.root_pid = (uint32_t)prepare(arguments.command);
	status = start(&genl, &arguments);
	kill((pid_t)arguments.root_pid, SIGCONT);
	waiting_pid = 0;
	code = wait_for((pid_t)arguments.root_pid);
	wait_until_empty(&genl, arguments.drain_seconds);
	status = ask(&genl, ETRACE_CMD_STOP, report);
	print_status(&status, report);
	fprintf(report, "ended_ns %" PRIu64 "\nexit %d\n", now_ns(), code);
	fflush(report);
	return code;
}

static const struct {
	const char *word;
	int (*run)(char **argv);
} commands[] = {
	{ "start", command_start },   { "run", command_run },	  { "stop", command_stop },
	{ "status", command_status }, { "watch", command_watch },
	{ "family", command_family },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].word))
			return commands[i].run(argv + 2);
	usage();
}
