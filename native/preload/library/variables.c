// SPDX-License-Identifier: Apache-2.0
/*
 * The environment of an executed program -> one in which the library is loaded: LD_PRELOAD with the
 * library after whatever else is there (fakeroot's functions call this library's, not the other way
 * round), the name of the shared memory, and an option without which AddressSanitizer refuses a
 * library that is loaded before it. A program that clears its environment does not end the trace.
 */
#include "variables.h"

#include "record.h"

#define PRELOAD "LD_PRELOAD="
#define RING RING_VARIABLE "="
#define ASAN "ASAN_OPTIONS="
#define LINK_ORDER "verify_asan_link_order"
#define NO_LINK_ORDER LINK_ORDER "=0"
#define SIZE(literal) (sizeof(literal) - 1)

enum { HAS_PRELOAD = 1, HAS_RING = 2, HAS_ASAN = 4, HAS_ALL = 7 };

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "i686"
#endif
#define PLATFORM "$PLATFORM"
#define R_OK 4

static bool is_library_lost;

/* The library has its name for this machine, but not in another root directory. */
static bool is_there(void)
{
	const char *library = ring_library();
	const char *at = find(library, PLATFORM);
	char path[PRELOAD_MAX + sizeof(MACHINE)];
	size_t n = at ? (size_t)(at - library) : 0;

	if (!at || length(library) >= PRELOAD_MAX)
		return true;
	copy(path, library, n);
	copy(path + n, MACHINE, SIZE(MACHINE));
	copy(path + n + SIZE(MACHINE), at + SIZE(PLATFORM), length(at + SIZE(PLATFORM)) + 1);
	return !CALL3(__NR_faccessat, AT_FDCWD, path, R_OK);
}

bool variables_have_library(void)
{
	return !is_library_lost;
}

static const char *value_of(char *const *environment, const char *name, size_t n)
{
	for (; environment && *environment; environment++)
		if (starts(*environment, name, n))
			return *environment + n;
	return NULL;
}

/* What of it is as it has to be. */
static int found_in(char *const *environment)
{
	const char *preload = value_of(environment, PRELOAD, SIZE(PRELOAD));
	const char *path = value_of(environment, RING, SIZE(RING));
	const char *asan = value_of(environment, ASAN, SIZE(ASAN));
	int found = 0;

	if (preload && find(preload, ring_library()))
		found |= HAS_PRELOAD;
	if (path && is_same(path, ring_variable()))
		found |= HAS_RING;
	if (asan && find(asan, LINK_ORDER))
		found |= HAS_ASAN;
	return found;
}

static size_t old_length(char *const *environment, const char *name, size_t n)
{
	const char *value = value_of(environment, name, n);

	return value ? length(value) : 0;
}

size_t variables_need(char *const *environment)
{
	size_t n = 0;

	if (!*ring_library())
		return 0;
	is_library_lost = !is_there();
	if (is_library_lost ? !(found_in(environment) & HAS_PRELOAD)
			    : !ring_is_on() || found_in(environment) == HAS_ALL)
		return 0;
	while (environment && environment[n])
		n++;
	return (n + 4) * sizeof(char *) + SIZE(PRELOAD) +
	       old_length(environment, PRELOAD, SIZE(PRELOAD)) + length(ring_library()) + SIZE(RING) +
	       length(ring_variable()) + SIZE(ASAN) + old_length(environment, ASAN, SIZE(ASAN)) +
	       SIZE(NO_LINK_ORDER) + 8;
}

/* `NAME=old:added` at `at`; returns its end. */
static char *join(char *at, const char *name, const char *old, const char *added)
{
	copy(at, name, length(name));
	at += length(name);
	if (old && *old) {
		copy(at, old, length(old));
		at += length(old);
		*at++ = ':';
	}
	copy(at, added, length(added) + 1);
	return at + length(added) + 1;
}

static bool is_replaced(const char *variable, int found)
{
	return (!(found & HAS_PRELOAD) && starts(variable, PRELOAD, SIZE(PRELOAD))) ||
	       (!(found & HAS_RING) && starts(variable, RING, SIZE(RING))) ||
	       (!(found & HAS_ASAN) && starts(variable, ASAN, SIZE(ASAN)));
}

/* LD_PRELOAD without the library, which would only be complained about; nothing when it was alone. */
static void put_without(char *const *environment, char **next, char *at)
{
	const char *value;
	const char *own;

	for (; *environment; environment++) {
		if (!starts(*environment, PRELOAD, SIZE(PRELOAD))) {
			*next++ = *environment;
			continue;
		}
		value = *environment + SIZE(PRELOAD);
		own = find(value, ring_library());
		if (!own || own == value)
			continue;
		copy(at, *environment, (size_t)(own - *environment));
		at[own - *environment - 1] = '\0'; /* in place of the colon */
		*next++ = at;
	}
	*next = NULL;
}

char **variables_put(char *const *environment, void *room)
{
	int found = found_in(environment);
	char **next = room;
	char *at;
	size_t n = 0;
	size_t i;

	while (environment && environment[n])
		n++;
	at = (char *)(next + n + 4);
	if (is_library_lost) {
		put_without(environment, next, at);
		return room;
	}
	for (i = 0; i < n; i++)
		if (!is_replaced(environment[i], found))
			*next++ = environment[i];
	if (!(found & HAS_PRELOAD)) {
		*next++ = at;
		at = join(at, PRELOAD, value_of(environment, PRELOAD, SIZE(PRELOAD)),
			  ring_library());
	}
	if (!(found & HAS_RING)) {
		*next++ = at;
		at = join(at, RING, NULL, ring_variable());
	}
	if (!(found & HAS_ASAN)) {
		*next++ = at;
		join(at, ASAN, value_of(environment, ASAN, SIZE(ASAN)), NO_LINK_ORDER);
	}
	*next = NULL;
	return room;
}
