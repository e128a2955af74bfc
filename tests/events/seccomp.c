// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Calls that a seccomp filter answers with success instead of the kernel (SECCOMP_RET_ERRNO with
 * errno 0): what did not happen is not printed. The same calls with other arguments are made.
 */
#include "expect.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define MADE_UP 60 /* a call with this descriptor is answered by the filter, one with ... */

static char name[] = "file"; /* ... a string at this address, and ... */
static int pair[2] = { -1, -1 }; /* ... a pipe into this one */

/* `argument` of the call has these low 32 bits. */
static const struct row {
	int nr;
	unsigned int argument;
	void *address; /* or the descriptor */
} rows[] = {
	{ SYS_close, 0, NULL },
	{ SYS_dup, 0, NULL },
	{ SYS_dup3, 0, NULL },
	{ SYS_fcntl, 0, NULL },
#ifdef SYS_dup2
	{ SYS_dup2, 0, NULL },
#endif
	{ SYS_pipe2, 0, pair },
	{ SYS_openat, 1, name },
	{ SYS_renameat, 1, name },
	{ SYS_renameat2, 1, name },
	{ SYS_linkat, 1, name },
	{ SYS_symlinkat, 0, name },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))
#define ROW_LEN 5

static void put_row(struct sock_filter *code, const struct row *row)
{
	size_t at = offsetof(struct seccomp_data, args) + row->argument * sizeof(uint64_t);
	uint32_t value = row->address ? (uint32_t)(uintptr_t)row->address : MADE_UP;
	struct sock_filter filter[ROW_LEN] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)row->nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
	};

	memcpy(code, filter, sizeof(filter));
}

static void install(void)
{
	struct sock_filter code[N_ROWS * ROW_LEN + 1];
	struct sock_fprog program = { .len = N_ROWS * ROW_LEN + 1, .filter = code };

	for (size_t i = 0; i < N_ROWS; i++)
		put_row(code + i * ROW_LEN, &rows[i]);
	code[N_ROWS * ROW_LEN] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* The filter has answered. */
static void is_zero(long result, const char *what)
{
	if (result)
		die(what);
}

#define MADE_UP_CALL(call) is_zero((long)(call), #call)

static void make_up(void)
{
	MADE_UP_CALL(syscall(SYS_close, MADE_UP));
	MADE_UP_CALL(syscall(SYS_dup, MADE_UP));
	MADE_UP_CALL(syscall(SYS_dup3, MADE_UP, 0, O_CLOEXEC));
	MADE_UP_CALL(syscall(SYS_dup3, MADE_UP, 41, 0));
#ifdef SYS_dup2
	MADE_UP_CALL(syscall(SYS_dup2, MADE_UP, 0));
	MADE_UP_CALL(syscall(SYS_dup2, MADE_UP, 41));
#endif
	MADE_UP_CALL(syscall(SYS_fcntl, MADE_UP, F_DUPFD, 0));
	MADE_UP_CALL(syscall(SYS_fcntl, MADE_UP, F_DUPFD_CLOEXEC, 5));
	MADE_UP_CALL(syscall(SYS_pipe2, pair, 0));
	pair[0] = STDIN_FILENO; /* open, but none that pipe() has made */
	pair[1] = MADE_UP;
	MADE_UP_CALL(syscall(SYS_pipe2, pair, 0));
	MADE_UP_CALL(syscall(SYS_openat, AT_FDCWD, name, O_RDONLY, 0));
	MADE_UP_CALL(syscall(SYS_renameat, AT_FDCWD, name, AT_FDCWD, "renamed"));
	MADE_UP_CALL(syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, "renamed", 0));
	MADE_UP_CALL(syscall(SYS_linkat, AT_FDCWD, name, AT_FDCWD, "linked", 0));
	MADE_UP_CALL(syscall(SYS_symlinkat, name, AT_FDCWD, "symbolic"));
}

static void make_names(struct task *task)
{
	MUST(syscall(SYS_renameat, AT_FDCWD, "file", AT_FDCWD, "renamed"));
	expect_path(task, "RenameFrom", "RF", here("file"), -1);
	expect_path(task, "RenameTo", "RT", here("renamed"), -1);
	MUST(syscall(SYS_renameat2, AT_FDCWD, "renamed", AT_FDCWD, "file", 0));
	expect_path(task, "Rename2From", "RF", here("renamed"), 0);
	expect_path(task, "RenameTo", "RT", here("file"), -1);
	MUST(syscall(SYS_linkat, AT_FDCWD, "file", AT_FDCWD, "linked", 0));
	expect_path(task, "LinkatFrom", "LF", here("file"), 0);
	expect_path(task, "LinkTo", "LT", here("linked"), -1);
	MUST(syscall(SYS_symlinkat, "file", AT_FDCWD, "symbolic"));
	expect_symlink(task, "file", here("file"), here("symbolic"));
}

/* With results of 0 as well: only the descriptors differ from those above. */
static void make_descriptors(struct task *task, int fd)
{
	int fds[2];

	MUST(syscall(SYS_close, STDIN_FILENO));
	expect(task, "Close|fd=0");
	is_zero(syscall(SYS_dup, fd), "dup");
	expect(task, "Dup|oldfd=%d,newfd=0,flags=0", fd);
	is_zero(syscall(SYS_dup3, fd, 0, 0), "dup3");
	expect(task, "Dup|oldfd=%d,newfd=0,flags=0", fd);
	MUST(syscall(SYS_close, STDIN_FILENO));
	expect(task, "Close|fd=0");
	is_zero(syscall(SYS_fcntl, fd, F_DUPFD, 0), "fcntl");
	expect(task, "Dup|oldfd=%d,newfd=0,flags=0", fd);
	MUST(syscall(SYS_close, STDIN_FILENO));
	expect(task, "Close|fd=0");
	is_zero(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0), "openat");
	expect_open(task, "/dev/null", "/dev/null", O_RDONLY, 0, 0);
	MUST(syscall(SYS_pipe2, fds, 0));
	expect(task, "Pipe|fd1=%d,fd2=%d,flags=0", fds[0], fds[1]);
	MUST(syscall(SYS_close, fds[0]));
	expect(task, "Close|fd=%d", fds[0]);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	int fd;

	make_file(name);
	fd = (int)MUST(open("/dev/null", O_RDONLY));
	expect_open(&task, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
	MUST(syscall(SYS_dup3, fd, MADE_UP, 0));
	expect(&task, "Dup|oldfd=%d,newfd=%d,flags=0", fd, MADE_UP);
	install();
	make_up();
	make_names(&task);
	make_descriptors(&task, fd);
	leave(&task, 0);
}
