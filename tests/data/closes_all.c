/* SPDX-License-Identifier: Apache-2.0 */
/* Closes every descriptor but the standard ones, as daemons do; then opens, forks and executes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int fd;

	for (fd = 3; fd < 4096; fd++)
		close(fd);
	fd = open("/etc/hostname", O_RDONLY);
	printf("%d\n", fd);
	fflush(stdout);
	if (fork() == 0) {
		execl("/bin/true", "true", NULL);
		_exit(99);
	}
	wait(NULL);
	return fd != 3;
}
