// SPDX-License-Identifier: Apache-2.0
/* ptrace refused: to this tracer when it starts, to debuggers and tracers of the build later. */
#include "task/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "capture/report.h"

#define CAP_SYS_PTRACE_BIT 19
#define MAX_NOTES 16 /* a build that runs its tests under gdb would fill the screen */
#define NOTE_MAX 320

static struct note {
	char name[PROC_COMM_MAX];
	char text[NOTE_MAX];
} notes[MAX_NOTES];

static size_t n_notes;

/* Number after `field:` in /proc/self/status, or `otherwise`. */
static unsigned long long status_field(const char *field, int base, unsigned long long otherwise)
{
	char status[8192];
	const char *at;

	proc_read("/proc/self/status", status, sizeof(status));
	at = strstr(status, field);
	return at ? strtoull(at + strlen(field), NULL, base) : otherwise;
}

static void explain_yama(void)
{
	char scope[16];

	if (!proc_read("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)))
		return;
	if (scope[0] >= '2')
		say("  /proc/sys/kernel/yama/ptrace_scope is %c: %s", scope[0],
		    scope[0] == '2' ? "only root may trace; run as root, or set it to 1"
				    : "tracing is forbidden until the next boot");
}

/* Then nothing else need be wrong. */
static bool explain_tracer(void)
{
	unsigned long long pid = status_field("TracerPid:", 10, 0);

	if (pid)
		say("  this process is itself traced by process %llu (etrace, strace or a debugger "
		    "around this one): run one tracer only", pid);
	return pid != 0;
}

static void explain_container(void)
{
	bool filtered = status_field("Seccomp:", 10, 0) == 2;
	unsigned long long caps = status_field("CapEff:", 16, 0);

	if (filtered)
		say("  a seccomp profile is in force (a container?): start it with "
		    "--security-opt seccomp=unconfined, or a profile with ptrace and seccomp");
	if (geteuid() == 0 && !(caps >> CAP_SYS_PTRACE_BIT & 1))
		say("  root here lacks CAP_SYS_PTRACE: start the container with "
		    "--cap-add=SYS_PTRACE");
}

void denied_explain(const char *what, int error)
{
	say("%s was refused: %s", what, strerror(error));
	if (!explain_tracer()) {
		explain_yama();
		explain_container();
	}
	if (error == EINVAL || error == EIO || error == ENOSYS)
		say("  this kernel lacks it: Linux 5.3 with CONFIG_SECCOMP_FILTER is needed");
	die("  `etrace doctor` shows which backends work here");
}

static const char *request_name(long request)
{
	switch (request) {
	case PTRACE_TRACEME:
		return "TRACEME";
	case PTRACE_ATTACH:
		return "ATTACH";
	default:
		return "SEIZE";
	}
}

/* One note for each name: a debugger forks and tries several methods. */
static bool is_noted(const char *comm)
{
	size_t i;

	for (i = 0; i < n_notes; i++)
		if (!strcmp(notes[i].name, comm))
			return true;
	return false;
}

void denied_note(const struct task *task, long request)
{
	struct note *note = &notes[n_notes];
	char comm[PROC_COMM_MAX];

	counters.refused_ptrace++;
	if (n_notes == MAX_NOTES)
		return;
	proc_read_comm(task->tid, comm);
	if (is_noted(comm))
		return;
	n_notes++;
	strcpy(note->name, comm);
	snprintf(note->text, NOTE_MAX,
		 "'%s' (process %d) was refused ptrace (%s) because etrace traces the build "
		 "already: debuggers and tracers do not work inside a traced build",
		 comm, task->tid, request_name(request));
}

void denied_report(void)
{
	size_t i;

	for (i = 0; i < n_notes; i++)
		report_warn("%s", notes[i].text);
	if (counters.refused_ptrace > n_notes)
		say("ptrace was refused %llu times in all",
		    (unsigned long long)counters.refused_ptrace);
}
