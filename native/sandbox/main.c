// SPDX-License-Identifier: Apache-2.0
/*
 * etrace-sandbox: run one program that may compute, read and print, and nothing else.
 *
 * etrace asks make and compilers about a build. Which of them, with which words and in which
 * directory, is data: of a trace, of a makefile. So whatever these make a program do, it changes no
 * file, starts no other program (unless it is allowed to), loads only code of root, and reaches no
 * process, no network and no other part of the kernel. Docs: docs/security.md.
 *
 *   main        options; the supervisor: starts the program, watches time and reader, reports the end
 *   namespaces  its own users, mounts (all read-only), processes, network, where that is allowed
 *   user        from root to somebody else, without capabilities
 *   landlock    no file is changed, nothing else is executed
 *   filter      seccomp: what Landlock does not cover (chmod, sockets, signals ..)
 *   answer      of the supervisor, when the program maps code or opens a file to read
 *
 * Without Landlock, seccomp, or the right to become another user where that is asked for, nothing
 * runs. The last line of --report is the end: `exit N`, `signal N`, `timeout`, `missing WHY` (this
 * machine cannot keep the promise) or `refused WHY` (of the program). Lines before it: `denied FILE`.
 */
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/program.h"

#define MEGABYTE (1024ul * 1024)
#define MAX_ENVIRONMENT (16 * MEGABYTE)
#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define TEXT_MAX 512
#define MAX_FILES 1024
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define CLOSE_ON_EXEC 4u /* CLOSE_RANGE_CLOEXEC */
#define AGAIN "again" /* of give_up(): the namespaces are not complete */

const char program_name[] = "etrace-sandbox";

static int channel = -1; /* from the process that becomes the program to the supervisor */

void program_save(void)
{
}

void give_up(const char *kind, const char *format, ...)
{
	char text[TEXT_MAX];
	int len = snprintf(text, sizeof(text), "%s ", kind);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
	va_end(args);
	if (send(channel, text, strlen(text), MSG_NOSIGNAL) < 0)
		_exit(STATUS_ETRACE_FAILED);
	_exit(0);
}

/* ---- options ---- */

enum {
	OPTION_PROGRAM = 256,
	OPTION_REPORT,
	OPTION_ENVIRONMENT,
	OPTION_EXECUTES,
	OPTION_BELOW,
	OPTION_SCRATCH,
	OPTION_CODE_OF,
	OPTION_FILES_OF,
	OPTION_USER,
	OPTION_SECONDS,
	OPTION_MEGABYTES,
	OPTION_OUTPUT,
	OPTION_PROCESSES,
};

/* `VARIABLE=value` with a NUL after each, as in /proc/PID/environ. */
static char **read_environment(int fd)
{
	struct stat st;
	size_t size, at, n = 0;
	char *text, **list;

	if (fstat(fd, &st) < 0 || (size_t)st.st_size > MAX_ENVIRONMENT)
		die("--environment: not a file of at most 16 MB");
	size = (size_t)st.st_size;
	text = must_alloc(size + 1);
	if (pread(fd, text, size, 0) != (ssize_t)size)
		die("--environment: %s", strerror(errno));
	text[size] = '\0';
	list = must_alloc((size + 1) * sizeof(*list));
	for (at = 0; at < size; at += strlen(text + at) + 1)
		list[n++] = text + at;
	list[n] = NULL;
	return list;
}

/* UID:GID[:GROUP]...: from root to these. */
static void take_user(struct sandbox *box, const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	box->uid = (uid_t)number;
	box->changes_user = true;
	if (*end != ':' || !number || number >= (uid_t)-1)
		die("--user %s: not UID:GID[:GROUP]... of somebody else than root", text);
	box->gid = (gid_t)strtoul(end + 1, &end, 10);
	while (*end == ':' && box->n_groups < MAX_GROUPS)
		box->groups[box->n_groups++] = (gid_t)strtoul(end + 1, &end, 10);
	if (*end)
		die("--user %s: not UID:GID[:GROUP]..., or more than %d", text, MAX_GROUPS);
}

