// SPDX-License-Identifier: Apache-2.0
/*
 * servers KIND FOLDER: a program that is the server of a file system, or waits for one, and makes the
 * calls that the kernel ends without asking it. If tracing asks instead, the program hangs: an alarm
 * ends it. Each kind mounts FOLDER:
 *
 * fuse	one thread, which answers nothing once it has mounted: symlink to a file of its own, renames,
 *	mounts and unmounts that fail before the kernel looks their paths up
 * exec	two threads: the first serves, the second executes a program through a symlink that the first
 *	serves, and so ends the first
 * pages	a failing rename whose name lies in two pages that the program serves itself (userfaultfd(2)):
 *	when the call has read the first, that is taken away for ever
 * autofs a symlink to a place that would be mounted when somebody looked at it; prints `asked` when
 *	somebody has
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 30 /* of a guest that is emulated */
#define NOWHERE ((const char *)8)
#define LINK_INODE 2
#define PROGRAM "/run/bin/busybox"

static char *folder;
static int device;

static long check(long result, const char *what)
{
	if (result >= 0)
		return result;
	fprintf(stderr, "servers: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must_fail(long result, int error, const char *what)
{
	if (result == -1 && errno == error)
		return;
	fprintf(stderr, "servers: %s: %ld, %s instead of %s\n", what, result, strerror(errno),
		strerror(error));
	exit(1);
}

static const char *inside(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* ---- FUSE ---- */

static void answer(const struct fuse_in_header *request, const void *data, size_t size, int error)
{
	char bytes[4096];
	struct fuse_out_header header = { sizeof(header) + size, -error, request->unique };

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), data, size);
	check(write(device, bytes, header.len), "an answer");
}

static struct fuse_attr attributes(uint64_t inode)
{
	return (struct fuse_attr){
		.ino = inode,
		.mode = inode == LINK_INODE ? S_IFLNK | 0777 : S_IFDIR | 0755,
		.nlink = 1,
	};
}

static void serve_one(const struct fuse_in_header *request)
{
	const char *name = (const char *)(request + 1);
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = LINK_INODE, .attr = attributes(LINK_INODE) };
	struct fuse_attr_out attr = { .attr = attributes(request->nodeid) };

	switch (request->opcode) {
	case FUSE_INIT:
		answer(request, &init, sizeof(init), 0);
		break;
	case FUSE_LOOKUP:
		answer(request, &entry, strcmp(name, "link") ? 0 : sizeof(entry),
		       strcmp(name, "link") ? ENOENT : 0);
		break;
	case FUSE_GETATTR:
		answer(request, &attr, sizeof(attr), 0);
		break;
	case FUSE_READLINK:
		answer(request, PROGRAM, strlen(PROGRAM), 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(request, NULL, 0, ENOSYS);
	}
}

static void serve(void)
{
	static union {
		struct fuse_in_header header;
		char bytes[FUSE_MIN_READ_BUFFER + 4096];
	} request;

	check(read(device, &request, sizeof(request)), "a request");
	serve_one(&request.header);
}

static void mount_fuse(void)
{
	char options[64];

	device = (int)check(open("/dev/fuse", O_RDWR), "/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0", device);
	check(mount("servers", folder, "fuse", 0, options), "mount of FUSE");
	serve(); /* FUSE_INIT */
}

static void run_fuse(void)
{
	mount_fuse();
	check(symlink(inside("file"), "to-own"), "symlink");
	check(symlink(inside("."), "to-root"), "symlink to the root of the mount");
	must_fail(rename(inside("file"), NOWHERE), EFAULT, "rename");
	must_fail(renameat(AT_FDCWD, inside("file"), AT_FDCWD, NOWHERE), EFAULT, "renameat");
	must_fail(umount2(inside("file"), 0x4000), EINVAL, "umount2");
	must_fail(syscall(SYS_mount, NULL, inside("file"), NOWHERE, 0, NULL), EFAULT, "mount");
}

static void *execute(void *unused)
{
	(void)unused;
	execl(inside("link"), "busybox", "true", (char *)NULL);
	check(-1, "exec");
	return NULL;
}

static void run_exec(void)
{
	pthread_t thread;

	mount_fuse();
	if (pthread_create(&thread, NULL, execute, NULL))
		exit(1);
	for (;;) /* until the execution ends this thread */
		serve();
}

/* ---- pages ---- */

#define PAGE 4096
#define NAME "/no/such/directory/name"
#define IN_FIRST 8 /* bytes of it */

static _Alignas(PAGE) char content[2 * PAGE];
static char *pages; /* that are filled with it, each when it is served */

static void serve_page(unsigned int page)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)(pages + page * PAGE),
		.src = (uintptr_t)(content + page * PAGE),
		.len = PAGE,
	};

	check(ioctl(device, UFFDIO_COPY, &copy), "UFFDIO_COPY");
}

static void make_pages(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	strcpy(content + PAGE - IN_FIRST, NAME);
	device = (int)check(syscall(SYS_userfaultfd, O_CLOEXEC), "userfaultfd");
	check(ioctl(device, UFFDIO_API, &api), "UFFDIO_API");
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(pages == MAP_FAILED ? -1 : 0, "mmap");
	range.range = (struct uffdio_range){ (uintptr_t)pages, 2 * PAGE };
	check(ioctl(device, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	serve_page(0);
}

static void *fail_to_rename(void *unused)
{
	must_fail(renameat(AT_FDCWD, pages + PAGE - IN_FIRST, AT_FDCWD, "/no/such/place"), ENOENT,
		  "renameat");
	return unused;
}

static void run_pages(void)
{
	struct uffd_msg fault;
	pthread_t thread;

	make_pages();
	if (pthread_create(&thread, NULL, fail_to_rename, NULL))
		exit(1);
	check(read(device, &fault, sizeof(fault)), "a fault"); /* of the second page */
	check(madvise(pages, PAGE, MADV_DONTNEED), "madvise");
	serve_page(1);
	pthread_join(thread, NULL);
}

/* ---- autofs ---- */

/* Whoever is in the group of its server sees an autofs as it is. */
static int visit(void)
{
	int status;
	pid_t child = (pid_t)check(fork(), "fork");

	if (!child) {
		setpgid(0, 0);
		alarm(PATIENCE_S);
		check(symlink(inside("place"), "to-autofs"), "symlink");
		_exit(0);
	}
	check(waitpid(child, &status, 0), "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void run_autofs(void)
{
	char options[96];
	struct pollfd asked = { .events = POLLIN };
	int pipes[2], status;

	setpgid(0, 0);
	check(pipe(pipes), "pipe");
	snprintf(options, sizeof(options), "fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect",
		 pipes[1], getpgrp());
	check(mount("servers", folder, "autofs", 0, options), "mount of autofs");
	status = visit();
	asked.fd = pipes[0];
	if (poll(&asked, 1, 0) > 0)
		puts("asked");
	exit(status);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	folder = argv[2];
	if (!strcmp(argv[1], "autofs"))
		run_autofs();
	alarm(PATIENCE_S);
	if (!strcmp(argv[1], "fuse"))
		run_fuse();
	else if (!strcmp(argv[1], "exec"))
		run_exec();
	else if (!strcmp(argv[1], "pages"))
		run_pages();
	else
		return 2;
	return 0;
}
