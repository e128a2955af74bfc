// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Newlines, every other byte, and text that looks like the format itself, in names. */
#include "expect.h"

static void opens(struct task *task, const char *name)
{
	long fd = must(open(name, O_CREAT | O_RDWR, 0644), name);

	expect_open(task, here(name), here(name), O_CREAT | O_RDWR, 0644, fd);
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
}

static char *every_byte(int first, int last)
{
	char *name = repeat('x', (size_t)(last - first + 1));

	for (int byte = first; byte <= last; byte++)
		name[byte - first] = byte == '/' ? '_' : (char)byte;
	return name;
}

/* A path of three parts with a newline at `at`, and others around it. */
static void newline_at(struct task *task, size_t at)
{
	char *path = cwd();
	size_t start = strlen(path);

	while (strlen(path) < 1950)
		path = text("%s/%s", path, repeat('d', 99));
	path[at] = path[at] == '/' ? '/' : '\n';
	path[start + 2] = '\n';
	path[start + 3] = '\n';
	for (char *slash = strchr(path + start + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0755) && errno != EEXIST)
			die("mkdir");
		*slash = '/';
	}
	opens(task, path + start + 1);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	static const char *const names[] = {
		"two\nlines", "\n", "\n\n\n", "ends\n", "\nbegins", "a\n\nb\nc", " ", "tab\there",
		"Cont|", "a\nCont_end|", "1,0,2,3!Exit|status=0", "0: 1,0,2,3!", "#comment",
		"x\n1,0,2,3!Close|fd=3", "a,b=c|d[0]", "\\n\\\"%s%n", "\xff\xfe",
		"\xc3\xa9\xe2\x82\xac",
		"\xed\xa0\x80", "\r", "nl\r\nnl", "\x7f\x1b[31m",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		opens(&task, names[i]);
	opens(&task, every_byte(1, 127));
	opens(&task, every_byte(128, 255));
	for (size_t at = 898; at <= 902; at++)
		newline_at(&task, at);
	newline_at(&task, 1799);
	newline_at(&task, 1800);
	newline_at(&task, 1899);
	leave(&task, 0);
}
