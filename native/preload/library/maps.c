// SPDX-License-Identifier: Apache-2.0
/* /proc/self/maps (proc(5)), a piece at a time: `start-end perms offset device inode   path`. */
#include "maps.h"

#define PERMISSIONS 4
#define N_BLANKS 5 /* before the path, the run of blanks at the last one aside */

static int next_byte(struct maps *maps)
{
	if (maps->at == maps->n) {
		long n = maps->fd < 0 ? 0 : CALL3(__NR_read, maps->fd, maps->bytes, MAPS_BYTES);

		if (n <= 0)
			return -1;
		maps->at = 0;
		maps->n = (size_t)n;
	}
	return (unsigned char)maps->bytes[maps->at++];
}

static int digit_of(int byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* A number in hexadecimal digits, and the byte after it. */
static uintptr_t next_number(struct maps *maps)
{
	uintptr_t number = 0;
	int digit;

	while ((digit = digit_of(next_byte(maps))) >= 0)
		number = number << 4 | (uintptr_t)digit;
	return number;
}

/* The rest of the line; empty for what is not a file or too long. */
static void read_path(struct maps *maps, int byte)
{
	struct path *path = &maps->path;
	bool is_path = byte == '/';

	path->n = 0;
	for (; byte >= 0 && byte != '\n'; byte = next_byte(maps)) {
		is_path = is_path && path->n < PATH_MAX;
		if (is_path)
			path->text[path->n++] = (char)byte;
	}
	path->n = is_path ? path->n : 0;
	path->text[path->n] = '\0';
}

/* The kernel writes a newline in a name as \012, and nothing else so. */
static void unescape(struct path *path)
{
	size_t from, to;

	for (from = to = 0; from < path->n; from++, to++) {
		path->text[to] = path->text[from];
		if (path->n - from >= 4 && starts(path->text + from, "\\012", 4)) {
			path->text[to] = '\n';
			from += 3;
		}
	}
	path->n = to;
	path->text[to] = '\0';
}

static bool read_line(struct maps *maps)
{
	int byte = 0;
	int i;

	maps->start = next_number(maps);
	maps->end = next_number(maps);
	maps->is_executable = false;
	for (i = 0; i < PERMISSIONS + 1; i++) {
		byte = next_byte(maps);
		maps->is_executable |= byte == 'x';
	}
	maps->offset = next_number(maps);
	for (i = 3; i < N_BLANKS && byte >= 0; i++) /* device and inode */
		while ((byte = next_byte(maps)) >= 0 && byte != ' ' && byte != '\n')
			;
	while (byte == ' ')
		byte = next_byte(maps);
	read_path(maps, byte);
	unescape(&maps->path);
	return maps->end > maps->start;
}

void maps_open(struct maps *maps)
{
	maps->fd = (int)CALL4(__NR_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	maps->at = maps->n = 0;
	maps->has_line = read_line(maps);
}

/* The first mapping of an object is of the begin of its file. */
bool maps_next(struct maps *maps, struct mapped *mapped)
{
	while (maps->has_line && !maps->path.n)
		maps->has_line = read_line(maps);
	if (!maps->has_line)
		return false;
	mapped->start = maps->start;
	mapped->is_executable = false;
	copy(&mapped->path, &maps->path, sizeof(mapped->path));
	do {
		mapped->end = maps->end;
		mapped->is_executable |= maps->is_executable;
		maps->has_line = read_line(maps);
	} while (maps->has_line && maps->offset && is_same(maps->path.text, mapped->path.text));
	path_strip_deleted(&mapped->path);
	return true;
}

void maps_close(struct maps *maps)
{
	if (maps->fd >= 0)
		CALL1(__NR_close, maps->fd);
}
