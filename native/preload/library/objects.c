// SPDX-License-Identifier: Apache-2.0
/*
 * The objects that the dynamic linker opened for a program. They are not seen as they are opened: the
 * linker makes its own system calls. After the first dlopen() every record looks whether there are more.
 */
#include "objects.h"

#include "chunk.h"
#include "maps.h"
#include "paths.h"

#define MAX_OBJECTS 4096
#define MAX_OTHERS 64 /* that are remembered */

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
const char *gnu_get_libc_version(void) WEAK;

static uintptr_t linker_address;
static size_t n_objects_put;
static unsigned long long n_added_put;
static bool has_namespaces; /* dlmopen() was called */

void objects_note_linker(uintptr_t address)
{
	linker_address = address;
}

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

	return object->name && find(object->name, "/") && object->address != linker_address &&
	       !starts(object->name, library, n);
}

static bool is_within(const struct mapped *mapped, uintptr_t address)
{
	return mapped->start <= address && address < mapped->end;
}

/*
 * The linker knows an object by the name that it was loaded by. What a relative name meant then depends on
 * the working directory of that time: the kernel knows the file.
 */
static void put_relative(struct record *record, const struct object *object)
{
	struct mapped mapped;
	struct maps maps;
	bool is_found = false;

	maps_open(&maps);
	while (!is_found && maps_next(&maps, &mapped))
		is_found = is_within(&mapped, (uintptr_t)object->headers) ||
			   is_within(&mapped, object->address);
	maps_close(&maps);
	if (!is_found)
		path_resolve(&mapped.path, AT_FDCWD, object->name, 0);
	record_string(record, mapped.path.text, mapped.path.n);
}

static int visit_object(struct object *object, size_t size, void *context)
{
	struct objects *objects = context;

	(void)size;
	if (!is_opened(object) || objects->n == MAX_OBJECTS + objects->n_skipped)
		return 0;
	objects->n++;
	if (!objects->record || objects->n <= objects->n_skipped)
		return 0;
	if (object->name[0] == '/')
		record_string(objects->record, object->name, length(object->name));
	else
		put_relative(objects->record, object);
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

int objects_put_first(struct record *record)
{
	n_objects_put = put_objects(record, 0);
	if (dl_iterate_phdr)
		dl_iterate_phdr(read_added, &n_added_put);
	return (int)n_objects_put;
}

/* Objects that were opened since the last look. */
void objects_put_new(void)
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

/* ---- other namespaces ---- */

static int visit_known(struct object *object, size_t size, void *context)
{
	struct mapped *mapped = context;

	(void)size;
	return is_within(mapped, (uintptr_t)object->headers) || is_within(mapped, object->address);
}

/* Whether an object is of this namespace, the linker, or was recorded before; if not, remember it. */
static bool is_known(struct mapped *mapped)
{
	static uintptr_t others[MAX_OTHERS];
	static size_t n_others;
	size_t i;

	if (is_within(mapped, linker_address) || dl_iterate_phdr(visit_known, mapped))
		return true;
	for (i = 0; i < n_others && i < MAX_OTHERS; i++)
		if (others[i] == mapped->start)
			return true;
	others[n_others++ % MAX_OTHERS] = mapped->start;
	return false;
}

/* dl_iterate_phdr() does not show what dlmopen() loaded: the mappings of files with code do. */
static void put_others(void)
{
	struct record record;
	struct mapped mapped;
	struct maps maps;

	maps_open(&maps);
	while (maps_next(&maps, &mapped)) {
		if (!mapped.is_executable || is_known(&mapped))
			continue;
		record_begin(&record, RING_OBJECTS);
		record_string(&record, mapped.path.text, mapped.path.n);
		record.values.args[0] = 1;
		record_end(&record);
	}
	maps_close(&maps);
}

/* ---- after the start ---- */

static void look_for_objects(void)
{
	unsigned long long n_added = 0;

	if (__atomic_exchange_n(&state->is_looking, true, __ATOMIC_ACQUIRE))
		return;
	dl_iterate_phdr(read_added, &n_added);
	if (n_added != n_added_put) {
		n_added_put = n_added;
		objects_put_new();
		if (has_namespaces)
			put_others();
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
	has_namespaces = true;
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
		objects_put_new();
	result = next ? next(handle) : -1;
	if (is_on)
		n_objects_put = put_objects(NULL, 0);
	return result;
}
