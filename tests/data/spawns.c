/* SPDX-License-Identifier: Apache-2.0 */
/* Starts /bin/true by every function of libc that can, each time with its name as the argument. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "/bin/true"

static char *empty[] = { NULL };

static void wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		exit(1);
}

static void by_exec(int way)
{
	static char *const names[] = { "execl", "execle", "execlp", "execv", "execve", "execvp",
				       "execvpe", "execveat", "fexecve" };
	char *argv[] = { "true", names[way], NULL };
	char *name = names[way];
	pid_t pid = way % 2 ? fork() : vfork();

	if (pid) {
		wait_for(pid);
		return;
	}
	switch (way) {
	case 0:
		execl(PROGRAM, "true", name, NULL);
		break;
	case 1:
		execle(PROGRAM, "true", name, NULL, empty);
		break;
	case 2:
		execlp("true", "true", name, NULL);
		break;
	case 3:
		execv(PROGRAM, argv);
		break;
	case 4:
		execve(PROGRAM, argv, empty);
		break;
	case 5:
		execvp("true", argv);
		break;
	case 6:
		execvpe("true", argv, empty);
		break;
	case 7:
		execveat(AT_FDCWD, PROGRAM, argv, empty, 0);
		break;
	default:
		fexecve(open(PROGRAM, O_RDONLY | O_CLOEXEC), argv, empty);
	}
	_exit(99);
}

int main(void)
{
	char *spawn[] = { "true", "posix_spawn", NULL };
	char *spawnp[] = { "true", "posix_spawnp", NULL };
	pid_t pid;
	int way;

	for (way = 0; way < 9; way++)
		by_exec(way);
	wait_for(posix_spawn(&pid, PROGRAM, NULL, NULL, spawn, empty) ? -1 : pid);
	wait_for(posix_spawnp(&pid, "true", NULL, NULL, spawnp, empty) ? -1 : pid);
	clearenv();
	if (system("exec /bin/true system"))
		return 1;
	if (pclose(popen("exec /bin/true popen", "r")))
		return 1;
	return 0;
}
