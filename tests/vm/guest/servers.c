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
 * pages	a failing rename whose name is in two pages that the program serves itself (userfaultfd(2)):
 *	when the call has read the first, that is taken away forever
 * away	names and structures in pages of a file in memory, which another thread unmaps while the call
 *	waits: opens of a FIFO, which has to find its other end, and a pipe2 that a seccomp filter answers
 *	without writing the page. Nobody has to be asked for the pages
 * autofs a symlink to a place that would be mounted when somebody looked at it; prints `asked` when
 *	somebody has
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fuse.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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

/* ---- pages that are away ---- */

#define WAITING 'S' /* in /proc/PID/stat */
#define FIFO "./fifo"
#define NAME_AT 8
#define HOW_AT 64

struct opener {
	const char *what;
	long (*open)(void);
	int other_end; /* how the other end is opened */
	pid_t tid;
};

static char *away; /* a page with a name and a struct open_how */

static long open_by_name(void)
{
	return syscall(SYS_openat, AT_FDCWD, away + NAME_AT, O_RDONLY, 0);
}

#ifdef SYS_open
static long open_old(void)
{
	return syscall(SYS_open, away + NAME_AT, O_RDONLY, 0);
}

static long create(void)
{
	return syscall(SYS_creat, away + NAME_AT, 0600);
}
#endif

static long open_by_how(void)
{
	return syscall(SYS_openat2, AT_FDCWD, away + NAME_AT, away + HOW_AT, 24);
}

static void *open_fifo(void *argument)
{
	struct opener *opener = argument;
	long fd;

	__atomic_store_n(&opener->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	fd = check(opener->open(), opener->what);
	check(close((int)fd), "close");
	return NULL;
}

/* Until the thread sleeps in its call, which is the only thing in it that does. */
static void wait_until_it_sleeps(const struct opener *opener)
{
	char path[64], line[256], *state;
	ssize_t n;
	int fd;

	for (;;) {
		pid_t tid = __atomic_load_n(&opener->tid, __ATOMIC_ACQUIRE);

		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
		fd = tid ? open(path, O_RDONLY) : -1;
		if (fd >= 0) {
			n = check(read(fd, line, sizeof(line) - 1), path);
			line[n] = '\0';
			close(fd);
			state = strrchr(line, ')');
			if (state && state[2] == WAITING)
				return;
		}
		sched_yield();
	}
}

static void open_while_it_goes(struct opener *opener)
{
	pthread_t thread;
	int fd;

	if (pthread_create(&thread, NULL, open_fifo, opener))
		exit(1);
	wait_until_it_sleeps(opener);
	check(madvise(away, PAGE, MADV_DONTNEED), "madvise");
	fd = (int)check(open("fifo", opener->other_end), "the other end");
	pthread_join(thread, NULL);
	check(close(fd), "close");
}

/* The descriptors are those of a pipe that is there, in a page that the call does not touch. */
static void answer_pipe(int memory)
{
	struct sock_filter pipe2_is_zero[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pipe2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, pipe2_is_zero };
	int fds[2];

	check(pipe2(fds, O_CLOEXEC), "pipe2");
	check(pwrite(memory, fds, sizeof(fds), 0), "the descriptors");
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
	check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "a filter");
	check(madvise(away, PAGE, MADV_DONTNEED), "madvise");
	check(syscall(SYS_pipe2, away, 0), "the answered pipe2");
}

static void run_away(void)
{
	struct opener openers[] = {
		{ "openat", open_by_name, O_WRONLY, 0 },
		{ "openat2", open_by_how, O_WRONLY, 0 },
#ifdef SYS_open
		{ "open", open_old, O_WRONLY, 0 },
		{ "creat", create, O_RDONLY, 0 },
#endif
	};
	int memory = (int)check(open("pages", O_RDWR | O_CREAT, 0600), "a file");

	check(pwrite(memory, FIFO, sizeof(FIFO), NAME_AT), "the name");
	check(ftruncate(memory, PAGE), "ftruncate"); /* how: zeros, so O_RDONLY */
	away = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, memory, 0);
	check(away == MAP_FAILED ? -1 : 0, "mmap");
	check(mkfifo("fifo", 0600), "mkfifo");
	for (size_t i = 0; i < sizeof(openers) / sizeof(*openers); i++)
		open_while_it_goes(&openers[i]);
	answer_pipe(memory);
}

/* ---- autofs ---- */

/* Whoever is in the group of its server sees the autofs itself. */
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
	else if (!strcmp(argv[1], "away"))
		run_away();
	else
		return 2;
	return 0;
}
