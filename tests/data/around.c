// SPDX-License-Identifier: Apache-2.0
/*
 * Ways around a tracer that watches calls by a seccomp filter: `around WAY FILE` opens FILE.
 *
 *	handle		by open_by_handle_at (root)
 *	listener	under a filter whose listener lets every open and close go on unseen
 *	untraced	in a child made by clone3(CLONE_UNTRACED) with arguments that nobody can write
 *	clone		in a child made by clone(CLONE_UNTRACED)
 *
 * It prints the descriptor that it got, and ends with 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int by_handle(const char *name)
{
	struct {
		struct file_handle handle;
		unsigned char bytes[MAX_HANDLE_SZ];
	} file = { .handle.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;

	if (name_to_handle_at(AT_FDCWD, name, &file.handle, &mount_id, 0) < 0)
		die("name_to_handle_at");
	return open_by_handle_at(AT_FDCWD, &file.handle, O_RDONLY);
}

static int install_listener(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &program);
}

/* Let every call of the child go on. */
static void supervise(int listener)
{
	struct pollfd ready = { .fd = listener, .events = POLLIN };

	while (poll(&ready, 1, -1) == 1 && !(ready.revents & POLLHUP)) {
		struct seccomp_notif call = { 0 };
		struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
			continue;
		answer.id = call.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static int open_in_child(const char *name)
{
	int fd = open(name, O_RDONLY);

	if (fd < 0)
		_exit(1);
	printf("%d\n", fd);
	fflush(stdout);
	close(fd);
	_exit(0);
}

static int end_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) != pid)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* The supervisor shares the child's descriptors until it has the listener for itself. */
static int under_listener(const char *name)
{
	volatile int *listener = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	*listener = -1;
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		int fd = install_listener();

		*listener = fd < 0 ? -2 : fd;
		open_in_child(name);
	}
	while (*listener == -1)
		usleep(1000);
	if (*listener < 0)
		die("seccomp");
	supervise(*listener);
	return end_of(pid);
}

/* The first argument's register must be what it was: compilers rely on it. */
static pid_t raw_clone3(void *args, size_t size)
{
#if defined(__x86_64__)
	register long result __asm__("rax") = SYS_clone3;
	void *first = args;

	__asm__ volatile("syscall" : "+a"(result), "+D"(first) : "S"(size) : "rcx", "r11", "memory");
	if (first != args)
		_exit(98);
	return (pid_t)result;
#else
	return (pid_t)syscall(SYS_clone3, args, size);
#endif
}

static int untraced(const char *name)
{
	struct clone_args args = { .flags = CLONE_UNTRACED, .exit_signal = SIGCHLD };
	int fd = memfd_create("args", 0);
	void *sealed;
	pid_t pid;

	if (fd < 0 || write(fd, &args, sizeof(args)) != sizeof(args))
		die("memfd");
	/* shared and read-only: not even ptrace may write there */
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
	sealed = mmap(NULL, sizeof(args), PROT_READ, MAP_SHARED, fd, 0);
	if (sealed == MAP_FAILED)
		die("mmap");
	pid = raw_clone3(sealed, sizeof(args));
	if (pid == 0)
		open_in_child(name);
	return end_of(pid);
}

static int by_clone(const char *name)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		open_in_child(name);
	return end_of(pid);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "listener"))
		return under_listener(argv[2]);
	if (!strcmp(argv[1], "untraced"))
		return untraced(argv[2]);
	if (!strcmp(argv[1], "clone"))
		return by_clone(argv[2]);
	fd = by_handle(argv[2]);
	if (fd < 0)
		die("open_by_handle_at");
	printf("%d\n", fd);
	return 0;
}
