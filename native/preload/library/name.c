// SPDX-License-Identifier: Apache-2.0
/*
 * rename*, link*, symlink*, mount, umount. Names are resolved before the call: a rename leaves none of
 * them unchanged.
 */
#include "paths.h"
#include "record.h"

struct names {
	struct record record;
	int found;
};

/* -EFAULT for a name that the kernel could not read either: nothing may look at it then. */
static long look_for(int dirfd, const char *name)
{
	long result = CALL3(__NR_faccessat, dirfd, name, 0);

	if (result == -ENOENT && CALL4(__NR_readlinkat, dirfd, name, &(char){ 0 }, 1) >= 0)
		return 0;
	return result;
}

/* Both names; the record is open until the result is known. `flags` are those of linkat(). */
static void begin_names(struct names *names, enum ring_kind kind, int from_dir, const char *from,
			int to_dir, const char *to, int flags)
{
	bool follow = flags & AT_SYMLINK_FOLLOW;
	struct path source;
	struct path destination;
	bool is_file;
	long there;

	names->found = 0;
	names->record.writer = NULL;
	names->record.head = NULL;
	if (!ring_is_on())
		return;
	source.n = destination.n = 0;
	there = look_for(from_dir, from);
	is_file = there != -EFAULT && !*from && flags & AT_EMPTY_PATH;
	if (is_file)
		path_of_fd(&source, from_dir);
	else if (there == -EFAULT)
		;
	else if (follow)
		path_resolve(&source, from_dir, from, 0);
	else
		path_resolve_directories(&source, from_dir, from);
	if (source.n)
		names->found |= FOUND_SOURCE_PATH;
	if (source.n && (follow || is_file || !there))
		names->found |= FOUND_SOURCE;
	if (look_for(to_dir, to) != -EFAULT && path_resolve_directories(&destination, to_dir, to))
		names->found |= FOUND_DESTINATION;
	record_begin(&names->record, kind);
	record_string(&names->record, source.text, source.n);
	record_string(&names->record, destination.text, destination.n);
}

static int end_names(struct names *names, long result, int form, unsigned int flags)
{
	int *args = names->record.values.args;

	if (names->record.writer) {
		args[0] = (int)result;
		args[1] = form;
		args[2] = (int)flags;
		args[3] = names->found;
		record_end(&names->record);
	}
	return (int)with_errno(result);
}

static long rename_by_call(int from_dir, const char *from, int to_dir, const char *to)
{
#ifdef __NR_renameat
	return CALL4(__NR_renameat, from_dir, from, to_dir, to);
#else
	return CALL5(__NR_renameat2, from_dir, from, to_dir, to, 0);
#endif
}

PUBLIC int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	struct names names;

	begin_names(&names, RING_RENAME, from_dir, from, to_dir, to, 0);
	return end_names(&names, rename_by_call(from_dir, from, to_dir, to), FORM_PLAIN, 0);
}

PUBLIC int rename(const char *from, const char *to)
{
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

PUBLIC int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
	struct names names;

	begin_names(&names, RING_RENAME, from_dir, from, to_dir, to, 0);
	return end_names(&names, CALL5(__NR_renameat2, from_dir, from, to_dir, to, flags),
			 FORM_WITH_FLAGS, flags);
}

PUBLIC int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	struct names names;

	begin_names(&names, RING_LINK, from_dir, from, to_dir, to, flags);
	return end_names(&names, CALL5(__NR_linkat, from_dir, from, to_dir, to, flags),
			 FORM_WITH_FLAGS, (unsigned int)flags);
}

PUBLIC int link(const char *from, const char *to)
{
#ifdef __NR_link
	struct names names;

	begin_names(&names, RING_LINK, AT_FDCWD, from, AT_FDCWD, to, 0);
	return end_names(&names, CALL2(__NR_link, from, to), FORM_PLAIN, 0);
#else
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
#endif
}

static int record_symlink(long result, const char *target, int dirfd, const char *name)
{
	struct record record;
	struct path link;
	struct path resolved;

	if (result < 0 || !ring_is_on())
		return (int)with_errno(result);
	path_resolve_directories(&link, dirfd, name);
	path_resolve(&resolved, dirfd, name, 0);
	record_begin(&record, RING_SYMLINK);
	record_string(&record, target, length(target));
	record_string(&record, link.text, link.n);
	record_string(&record, resolved.text, resolved.n);
	record.values.args[0] = resolved.n > 0;
	record_end(&record);
	return 0;
}

PUBLIC int symlinkat(const char *target, int dirfd, const char *name)
{
	return record_symlink(CALL3(__NR_symlinkat, target, dirfd, name), target, dirfd, name);
}

PUBLIC int symlink(const char *target, const char *name)
{
	return symlinkat(target, AT_FDCWD, name);
}