static void take_option(struct sandbox *box, int option)
{
	switch (option) {
	case OPTION_PROGRAM:
		box->program = program_take_fd("--program", optarg);
		break;
	case OPTION_REPORT:
		box->report = program_take_fd("--report", optarg);
		break;
	case OPTION_ENVIRONMENT:
		box->environment = read_environment(program_take_fd("--environment", optarg));
		break;
	case OPTION_EXECUTES:
		box->may = MAY_ALL;
		break;
	case OPTION_BELOW:
		if (box->n_folders == MAX_FOLDERS)
			die("--executes-below: more than %d", MAX_FOLDERS);
		box->may = MAY_BELOW;
		box->folders[box->n_folders++] = optarg;
		break;
	case OPTION_SCRATCH:
		box->scratch = optarg;
		break;
	case OPTION_CODE_OF:
		box->code_owner = (uid_t)strtoul(optarg, NULL, 10);
		break;
	case OPTION_FILES_OF:
		box->file_owner = (uid_t)strtoul(optarg, NULL, 10);
		break;
	case OPTION_USER:
		take_user(box, optarg);
		break;
	case OPTION_SECONDS:
		box->seconds = program_take_number("--seconds", optarg);
		break;
	case OPTION_MEGABYTES:
		box->megabytes = program_take_number("--memory", optarg);
		break;
	case OPTION_OUTPUT:
		box->output_megabytes = program_take_number("--output", optarg);
		break;
	case OPTION_PROCESSES:
		box->processes = program_take_number("--processes", optarg);
		break;
	default:
		exit(STATUS_USAGE);
	}
}

static void take_options(struct sandbox *box, int argc, char **argv)
{
	int reads_all = 0, begins_in_scratch = 0, is_plain = 0;
	const struct option names[] = {
		{ "program", required_argument, NULL, OPTION_PROGRAM },
		{ "report", required_argument, NULL, OPTION_REPORT },
		{ "environment", required_argument, NULL, OPTION_ENVIRONMENT },
		{ "executes", no_argument, NULL, OPTION_EXECUTES },
		{ "executes-below", required_argument, NULL, OPTION_BELOW },
		{ "scratch", required_argument, NULL, OPTION_SCRATCH },
		{ "in-scratch", no_argument, &begins_in_scratch, 1 },
		{ "code-of", required_argument, NULL, OPTION_CODE_OF },
		{ "files-of", required_argument, NULL, OPTION_FILES_OF },
		{ "user", required_argument, NULL, OPTION_USER },
		{ "reads-all", no_argument, &reads_all, 1 },
		{ "no-namespaces", no_argument, &is_plain, 1 },
		{ "seconds", required_argument, NULL, OPTION_SECONDS },
		{ "memory", required_argument, NULL, OPTION_MEGABYTES },
		{ "output", required_argument, NULL, OPTION_OUTPUT },
		{ "processes", required_argument, NULL, OPTION_PROCESSES },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "+", names, NULL)) >= 0)
		if (option)
			take_option(box, option);
	box->reads_all = reads_all;
	box->begins_in_scratch = begins_in_scratch;
	box->has_namespaces = !is_plain;
	box->arguments = argv + optind;
	if (box->program < 0 || box->report < 0 || !box->environment || !*box->arguments)
		die("needs --program, --report, --environment and the words of a program");
	if (geteuid() == 0 && !box->changes_user)
		die("runs no program as root: --user UID:GID");
}

/* ---- the process that becomes the program ---- */

static void limit(int what, rlim_t most)
{
	const struct rlimit both = { most, most };

	if (setrlimit((__rlimit_resource_t)what, &both) < 0 && errno != EPERM)
		give_up("missing", "setrlimit(%d): %s", what, strerror(errno));
}

/*
 * The program's descriptor becomes the highest one, and from then on there is one less: the number
 * by which the filter lets it be executed is never that of another file.
 */
static void put_program_last(struct sandbox *box)
{
	struct rlimit files;
	int last;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		give_up("missing", "getrlimit: %s", strerror(errno));
	last = (int)(files.rlim_cur < MAX_FILES ? files.rlim_cur : MAX_FILES) - 1;
	if (dup3(box->program, last, O_CLOEXEC) != last)
		give_up("missing", "descriptor %d: %s", last, strerror(errno));
	box->program = last;
	limit(RLIMIT_NOFILE, (rlim_t)last);
}

