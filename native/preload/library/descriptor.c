// SPDX-License-Identifier: Apache-2.0
/* close*, dup*, fcntl, pipe*. */
#include "record.h"

#define F_DUPFD 0
#define F_DUPFD_CLOEXEC 1030
#define CLOSE_RANGE_CLOEXEC 4u

int close(int fd);

PUBLIC int close(int fd)
{
	__typeof__(&close) next = has_threads() ? NEXT(close) : NULL;
	int result = next ? next(fd) : (int)with_errno(CALL1(__NR_close, fd));
	int *error;

	if (!ring_is_on())
		return result;
	error = result < 0 ? __errno_location() : NULL;
	if (!error || *error != EBADF)
		record_put(RING_CLOSE, fd, 0, 0);
	return result;
}

PUBLIC int close_range(unsigned int first, unsigned int last, int flags)
{
	long result = CALL3(__NR_close_range, first, last, flags);

	if (!result && !((unsigned int)flags & CLOSE_RANGE_CLOEXEC))
		record_put(RING_CLOSE_RANGE, (int)first, (int)last, 0);
	return (int)with_errno(result);
}

void closefrom(int first);

PUBLIC void closefrom(int first)
{
	__typeof__(&closefrom) next = NEXT(closefrom);

	if (!next)
		return;
	next(first);
	record_put(RING_CLOSE_RANGE, first < 0 ? 0 : first, -1, 0);
}

static int dup_by(long n, int from, long to, long more, int flags)
{
	long result = CALL3(n, from, to, more);

	if (result >= 0)
		record_put(RING_DUP, from, (int)result, flags);
	return (int)with_errno(result);
}

PUBLIC int dup(int fd)
{
	return dup_by(__NR_dup, fd, 0, 0, 0);
}

PUBLIC int dup2(int from, int to)
{
#ifdef __NR_dup2
	return dup_by(__NR_dup2, from, to, 0, 0);
#else
	if (from == to) {
		long flags = CALL3(__NR_fcntl, from, 1, 0);

		return (int)with_errno(flags < 0 ? flags : to);
	}
	return dup_by(__NR_dup3, from, to, 0, 0);
#endif
}

PUBLIC int dup3(int from, int to, int flags)
{
	return dup_by(__NR_dup3, from, to, flags, flags & O_CLOEXEC);
}

int fcntl(int fd, int command, ...);

static int record_fcntl(int fd, int command, void *argument)
{
	__typeof__(&fcntl) next;

	if (command == F_DUPFD)
		return dup_by(__NR_fcntl, fd, command, (long)argument, 0);
	if (command == F_DUPFD_CLOEXEC)
		return dup_by(__NR_fcntl, fd, command, (long)argument, O_CLOEXEC);
	next = NEXT(fcntl); /* libc changes some of the commands */
	return next ? next(fd, command, argument) : (int)with_errno(-ENOSYS);
}

#define ARGUMENT(last) \
	({ \
		va_list list_; \
		void *argument_; \
		va_start(list_, last); \
		argument_ = va_arg(list_, void *); \
		va_end(list_); \
		argument_; \
	})

PUBLIC int fcntl(int fd, int command, ...)
{
	return record_fcntl(fd, command, ARGUMENT(command));
}

int fcntl64(int fd, int command, ...);

PUBLIC int fcntl64(int fd, int command, ...)
{
	__typeof__(&fcntl64) next;

	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return record_fcntl(fd, command, ARGUMENT(command));
	next = NEXT(fcntl64);
	return next ? next(fd, command, ARGUMENT(command))
		    : record_fcntl(fd, command, ARGUMENT(command));
}

static int pipe_by(int *fds, int flags)
{
	long result = CALL2(__NR_pipe2, fds, flags);

	if (!result)
		record_put(RING_PIPE, fds[0], fds[1], flags);
	return (int)with_errno(result);
}

PUBLIC int pipe(int *fds)
{
	return pipe_by(fds, 0);
}

PUBLIC int pipe2(int *fds, int flags)
{
	return pipe_by(fds, flags);
}
