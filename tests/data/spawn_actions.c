/* SPDX-License-Identifier: Apache-2.0 */
/* What libc does with descriptors in a child before it executes: posix_spawn's actions, and popen. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(void)
{
	char *arguments[] = { "true", NULL };
	posix_spawn_file_actions_t actions;
	FILE *pipe;
	pid_t pid;
	int status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 20, "in_child", O_CREAT | O_WRONLY, 0600);
	posix_spawn_file_actions_adddup2(&actions, 20, 21);
	posix_spawn_file_actions_addclose(&actions, 20);
	if (posix_spawn(&pid, "/bin/true", &actions, NULL, arguments, environ) ||
	    waitpid(pid, &status, 0) != pid || status)
		return 1;
	pipe = popen("exec true", "r");
	return !pipe || pclose(pipe);
}
