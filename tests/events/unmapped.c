// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Paths at the end of a mapping: read whole, and no further; a string without an end fails. */
#include "expect.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, (size_t)page * 3, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = map + 2 * page;
	char *name;
	long fd;

	MUST(map == MAP_FAILED ? -1 : 0);
	MUST(munmap(end, (size_t)page));
	make_file("file");
	for (size_t len = 6; len < 40; len++) {
		name = end - len - 1;
		memset(name, '/', len);
		name[0] = '.';
		memcpy(name + len - 4, "file", 5);
		fd = MUST(open(name, O_RDONLY));
		expect_open(&task, here("file"), here(name), O_RDONLY, 0, fd);
		MUST(close((int)fd));
		expect(&task, "Close|fd=%ld", fd);
	}
	/* over the border of two pages */
	name = memcpy(map + page - 3, "./file", 7);
	fd = MUST(open(name, O_RDONLY));
	expect_open(&task, here("file"), here("./file"), O_RDONLY, 0, fd);
	/* no null byte before the end of the mapping */
	memset(end - 10, 'x', 10);
	MUST_FAIL(open(end - 10, O_RDONLY), EFAULT);
	MUST_FAIL(rename(end - 10, "x"), EFAULT);
	expect(&task, "RenameFailed|");
	leave(&task, 0);
}
