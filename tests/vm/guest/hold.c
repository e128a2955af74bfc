// SPDX-License-Identifier: Apache-2.0
/*
 * hold: a thread whose rename() has failed and who does not come back to user space: what the module
 * left for its way there reads the name, and the page of that is not served (userfaultfd(2)). The
 * name lies in two pages. The call itself has read the first when the second is served, and only
 * then the first is taken away. Writes a line to standard output when the thread is held; SIGTERM
 * lets it go.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define NAME "/no/such/directory/name"
#define IN_FIRST 8 /* bytes of it */

static _Alignas(PAGE) char content[2 * PAGE]; /* of both pages */
static char *pages;
static int faults;
static volatile bool held;

static void check(long result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "hold: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void serve(unsigned int page)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)(pages + page * PAGE),
		.src = (uintptr_t)(content + page * PAGE),
		.len = PAGE,
	};

	check(ioctl(faults, UFFDIO_COPY, &copy), "UFFDIO_COPY");
}

static void await_fault(unsigned int page)
{
	struct uffd_msg message;
	char *wanted = pages + page * PAGE;

	check(read(faults, &message, sizeof(message)) == sizeof(message) ? 0 : -1, "read");
	if (message.event == UFFD_EVENT_PAGEFAULT &&
	    (char *)(uintptr_t)(message.arg.pagefault.address & -PAGE) == wanted)
		return;
	fprintf(stderr, "hold: another fault than that of page %u\n", page);
	exit(125);
}

static void prepare(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	strcpy(content + PAGE - IN_FIRST, NAME);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	check(faults, "userfaultfd");
	check(ioctl(faults, UFFDIO_API, &api), "UFFDIO_API");
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(pages == MAP_FAILED ? -1 : 0, "mmap");
	range.range.start = (uintptr_t)pages;
	range.range.len = 2 * PAGE;
	check(ioctl(faults, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	serve(0);
}

static void *fail(void *argument)
{
	syscall(SYS_renameat, AT_FDCWD, pages + PAGE - IN_FIRST, AT_FDCWD, "/no/such/place");
	if (held)
		return argument;
	fprintf(stderr, "hold: nothing looked at the name again: is this task traced?\n");
	exit(125);
}

int main(void)
{
	pthread_t thread;
	sigset_t go;
	int number;

	sigemptyset(&go);
	sigaddset(&go, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &go, NULL);
	prepare();
	errno = pthread_create(&thread, NULL, fail, NULL);
	check(-errno, "pthread_create");
	await_fault(1);
	check(madvise(pages, PAGE, MADV_DONTNEED), "madvise");
	serve(1);
	await_fault(0);
	held = true;
	puts("held");
	fflush(stdout);
	sigwait(&go, &number);
	serve(0);
	pthread_join(thread, NULL);
	return 0;
}
