// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* write, writev, pwrite64, pwritev to standard error, and to descriptor 1 while it is a copy of it. */
#include "expect.h"

#include <sys/uio.h>

#define PIECE_BYTES 899

/* All that the program has written to standard error so far. */
static char written[8192];
static size_t n_written;

static void note(const char *bytes, size_t len)
{
	memcpy(written + n_written, bytes, len);
	n_written += len;
}

static void write_error(int fd, const char *bytes)
{
	MUST(syscall(SYS_write, fd, bytes, strlen(bytes)));
	note(bytes, strlen(bytes));
}

static void write_vectors(void)
{
	static const char one[] = "one \xff\x01", two[] = "two\n";
	struct iovec vectors[] = { { (void *)one, strlen(one) }, { NULL, 0 }, { (void *)two, 4 } };

	MUST(syscall(SYS_writev, STDERR_FILENO, vectors, 3));
	note(one, strlen(one));
	note(two, 4);
	MUST(pwritev(STDERR_FILENO, vectors, 1, 0));
	note(one, strlen(one));
	MUST(pwrite(STDERR_FILENO, two, 3, 2));
	note(two, 3);
}

/* What `echo text >&2` of a shell does. */
static void write_by_copy(const struct task *task)
{
	long kept = MUST(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 50));

	expect(task, "Dup|oldfd=1,newfd=%ld,flags=524288", kept);
	expect(task, "Dup|oldfd=2,newfd=1,flags=0");
	MUST(dup2_call(STDERR_FILENO, STDOUT_FILENO));
	write_error(STDOUT_FILENO, "by a copy\n");
	MUST(dup2_call((int)kept, STDOUT_FILENO));
	expect(task, "Dup|oldfd=%ld,newfd=1,flags=0", kept);
}

/* `exec 200>&2; echo text >&200` of a shell. */
static void write_by_high_copy(const struct task *task, int high)
{
	long kept = MUST(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 50));

	expect(task, "Dup|oldfd=1,newfd=%ld,flags=524288", kept);
	MUST(dup2_call(STDERR_FILENO, high));
	expect(task, "Dup|oldfd=2,newfd=%d,flags=0", high);
	expect(task, "Dup|oldfd=%d,newfd=1,flags=0", high);
	MUST(dup2_call(high, STDOUT_FILENO));
	write_error(STDOUT_FILENO, "by a high copy\n");
	MUST(dup2_call((int)kept, STDOUT_FILENO));
	expect(task, "Dup|oldfd=%ld,newfd=1,flags=0", kept);
	MUST(close(high));
	expect(task, "Close|fd=%d", high);
}

static void expect_written(const struct task *task)
{
	size_t at = 0;

	while (at < n_written) {
		size_t len = n_written - at < PIECE_BYTES ? n_written - at : PIECE_BYTES;
		char piece[PIECE_BYTES + 1] = "";

		memcpy(piece, written + at, len);
		expect(task, "Written|fd=2,cut=0,size=%zu", len);
		expect_string(task, "OU", piece);
		at += len;
	}
}

int main(int argc, char **argv)
{
	static const int high[] = { 63, 64, 65, 127, 128, 200, 255, 1000 };
	struct task task = expect_start(argc, argv);
	long fd = MUST(open_call("err", O_CREAT | O_WRONLY, 0600));

	expect_open(&task, here("err"), here("err"), O_CREAT | O_WRONLY, 0600, fd);
	MUST(dup2_call((int)fd, STDERR_FILENO));
	expect(&task, "Dup|oldfd=%ld,newfd=2,flags=0", fd);
	write_error(STDERR_FILENO, "a line\n");
	MUST(syscall(SYS_write, fd, "elsewhere", 9));
	MUST_FAIL(syscall(SYS_write, STDERR_FILENO, WILD, 3), EFAULT);
	MUST_FAIL(syscall(SYS_write, 99, "closed", 6), EBADF);
	write_vectors();
	write_by_copy(&task);
	for (size_t i = 0; i < sizeof(high) / sizeof(high[0]); i++)
		write_by_high_copy(&task, high[i]);
	write_error(STDERR_FILENO, repeat('x', 2000));
	expect_written(&task);
	leave(&task, 0);
}
