// SPDX-License-Identifier: Apache-2.0
/* Opens and closes one file N times: the cost of an open and a close, and nothing else. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;

	while (n-- > 0) {
		int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

		if (fd < 0 || close(fd))
			return 1;
	}
	return 0;
}
