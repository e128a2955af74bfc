// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Paths around the length of one and of two parts, and of the longest there can be. */
#include "expect.h"

#define DIR_BYTES 200

/* Directories below the working one until `len` bytes are nearly used up; the rest is the name. */
static char *path_of(size_t len)
{
	char *path = cwd();

	while (strlen(path) + DIR_BYTES + 40 < len) {
		path = text("%s/%s", path, repeat('d', DIR_BYTES));
		if (mkdir(path, 0755) && errno != EEXIST)
			die("mkdir");
	}
	return text("%s/%s", path, repeat('f', len - strlen(path) - 1));
}

static void opens(struct task *task, size_t len)
{
	char *path = path_of(len);
	long fd = must(open(path, O_CREAT | O_WRONLY, 0644), path);

	expect_open(task, path, path, O_CREAT | O_WRONLY, 0644, fd);
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
	MUST(rename(path, "short"));
	expect_path(task, "RenameFrom", "RF", path, -1);
	expect_path(task, "RenameTo", "RT", here("short"), -1);
	MUST(link("short", path));
	expect_link_from(task, here("short"));
	expect_path(task, "LinkTo", "LT", path, -1);
	MUST(symlink(path, "symlink"));
	expect_symlink(task, path, path, here("symlink"));
	MUST(unlink("symlink"));
}

/* The original path may be longer than any path: directory and name are each within bounds. */
static void original_beyond_path_max(struct task *task)
{
	char *name = text("%s", "");
	long fd;

	while (strlen(name) < 4000)
		name = text("%s././././././././", name);
	name = text("%sfile", name);
	make_file("file");
	fd = MUST(open(name, O_RDONLY));
	expect_open(task, here("file"), here(name), O_RDONLY, 0, fd);
	MUST_FAIL(open(text("%s%s", repeat('/', 4092), "file"), O_RDONLY), ENAMETOOLONG);
}

int main(int argc, char **argv)
{
	static const size_t lengths[] = { 899, 900, 901, 1799, 1800, 1801, 2700, 4095 };
	struct task task = expect_start(argc, argv);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		opens(&task, lengths[i]);
	original_beyond_path_max(&task);
	leave(&task, 0);
}