/* `n_others`: processes of the same user that count, too. */
static void limit_all(const struct sandbox *box, unsigned int n_others)
{
	limit(RLIMIT_CORE, 1); /* 0 lets a program of core_pattern run; one byte holds no core */
	limit(RLIMIT_MSGQUEUE, 0);
	limit(RLIMIT_CPU, (rlim_t)box->seconds);
	limit(RLIMIT_FSIZE, (rlim_t)box->output_megabytes * MEGABYTE);
	limit(RLIMIT_NPROC, (rlim_t)box->processes + n_others);
	limit(RLIMIT_AS, (rlim_t)box->megabytes * MEGABYTE);
}

/* The supervisor hears of the program's questions by this descriptor. */
static void hand_over(int listener)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'l';
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &listener, sizeof(int));
	if (sendmsg(channel, &message, MSG_NOSIGNAL) != 1)
		_exit(STATUS_ETRACE_FAILED);
}

static void become_program(struct sandbox *box, unsigned int n_others) __attribute__((noreturn));

static void become_program(struct sandbox *box, unsigned int n_others)
{
	setsid(); /* signals to its group are not for the supervisor */
	if (box->has_namespaces && !namespaces_enter(box))
		give_up(AGAIN, "-");
	if (box->begins_in_scratch && box->has_scratch && chdir(box->scratch) < 0)
		give_up("missing", "%s: %s", box->scratch, strerror(errno));
	if (user_become(box) < 0 || user_drop_capabilities(box) < 0)
		give_up("missing", "becoming user %d: %s", (int)box->uid, strerror(errno));
	limit_all(box, n_others);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		give_up("missing", "prctl: %s", strerror(errno));
	signal(SIGPIPE, SIG_DFL);
	landlock_restrict(box);
	hand_over(filter_ask(box));
	put_program_last(box);
	filter_deny(box);
	syscall(SYS_execveat, box->program, "", box->arguments, box->environment, AT_EMPTY_PATH);
	give_up("refused", "%s: %s", box->arguments[0],
		errno == ENOENT ? "its interpreter is missing, or it is a script" : strerror(errno));
}

/* ---- the supervisor ---- */

