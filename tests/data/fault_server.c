// SPDX-License-Identifier: Apache-2.0
/*
 * A rename whose name is in a page that another process of the same build brings in when it is
 * touched (userfaultfd), after calls that a tracer stops: `fault_server FOLDER` renames `a` to `b`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *serve(void *argument)
{
	int faults = *(int *)argument;
	long size = sysconf(_SC_PAGESIZE);
	char *content = calloc(1, (size_t)size);
	struct uffd_msg message;
	struct uffdio_copy copy;

	strcpy(content, "a");
	if (read(faults, &message, sizeof(message)) != sizeof(message))
		die("userfaultfd");
	close(dup(faults)); /* two calls that a tracer sees */
	copy = (struct uffdio_copy){
		.dst = message.arg.pagefault.address & ~(__u64)(size - 1),
		.src = (__u64)(unsigned long)content,
		.len = (__u64)size,
	};
	if (ioctl(faults, UFFDIO_COPY, &copy) < 0)
		die("UFFDIO_COPY");
	free(content);
	return NULL;
}

int main(int argc, char **argv)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	pthread_t server;
	char *name;

	if (argc != 2 || chdir(argv[1]) < 0 || faults < 0 || ioctl(faults, UFFDIO_API, &api) < 0)
		die("userfaultfd");
	name = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (__u64)(unsigned long)name;
	range.range.len = size;
	if (name == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &range) < 0)
		die("UFFDIO_REGISTER");
	pthread_create(&server, NULL, serve, &faults);
	if (rename(name, "b") < 0)
		die("rename");
	pthread_join(server, NULL);
	return 0;
}
