// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A 64-bit program may make 32-bit calls (int 0x80): numbers and structures are those of i386.
 * only: 64
 * machine: x86_64
 */
#include "expect.h"

#include <sys/mman.h>

enum i386_call { I386_OPEN = 5, I386_CLOSE = 6, I386_CREAT = 8, I386_RENAME = 38, I386_DUP2 = 63,
		 I386_PIPE2 = 331, I386_OPENAT = 295 };

static long call32(enum i386_call number, long a, long b, long c, long d)
{
	long result;

	asm volatile("int $0x80"
		     : "=a"(result)
		     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

/* A copy that 32 bits can point at. */
static long low(const char *string)
{
	static char *page;
	static size_t used;

	if (!page)
		page = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (page == MAP_FAILED)
		die("mmap");
	used += 256;
	return (long)strcpy(page + used, string);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long fd, fds = low("        ");

	make_file("file");
	fd = MUST(call32(I386_OPEN, low("file"), O_RDWR, 0, 0));
	expect_open(&task, here("file"), here("file"), O_RDWR, 0, fd);
	fd = MUST(call32(I386_OPENAT, AT_FDCWD, low("./file"), O_RDONLY, 0));
	expect_open(&task, here("file"), here("./file"), O_RDONLY, 0, fd);
	MUST(call32(I386_DUP2, fd, 33, 0, 0));
	expect(&task, "Dup|oldfd=%ld,newfd=33,flags=0", fd);
	MUST(call32(I386_CLOSE, 33, 0, 0, 0));
	expect(&task, "Close|fd=33");
	MUST(call32(I386_PIPE2, fds, O_CLOEXEC, 0, 0));
	expect(&task, "Pipe|fd1=%d,fd2=%d,flags=%d", ((int *)fds)[0], ((int *)fds)[1], O_CLOEXEC);
	fd = MUST(call32(I386_CREAT, low("new"), 0644, 0, 0));
	expect_open(&task, here("new"), here("new"), O_CREAT | O_WRONLY | O_TRUNC, 0644, fd);
	MUST(call32(I386_RENAME, low("new"), low("newer"), 0, 0));
	expect_path(&task, "RenameFrom", "RF", here("new"), -1);
	expect_path(&task, "RenameTo", "RT", here("newer"), -1);
	leave(&task, 0);
}
