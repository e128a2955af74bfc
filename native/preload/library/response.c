// SPDX-License-Identifier: Apache-2.0
/*
 * Response files on the command line of a compiler, linker or archiver -> their content. The program
 * itself reads it before main(), with its own rights: it is what it will read. Only small regular
 * files are opened, so nothing waits that would not wait in the program. Memory is taken only when
 * there is such an argument, and given back.
 */
#include <linux/stat.h>

#include "capture/named.h"
#include "paths.h"
#include "record.h"

#define O_NOCTTY 0400

struct room {
	struct named named;
	char content[RESPONSE_FILE_BYTES + 1];
};

static int count_files(char *const *arguments)
{
	struct naming naming = { 0 };
	int n = 0;

	for (; *arguments && naming.state != NAMING_NONE; arguments++) {
		size_t len = length(*arguments);

		n += naming_next(&naming, *arguments, &len) && len;
	}
	return n;
}

static bool is_small_file(long fd)
{
	struct statx found;

	return !CALL5(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &found) &&
	       (found.stx_mode & S_IFMT) == S_IFREG && found.stx_size <= RESPONSE_FILE_BYTES;
}

/* The name alone is opened first: opening a device or a pipe may do something. */
static long open_file(const char *path)
{
	long name = CALL4(__NR_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	char link[LINK_MAX_BYTES];
	long fd = -1;

	if (name < 0)
		return -1;
	path_link_of_fd(link, (int)name);
	if (is_small_file(name))
		fd = CALL4(__NR_openat, AT_FDCWD, link, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);
	CALL1(__NR_close, name);
	return fd;
}

/* How many bytes it has; -1 when it is too large or cannot be read. */
static long read_file(const char *path, char *content)
{
	long fd = open_file(path);
	long len = 0;
	long n = -1;

	if (fd < 0)
		return -1;
	while (len <= RESPONSE_FILE_BYTES) {
		n = CALL3(__NR_read, fd, content + len, RESPONSE_FILE_BYTES + 1 - len);
		if (n <= 0)
			break;
		len += n;
	}
	CALL1(__NR_close, fd);
	return n < 0 || len > RESPONSE_FILE_BYTES ? -1 : len;
}

static void record_file(const char *path, const char *content, size_t n)
{
	struct record record;

	record_begin(&record, RING_RESPONSE);
	record_string(&record, path, length(path));
	record_string(&record, content, n);
	record_end(&record);
}

/* Names in a file come after those of the command. Return how many are missed. */
static size_t record_files(struct room *room, const char *cwd, char *const *arguments)
{
	struct named *named = &room->named;
	struct naming naming = { 0 };
	size_t n_missed = 0;
	size_t i;

	for (; *arguments; arguments++) {
		size_t len = length(*arguments);
		const char *name = naming_next(&naming, *arguments, &len);

		if (name && len)
			n_missed += named_add(named, cwd, name, len);
	}
	for (i = 0; i < named->n; i++) {
		long n = read_file(named->paths[i], room->content);

		if (n < 0) {
			n_missed++;
			continue;
		}
		record_file(named->paths[i], room->content, (size_t)n);
		n_missed += named_add_nested(named, &naming, cwd, room->content, (size_t)n);
	}
	return n_missed;
}

void record_responses(char *const *arguments)
{
	struct room *room;
	struct path cwd;
	size_t n_missed;
	long at;

	if (!(ring_wants() & RING_WANTS_RESPONSES) || !count_files(arguments))
		return;
	path_of_cwd(&cwd);
	at = map_memory(sizeof(*room), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	room = is_error(at) ? NULL : (struct room *)at;
	n_missed = room ? record_files(room, cwd.text, arguments) : (size_t)count_files(arguments);
	if (room)
		CALL2(__NR_munmap, room, sizeof(*room));
	if (n_missed)
		record_put(RING_RESPONSE, (int)n_missed, 0, 0);
}
