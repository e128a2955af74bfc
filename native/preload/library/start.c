// SPDX-License-Identifier: Apache-2.0
/* A program has been loaded, and its end: what the kernel gave it and which descriptors it has. */
#include "format/etrace_builders.h"

#include "chunk.h"
#include "objects.h"
#include "paths.h"
#include "record.h"

#define N_DESCRIPTORS 32768 /* whose state is recorded */
#define N_ASKED 128 /* the same without /proc */
#define LIST_BYTES 2048
#define F_GETFD 1
#define AT_EXECFN 31
#define AT_BASE 7

/* The head of an entry of a directory, getdents(2). */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* Descriptors that are open, as a bit each. */
struct open_set {
	unsigned char is_whole; /* none above is open */
	unsigned char bits[N_DESCRIPTORS / 8];
	size_t n; /* bytes of them */
};

int on_exit(void (*function)(int status, void *context), void *context) WEAK;
const char *gnu_get_libc_version(void) WEAK;

static void note_open(struct open_set *open, unsigned int fd)
{
	if (fd >= N_DESCRIPTORS) {
		open->is_whole = 0;
		return;
	}
	while (open->n <= fd / 8)
		open->bits[open->n++] = 0;
	open->bits[fd / 8] |= (unsigned char)(1 << (fd % 8));
}

/* Those that a directory of /proc lists, but that directory itself. */
static void note_listed(struct open_set *open, long directory)
{
	_Alignas(struct entry) char list[LIST_BYTES];
	long n, at;

	while ((n = CALL3(__NR_getdents64, directory, list, sizeof(list))) > 0)
		for (at = 0; at < n; at += ((const struct entry *)(list + at))->size) {
			const char *digit = ((const struct entry *)(list + at))->name;
			unsigned int fd = 0;

			if (*digit == '.')
				continue;
			for (; *digit; digit++)
				fd = fd * 10 + (unsigned int)(*digit - '0');
			if (fd != (unsigned int)directory)
				note_open(open, fd);
		}
	open->is_whole &= n == 0;
}

static void find_open(struct open_set *open)
{
	long directory = CALL4(__NR_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int fd;

	open->n = 0;
	open->is_whole = directory >= 0;
	if (directory >= 0) {
		note_listed(open, directory);
		CALL1(__NR_close, directory);
		return;
	}
	while (open->n < N_ASKED / 8)
		open->bits[open->n++] = 0;
	for (fd = 0; fd < N_ASKED; fd++)
		if (CALL3(__NR_fcntl, fd, F_GETFD, 0) >= 0)
			note_open(open, (unsigned int)fd);
}

/* ---- the program ---- */

static const char *read_vector(char **environment)
{
	const unsigned long *vector;
	const char *name = NULL;

	while (*environment)
		environment++;
	for (vector = (const unsigned long *)(environment + 1); vector[0]; vector += 2) {
		if (vector[0] == AT_EXECFN)
			name = (const char *)vector[1];
		if (vector[0] == AT_BASE)
			objects_note_linker(vector[1]);
	}
	return name;
}

/* Where the kernel put the arguments: before the environment, after their number. */
static char **find_arguments(char **environment)
{
	char **at = environment - 1;
	uintptr_t n = 0;

	while ((uintptr_t)at[-1] != n) {
		at--;
		n++;
	}
	return at;
}

static int put_list(struct record *record, char **list)
{
	int n;

	for (n = 0; list[n]; n++)
		record_string(record, list[n], length(list[n]));
	return n;
}

static void put_path(struct record *record, const struct path *path)
{
	record_string(record, path->text, path->n);
}

static void put_start(char **arguments, char **environment, const char *name)
{
	struct open_set open;
	bool wants_environment = ring_wants() & RING_WANTS_ENVIRONMENT;
	size_t name_length = name ? length(name) : 0;
	struct record record;
	struct path path;

	find_open(&open);
	record_begin(&record, RING_STARTED);
	record_string(&record, name ? name : "", name_length);
	path_of_program(&path);
	put_path(&record, &path);
	wants_environment = wants_environment || etrace_is_builder(path.text, path.n) ||
			    (name && etrace_is_builder(name, name_length));
	path_of_cwd(&path);
	put_path(&record, &path);
	record_string(&record, (const char *)&open, 1 + open.n);
	record.values.args[0] = put_list(&record, arguments);
	record.values.args[1] = wants_environment ? put_list(&record, environment) : 0;
	record.values.args[2] = objects_put_first(&record);
	record.values.args[3] = (int)CALL0(__NR_getppid);
	record_end(&record);
}

/* libc's last act before the end, after everybody else's. */
static void put_end(int status, void *context)
{
	(void)context;
	if (!ring_is_on() || record_is_sharing())
		return;
	objects_put_new();
	record_put(RING_EXIT, status & 0xff, 0, 0);
	record_leave();
	record_stop();
}

__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
	const char *name;

	(void)argc;
	if (!gnu_get_libc_version) { /* another libc gives no arguments */
		environment = environ;
		argv = find_arguments(environment);
	}
	record_connect(environment);
	if (!ring_is_on())
		return;
	name = read_vector(environment);
	put_start(argv, environment, name);
	record_responses(argv);
	if (on_exit)
		on_exit(put_end, NULL);
}
