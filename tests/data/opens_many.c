/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a file as often as its argument says. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	while (n-- > 0)
		close(open("/etc/passwd", O_RDONLY));
	return 0;
}
