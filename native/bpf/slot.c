// SPDX-License-Identifier: Apache-2.0
/*
 * A capture without root holds a lock (fcntl, of an open file description) on the file of this program, at a
 * byte of its user's range. It goes with the process, whatever else that opens and closes. Only those who may
 * read the file can lock it: they can keep others from starting, but nobody can hide a capture. Each one counts
 * the others after it has locked its byte, so of two that start together at least one sees the other.
 */
#include "bpf/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#define OWN_FILE "/proc/self/exe"
#define USER_BITS 20 /* of the bytes of a user */
#define ALL_USERS ((off_t)1 << (32 + USER_BITS))

static char message[200];

static struct flock bytes(short type, off_t begin, off_t end)
{
	return (struct flock){ .l_type = type, .l_start = begin, .l_len = end - begin };
}

/* How many bytes others have locked from `begin` to before `end`, at most `most`; -1 on failure. */
static int count_others(int fd, off_t begin, off_t end, int most)
{
	int n = 0;

	while (begin < end && n < most) {
		struct flock lock = bytes(F_WRLCK, begin, end);
		int before;

		if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
			return -1;
		if (lock.l_type == F_UNLCK)
			return n;
		if (lock.l_len != 1) /* of no capture: it may hide others */
			return most;
		before = count_others(fd, begin, lock.l_start, most - n - 1);
		if (before < 0)
			return -1;
		n += 1 + before;
		begin = lock.l_start + 1;
	}
	return n;
}

static const char *refuse(int fd, int most, const char *whom)
{
	snprintf(message, sizeof(message), "%d captures of %s run already, the most without root: see who locks the "
		 "file of etrace-bpf in /proc/locks", most, whom);
	close(fd);
	return message;
}

const char *slot_take(void)
{
	off_t begin = (off_t)getuid() << USER_BITS;
	off_t end = begin + (1 << USER_BITS);
	struct flock own;
	unsigned int place;
	int of_user, of_all;
	int fd;

	if (getuid() == 0)
		return NULL;
	fd = open(OWN_FILE, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || getrandom(&place, sizeof(place), 0) != sizeof(place))
		return "its own file cannot be read, which counts the captures";
	place %= 1 << USER_BITS;
	own = bytes(F_RDLCK, begin + place, begin + place + 1);
	if (fcntl(fd, F_OFD_SETLK, &own) < 0)
		return "its own file cannot be locked, which counts the captures";
	of_user = count_others(fd, begin, end, SLOTS_OF_USER);
	of_all = count_others(fd, 0, ALL_USERS, SLOTS_OF_MACHINE);
	if (of_user < 0 || of_all < 0)
		return strerror(errno);
	if (of_user >= SLOTS_OF_USER)
		return refuse(fd, SLOTS_OF_USER, "yours");
	if (of_all >= SLOTS_OF_MACHINE)
		return refuse(fd, SLOTS_OF_MACHINE, "all users");
	return NULL; /* the descriptor stays open: the lock goes with it */
}
