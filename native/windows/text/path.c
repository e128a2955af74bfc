// SPDX-License-Identifier: Apache-2.0
/* Names of files as Windows reads them. Source: "Naming Files, Paths, and Namespaces". */
#include "path.h"

static bool is_slash(char c)
{
	return c == '\\' || c == '/';
}

static bool has_drive(struct text path)
{
	return path.len >= 2 && path.data[1] == ':';
}

static bool begins(struct text path, const char *start)
{
	size_t len = strlen(start);

	if (path.len < len)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool is_same = is_slash(start[i]) ? is_slash(path.data[i]) :
						    text_same((struct text){ path.data + i, 1 },
							      (struct text){ start + i, 1 });

		if (!is_same)
			return false;
	}
	return true;
}

static struct text after(struct text path, size_t len)
{
	return (struct text){ path.data + len, path.len - len };
}

/* `C:`, `\\server\share`, or nothing. */
static struct text drive_of(struct text path)
{
	size_t n_slashes = 0, at;

	if (has_drive(path))
		return (struct text){ path.data, 2 };
	if (!begins(path, "\\\\"))
		return (struct text){ "", 0 };
	for (at = 0; at < path.len; at++) {
		if (is_slash(path.data[at]) && ++n_slashes == 4)
			break;
	}
	return (struct text){ path.data, at };
}

static void add_below(struct buffer *out, struct text directory, struct text name)
{
	buffer_add_text(out, directory);
	if (directory.len && !is_slash(directory.data[directory.len - 1]))
		buffer_add_char(out, '\\');
	buffer_add_text(out, name);
}

void path_join(struct buffer *out, struct text directory, struct text name)
{
	bool is_here = has_drive(name) && text_same(drive_of(name), drive_of(directory));

	if (begins(name, "\\\\") || (has_drive(name) && name.len > 2 && is_slash(name.data[2]))) {
		buffer_add_text(out, name);
	} else if (has_drive(name) && !is_here) {
		buffer_add_text(out, drive_of(name));
		add_below(out, text_of("\\"), after(name, 2));
	} else if (name.len && is_slash(name.data[0])) {
		buffer_add_text(out, drive_of(directory));
		buffer_add_text(out, name);
	} else {
		add_below(out, directory, is_here ? after(name, 2) : name);
	}
}

struct text path_program(struct text path)
{
	size_t start = path.len;

	while (start && !is_slash(path.data[start - 1]) && path.data[start - 1] != ':')
		start--;
	path = after(path, start);
	if (path.len > 4 && text_ends(path, text_of(".exe")))
		path.len -= 4;
	return path;
}

struct text path_directory(struct text path)
{
	if (path.len > 1 && is_slash(path.data[path.len - 1]) && path.data[path.len - 2] != ':')
		path.len--;
	return path;
}

bool path_is_plain(struct text path)
{
	return !begins(path, "\\\\.\\") && !begins(path, "\\\\?\\GLOBALROOT") &&
	       !begins(path, "\\??\\") && !begins(path, "\\\\?\\pipe");
}

void path_add_plain(struct buffer *out, struct text path)
{
	if (begins(path, "\\\\?\\UNC\\") || begins(path, "\\??\\UNC\\")) {
		buffer_add_char(out, '\\');
		path = after(path, 7);
	} else if (begins(path, "\\\\?\\") || begins(path, "\\??\\")) {
		path = after(path, 4);
	}
	buffer_add_text(out, path);
}

/* etrace/export/build_spec.py has the same names. */
const char known_default[] =
	"ar,cc,ld,gcc,llvm-gcc,clang,c++,g++,llvm-g++,clang++,arm-none-eabi-gcc,arm-none-eabi-g++,"
	"cl,clang-cl,link,lld-link,lib,llvm-lib,ml,ml64,"
	"iccarm,iasmarm,ilinkarm,iarchive,"
	"armcc,armclang,armasm,armlink,armar,"
	"x86_64-w64-mingw32-gcc,x86_64-w64-mingw32-g++,i686-w64-mingw32-gcc,i686-w64-mingw32-g++";

void known_split(struct words *names, struct text list)
{
	size_t start = 0;

	for (size_t at = 0; at <= list.len; at++) {
		if (at < list.len && list.data[at] != ',')
			continue;
		if (at > start)
			words_add(names, (struct text){ list.data + start, at - start });
		start = at + 1;
	}
}

bool known_has(const struct words *names, struct text program)
{
	struct text name = path_program(program);
	size_t n = words_count(names);

	for (size_t i = 0; i < n; i++) {
		if (text_matches(name, path_program(words_at(names, i))))
			return true;
	}
	return false;
}
