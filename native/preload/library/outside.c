// SPDX-License-Identifier: Apache-2.0
/*
 * A program that cannot open the shared memory, or does not know its own number there: /proc is of another
 * PID namespace, or the process is in another user namespace. It sends its path to the collector's
 * socket, whose abstract name every process of the same network namespace reaches.
 */
#include "outside.h"

#include "../ring.h"
#include "paths.h"

#define AF_UNIX 1
#define SOCK_DGRAM 2
#define SOCK_CLOEXEC 02000000
#define SOL_SOCKET 1
#define SO_SNDTIMEO 21
#define MSG_NOSIGNAL 0x4000

void outside_tell(const char *ring)
{
	struct {
		uint16_t family;
		char name[RING_SOCKET_MAX]; /* the first byte is 0 */
	} address = { AF_UNIX, { 0 } };
	long patience[2] = { 0, 200000 }; /* s, us: the collector may be slow, or stopped */
	size_t n = length(ring);
	struct path program;
	long fd;

	if (n + 1 > sizeof(address.name))
		return;
	copy(address.name + 1, ring, n);
	path_of_program(&program);
	fd = CALL3(__NR_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	CALL5(__NR_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, patience, sizeof(patience));
	CALL6(__NR_sendto, fd, program.text, program.n, MSG_NOSIGNAL, &address,
	      sizeof(address.family) + 1 + n);
	CALL1(__NR_close, fd);
}
