// SPDX-License-Identifier: Apache-2.0
/*
 * Names that a task gave to rename, link and the like, or that a program was executed by. The kernel's
 * record has the directory that a name starts from; what lies between is looked up here, a moment after
 * the call, with the rights that the task had. A directory that is gone by then is taken as it was written.
 */
#include "bpf/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/patience.h"
#include "capture/proc.h"
#include "capture/program.h"

static void set(struct name *name, const char *text, size_t len)
{
	if (len >= sizeof(name->text))
		len = sizeof(name->text) - 1;
	memcpy(name->text, text, len);
	name->text[len] = '\0';
	name->len = len;
}

static void append(struct name *name, const char *text, size_t len)
{
	size_t room = sizeof(name->text) - 1 - name->len;

	if (len > room)
		len = room;
	memcpy(name->text + name->len, text, len);
	name->len += len;
	name->text[name->len] = '\0';
}

void name_join(struct name *name, const struct etrace_text *directory, const struct etrace_text *text)
{
	if (text->len && text->text[0] == '/') {
		set(name, text->text, text->len);
		return;
	}
	set(name, directory->text, directory->len);
	if (!directory->len)
		return;
	if (text->len)
		append(name, "/", 1);
	append(name, text->text, text->len);
}

void name_join_last(struct name *name, const struct etrace_text *directory, const struct etrace_text *text)
{
	size_t end = text->len;
	size_t begin;

	while (end && text->text[end - 1] == '/')
		end--;
	for (begin = end; begin && text->text[begin - 1] != '/'; begin--)
		;
	set(name, directory->text, directory->len);
	if (!name->len || name->text[name->len - 1] != '/')
		append(name, "/", 1);
	append(name, text->text + begin, end - begin);
}

static int open_name(const char *text, int flags, const struct viewer *viewer)
{
	return viewer->is_lost ? -1 : open_in_time(viewer->rights, text, flags, root_fd(viewer->root));
}

static ssize_t read_fd_link(int fd, char text[PATH_MAX])
{
	char link[PROC_NAME_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, text, PATH_MAX);
	return len == PATH_MAX ? -1 : len;
}

/* Where a descriptor of this process leads, below a root directory. */
static bool path_of(int fd, int root, struct name *name)
{
	char text[PATH_MAX];
	char above[PATH_MAX];
	ssize_t len = read_fd_link(fd, text);
	ssize_t n_above = root < 0 ? 0 : read_fd_link(root, above);

	if (len <= 0 || n_above < 0)
		return false;
	text[len] = '\0';
	if (proc_is_own(text))
		return false;
	if (n_above == 1 || len < n_above || memcmp(text, above, (size_t)n_above) ||
	    (len > n_above && text[n_above] != '/'))
		n_above = 0;
	if (len == n_above)
		set(name, "/", 1);
	else
		set(name, text + n_above, (size_t)(len - n_above));
	return true;
}

bool name_resolve(struct name *name, const struct viewer *viewer)
{
	int fd = open_name(name->text, 0, viewer);
	bool done = fd >= 0 && path_of(fd, root_fd(viewer->root), name);

	if (fd >= 0)
		close(fd);
	return done;
}

/* A clock that only ticks gave a file its birth time. */
#define TICK_NS 10000000

static u64 to_realtime(u64 monotonic)
{
	struct timespec real;
	u64 now = monotonic_ns();

	clock_gettime(CLOCK_REALTIME, &real);
	return (u64)real.tv_sec * 1000000000u + (u64)real.tv_nsec - (now - monotonic);
}

bool name_resolve_older(struct name *name, const struct viewer *viewer, u64 time_ns)
{
	int fd = open_name(name->text, 0, viewer);
	struct statx st;
	bool done;

	if (fd < 0)
		return false;
	done = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME, &st) == 0 &&
	       (!(st.stx_mask & STATX_BTIME) ||
		(u64)st.stx_btime.tv_sec * 1000000000u + st.stx_btime.tv_nsec + TICK_NS < to_realtime(time_ns)) &&
	       path_of(fd, root_fd(viewer->root), name);
	close(fd);
	return done;
}

bool name_exists(const struct name *name, const struct viewer *viewer)
{
	int fd = open_name(name->text, O_NOFOLLOW, viewer);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_dots(const char *text)
{
	return !strcmp(text, ".") || !strcmp(text, "..");
}

/* ---- what is gone ---- */

#define N_LINKS 4096 /* of the links that the build has made the last ones are known */
#define MOST_LINKS 40 /* in one name, as in the kernel */

static struct link {
	char *name; /* absolute, its directories resolved */
	char *target;
} links[N_LINKS];

static struct link *link_place(const char *name)
{
	u64 hash = 14695981039346656037u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211u;
	return &links[hash % N_LINKS];
}

void name_note_link(const struct name *link, const struct etrace_text *target)
{
	struct link *place = link_place(link->text);

	free(place->name);
	free(place->target);
	place->name = strdup(link->text);
	place->target = strndup(target->text, target->len);
}

static const char *link_target(const char *name)
{
	const struct link *place = link_place(name);

	return place->name && place->target && !strcmp(place->name, name) ? place->target : NULL;
}

static void drop_last(struct name *name)
{
	while (name->len && name->text[--name->len] != '/')
		;
	name->text[name->len] = '\0';
}

/* Follow the directories of a name that are links of the build; take out dots and empty parts. */
static void follow_known(struct name *name)
{
	char rest[2 * NAME_MAX_BYTES];
	char joined[2 * NAME_MAX_BYTES];
	int n_links = 0;
	char *at = rest;
	char *part;

	snprintf(rest, sizeof(rest), "%s", name->text);
	set(name, "", 0);
	while ((part = strsep(&at, "/"))) {
		const char *target;

		if (!*part || !strcmp(part, "."))
			continue;
		if (!strcmp(part, "..")) {
			drop_last(name);
			continue;
		}
		append(name, "/", 1);
		append(name, part, strlen(part));
		target = at ? link_target(name->text) : NULL; /* the last part is kept */
		if (!target || n_links++ >= MOST_LINKS)
			continue;
		drop_last(name);
		if (*target == '/')
			set(name, "", 0);
		snprintf(joined, sizeof(joined), "%s/%s", target, at);
		memcpy(rest, joined, sizeof(rest));
		at = rest;
	}
	if (!name->len)
		set(name, "/", 1);
}

void name_resolve_directories(struct name *name, const struct viewer *viewer)
{
	struct name directory;
	char *slash;

	while (name->len > 1 && name->text[name->len - 1] == '/')
		name->text[--name->len] = '\0';
	slash = strrchr(name->text, '/');
	if (!slash || !slash[1])
		return;
	if (is_dots(slash + 1)) {
		if (!name_resolve(name, viewer))
			follow_known(name);
		return;
	}
	set(&directory, name->text, slash == name->text ? 1 : (size_t)(slash - name->text));
	if (!name_resolve(&directory, viewer)) {
		follow_known(name);
		return;
	}
	if (directory.len > 1)
		append(&directory, "/", 1);
	append(&directory, slash + 1, strlen(slash + 1));
	set(name, directory.text, directory.len);
}
