// SPDX-License-Identifier: Apache-2.0
/* `descriptors N`: N rounds of each close and dup whose result is known before, and little else. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	while (n--) {
		dup2(STDIN_FILENO, 40);
		dup3(40, 41, O_CLOEXEC);
		close(fcntl(40, F_DUPFD, 10));
		close(dup(41));
		close(40);
		close(41);
		close(42); /* not open */
		close(eventfd(0, 0)); /* made by no traced call */
	}
	return 0;
}
