// SPDX-License-Identifier: Apache-2.0
/*
 * Which cores a program sees that it may run on, asked again and again between calls that a tracer
 * stops: by sched_getaffinity(), in /proc/self/status, and in children. Prints each answer once.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 1000

static void stop_a_little(void)
{
	close(dup(0));
	close(dup(0));
}

static void print_once(const char *where, const char *text)
{
	static char seen[64][256];
	char line[256];
	int i;

	snprintf(line, sizeof(line), "%s: %s", where, text);
	for (i = 0; i < 64 && seen[i][0]; i++)
		if (!strcmp(seen[i], line))
			return;
	if (i < 64)
		strcpy(seen[i], line);
	puts(line);
	fflush(stdout);
}

static void ask_call(const char *where)
{
	char count[16];
	cpu_set_t set;

	stop_a_little();
	sched_getaffinity(0, sizeof(set), &set);
	snprintf(count, sizeof(count), "%d", CPU_COUNT(&set));
	print_once(where, count);
}

static void ask_status(int status)
{
	char text[8192];
	ssize_t len;
	char *line;

	stop_a_little();
	len = pread(status, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	line = strstr(text, "Cpus_allowed_list:");
	if (line)
		line[strcspn(line, "\n")] = '\0';
	print_once("status", line ? line : "none");
}

static void ask_child(void)
{
	char count[16];
	int status;
	pid_t pid;

	stop_a_little();
	pid = fork();
	if (pid == 0) {
		cpu_set_t set;

		sched_getaffinity(0, sizeof(set), &set);
		_exit(CPU_COUNT(&set) & 0xff);
	}
	waitpid(pid, &status, 0);
	snprintf(count, sizeof(count), "%d", WEXITSTATUS(status));
	print_once("child", count);
}

int main(void)
{
	cpu_set_t one;
	int status;
	int i;

	for (i = 0; i < ROUNDS; i++)
		ask_call("call");
	for (i = 0; i < ROUNDS / 20; i++)
		ask_child();
	status = open("/proc/self/status", O_RDONLY);
	for (i = 0; i < ROUNDS; i++)
		ask_status(status);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	stop_a_little();
	sched_setaffinity(0, sizeof(one), &one);
	for (i = 0; i < ROUNDS; i++)
		ask_call("one core");
	return 0;
}
