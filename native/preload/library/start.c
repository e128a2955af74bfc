// SPDX-License-Identifier: Apache-2.0
/*
 * A program has been loaded, and its end: what the kernel gave it, which descriptors it has, and which
 * objects the dynamic linker opened for it. Those are not seen as they are opened: the linker makes its
 * own system calls. After the first dlopen() every record looks whether there are more.
 */
#include "chunk.h"
#include "paths.h"
#include "record.h"

#define N_DESCRIPTORS 128 /* whose state is recorded; close-on-exec of higher ones is not known */
#define N_ASKED 32
#define POLLNVAL 0x20
#define F_GETFD 1
#define AT_EXECFN 31
#define AT_BASE 7
#define MAX_OBJECTS 4096

struct poll {
	int fd;
	short events;
	short revents;
};

/* The beginning of struct dl_phdr_info; the counters are not there in every libc. */
struct object {
	uintptr_t address;
	const char *name;
	const void *headers;
	uint16_t n_headers;
	unsigned long long n_added;
	unsigned long long n_removed;
};

int dl_iterate_phdr(int (*visit)(struct object *object, size_t size, void *context),
		    void *context) WEAK;
int on_exit(void (*function)(int status, void *context), void *context) WEAK;
const char *gnu_get_libc_version(void) WEAK;

static uintptr_t linker_address;
static size_t n_objects_put;
static unsigned long long n_added_put;

/* Bit N of the result: descriptor N is open. */
static void find_open(unsigned char *open)
{
	struct poll polled[N_DESCRIPTORS];
	long zero[2] = { 0, 0 };
	int fd;
	bool done;

	for (fd = 0; fd < N_DESCRIPTORS; fd++)
		polled[fd] = (struct poll){ fd, 0, 0 };
	done = CALL5(__NR_ppoll, polled, N_DESCRIPTORS, zero, NULL, 8) >= 0;
	for (fd = 0; fd < N_DESCRIPTORS; fd++) {
		bool is_open = done && !(polled[fd].revents & POLLNVAL);

		if (!done || (!is_open && fd < N_ASKED)) /* poll() does not know O_PATH */
			is_open = CALL3(__NR_fcntl, fd, F_GETFD, 0) >= 0;
		open[fd / 8] |= (unsigned char)(is_open << (fd % 8));
	}
}

/* ---- objects ---- */

struct objects {
	struct record *record; /* NULL: count only */
	size_t n;
	size_t n_skipped; /* recorded before */
};

/* Not the program, the kernel's own page, the linker, nor this library. */
static bool is_opened(const struct object *object)
{
	const char *library = ring_library();
	const char *end = find(library, "$PLATFORM");
	size_t n = end ? (size_t)(end - library) : length(library);

	return object->name && object->name[0] == '/' && object->address != linker_address &&
	       !starts(object->name, library, n);
}

static int visit_object(struct object *object, size_t size, void *context)
{
	struct objects *objects = context;

	(void)size;
	if (!is_opened(object) || objects->n == MAX_OBJECTS + objects->n_skipped)
		return 0;
	objects->n++;
	if (objects->record && objects->n > objects->n_skipped)
		record_string(objects->record, object->name, length(object->name));
	return 0;
}

static size_t put_objects(struct record *record, size_t n_skipped)
{
	struct objects objects = { record, 0, n_skipped };

	if (dl_iterate_phdr)
		dl_iterate_phdr(visit_object, &objects);
	return objects.n;
}

/* How many were added so far, from the first object. */
static int read_added(struct object *object, size_t size, void *context)
{
	if (size >= offsetof(struct object, n_removed))
		*(unsigned long long *)context = object->n_added;
	return 1;
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
			linker_address = vector[1];
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
	unsigned char open[N_DESCRIPTORS / 8] = { 0 };
	bool wants_environment = ring_wants() & RING_WANTS_ENVIRONMENT;
	struct record record;
	struct path path;

	find_open(open);
	record_begin(&record, RING_STARTED);
	record_string(&record, name ? name : "", name ? length(name) : 0);
	path_of_program(&path);
	put_path(&record, &path);
	path_of_cwd(&path);
	put_path(&record, &path);
	record_string(&record, (const char *)open, sizeof(open));
	record.values.args[0] = put_list(&record, arguments);
	record.values.args[1] = wants_environment ? put_list(&record, environment) : 0;
	n_objects_put = put_objects(&record, 0);
	record.values.args[2] = (int)n_objects_put;
	if (dl_iterate_phdr)
		dl_iterate_phdr(read_added, &n_added_put);
	record.values.args[3] = (int)CALL0(__NR_getppid);
	record_end(&record);
}

/* Objects that were opened since the last look. */
static void put_new_objects(void)
{
	size_t n = put_objects(NULL, 0);
	struct record record;

	if (n <= n_objects_put) {
		n_objects_put = n; /* one that could not be used was taken out */
		return;
	}
	record_begin(&record, RING_OBJECTS);
	record.values.args[0] = (int)(put_objects(&record, n_objects_put) - n_objects_put);
	record_end(&record);
	n_objects_put = n;
}

static void look_for_objects(void)
{
	unsigned long long n_added = 0;

	if (__atomic_exchange_n(&state->is_looking, true, __ATOMIC_ACQUIRE))
		return;
	dl_iterate_phdr(read_added, &n_added);
	if (n_added != n_added_put) {
		n_added_put = n_added;
		put_new_objects();
	}
	__atomic_store_n(&state->is_looking, false, __ATOMIC_RELEASE);
}

/*
 * dlopen() was called: its objects are recorded before the next record.
 * dl_iterate_phdr() takes a lock: not
 * before the program needs it itself, and in glibc only.
 */
static void expect_objects(void)
{
	if (ring_is_on() && !record_is_sharing() && dl_iterate_phdr && gnu_get_libc_version)
		state->look = look_for_objects;
}

void *dlopen(const char *name, int flags);
void *dlmopen(long list, const char *name, int flags);

static void *open_nothing(void)
{
	return NULL;
}

/* Called by entry.S, which goes on in what they return: the linker looks who called dlopen(). */
void *preload_before_dlopen(void);
void *preload_before_dlmopen(void);

void *preload_before_dlopen(void)
{
	__typeof__(&dlopen) next = NEXT(dlopen);

	expect_objects();
	return next ? (void *)next : (void *)open_nothing;
}

void *preload_before_dlmopen(void)
{
	__typeof__(&dlmopen) next = NEXT(dlmopen);

	expect_objects();
	return next ? (void *)next : (void *)open_nothing;
}

int dlclose(void *handle);

/* What is taken out now was perhaps never recorded. */
PUBLIC int dlclose(void *handle)
{
	__typeof__(&dlclose) next = NEXT(dlclose);
	bool is_on = ring_is_on() && !record_is_sharing();
	int result;

	if (is_on)
		put_new_objects();
	result = next ? next(handle) : -1;
	if (is_on)
		n_objects_put = put_objects(NULL, 0);
	return result;
}

/* libc's last act before the end, after everybody else's. */
static void put_end(int status, void *context)
{
	(void)context;
	if (!ring_is_on() || record_is_sharing())
		return;
	put_new_objects();
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