/* Tasks of the user: RLIMIT_NPROC counts them, without a user namespace. */
static unsigned int count_tasks(uid_t uid)
{
	char path[sizeof("/proc//task") + NAME_MAX];
	DIR *processes = opendir("/proc");
	struct dirent *each;
	unsigned int n = 0;
	struct stat st;

	while (processes && (each = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%s/task", each->d_name);
		if (stat(path, &st) == 0 && st.st_uid == uid)
			n += st.st_nlink > 2 ? (unsigned int)st.st_nlink - 2 : 1;
	}
	if (processes)
		closedir(processes);
	return n;
}

void report(const struct sandbox *box, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vdprintf(box->report, format, args);
	va_end(args);
}

/* Start the program; its number, and `channel` is the supervisor's end. -1 and errno. */
static pid_t start(struct sandbox *box)
{
	unsigned long flags = SIGCHLD;
	unsigned int n_others = 0;
	int ends[2];
	pid_t pid;

	if (box->has_namespaces)
		flags |= NEW_NAMESPACES | (geteuid() ? CLONE_NEWUSER : 0);
	if (!box->has_namespaces || box->changes_user)
		n_others = count_tasks(box->changes_user ? box->uid : getuid());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		die("socketpair: %s", strerror(errno));
	pid = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
	if (pid == 0) {
		close(ends[0]);
		channel = ends[1];
		become_program(box, n_others);
	}
	close(ends[1]);
	channel = ends[0];
	if (pid < 0)
		close(channel);
	return pid;
}

/* The first message: the listener's descriptor; else -1, and `text` says why. */
static int receive(char text[TEXT_MAX])
{
	char space[CMSG_SPACE(sizeof(int))];
	struct iovec data = { text, TEXT_MAX - 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	struct cmsghdr *header;
	ssize_t n;
	int fd = -1;

	do {
		n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	text[n > 0 ? n : 0] = '\0';
	header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static void ignore(int number)
{
	(void)number;
}

enum {
	PROGRAM_ENDED,
	PROGRAM_ASKS,
	READER,
	CHANNEL,
	N_POLLED,
};

/* Nothing that the supervisor opens for the program keeps it longer than the time of that. */
static void interrupt_after(int seconds)
{
	const struct itimerval each = { .it_interval = { 1, 0 }, .it_value = { seconds, 0 } };
	struct sigaction action = { .sa_handler = ignore };

	sigaction(SIGALRM, &action, NULL); /* without SA_RESTART */
	setitimer(ITIMER_REAL, &each, NULL);
}

/* Until the program ends; true when its time is over or nobody waits for it. */
static bool watch(const struct sandbox *box, pid_t program, int ended, int listener,
		  char text[TEXT_MAX])
{
	uint64_t now, end = monotonic_ns() + (uint64_t)box->seconds * 1000000000u;
	struct pollfd polled[N_POLLED] = {
		[PROGRAM_ENDED] = { .fd = ended, .events = POLLIN },
		[PROGRAM_ASKS] = { .fd = listener, .events = POLLIN },
		[READER] = { .fd = box->report, .events = 0 },
		[CHANNEL] = { .fd = channel, .events = POLLIN },
	};

	interrupt_after(box->seconds);
	for (;;) {
		now = monotonic_ns();
		if (now >= end)
			return true;
		if (poll(polled, N_POLLED, (int)((end - now) / 1000000u) + 1) < 0)
			continue;
		if (polled[READER].revents & POLLERR)
			return true;
		if (polled[CHANNEL].revents) {
			ssize_t n = recv(channel, text, TEXT_MAX - 1, 0);

			text[n > 0 ? n : 0] = '\0';
			polled[CHANNEL].fd = -1; /* it runs, or has said why not */
		}
		if (polled[PROGRAM_ASKS].revents & POLLIN)
			answer(box, listener, program);
		else if (polled[PROGRAM_ASKS].revents)
			polled[PROGRAM_ASKS].fd = -1;
		if (polled[PROGRAM_ENDED].revents)
			return false;
	}
}

/* What the program left, which is this process's now. */
static void kill_rest(void)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (;;) {
		file = fopen(path, "re");
		if (!file)
			return;
		while (fscanf(file, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		fclose(file);
		if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
			return;
	}
}

static void supervise(const struct sandbox *box, pid_t program, int listener, char text[TEXT_MAX])
{
	int status = 0, ended = (int)syscall(SYS_pidfd_open, program, 0);
	bool is_late = ended < 0 || watch(box, program, ended, listener, text);

	if (is_late)
		kill(program, SIGKILL);
	kill(-program, SIGKILL); /* its session */
	waitpid(program, &status, 0);
	kill_rest();
	if (is_late)
		report(box, "timeout\n");
	else if (*text)
		report(box, "%s\n", text);
	else if (WIFSIGNALED(status))
		report(box, "signal %d\n", WTERMSIG(status));
	else
		report(box, "exit %d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	struct sandbox box = {
		.program = -1, .report = -1, .seconds = 60, .megabytes = 1024,
		.output_megabytes = 64, .processes = 64,
	};
	char text[TEXT_MAX] = "";
	int listener;
	pid_t program;

	program_start();
	box.uid = geteuid();
	box.gid = getegid();
	take_options(&box, argc, argv);
	if (syscall(SYS_close_range, 3u, ~0u, CLOSE_ON_EXEC) < 0)
		die("close_range: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	personality(PER_LINUX);
	umask(077);
	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	program = start(&box);
	listener = program < 0 ? -1 : receive(text);
	if (box.has_namespaces && (program < 0 || strncmp(text, AGAIN, strlen(AGAIN)) == 0)) {
		if (program > 0)
			waitpid(program, NULL, 0);
		box.has_namespaces = box.has_scratch = false;
		program = start(&box);
		listener = program < 0 ? -1 : receive(text);
	}
	if (program < 0)
		die("fork: %s", strerror(errno));
	if (user_become(&box) < 0 || user_drop_capabilities(&box) < 0) {
		report(&box, "missing becoming user %d: %s\n", (int)box.uid, strerror(errno));
		return 0; /* the program ends with its supervisor */
	}
	if (listener < 0) {
		waitpid(program, NULL, 0);
		report(&box, "%s\n", *text ? text : "missing the process ended too early");
		return 0;
	}
	*text = '\0';
	supervise(&box, program, listener, text);
	return 0;
}
