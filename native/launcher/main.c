// SPDX-License-Identifier: Apache-2.0
/*
 * The commands etrace, cas and the others: this program starts Python for the one whose name it has.
 *
 * An environment made for another Python (PYTHONHOME, PYTHONPATH) would end the interpreter before it
 * reads any code, and a script cannot name options for its interpreter where pip writes the first
 * line. So pip writes that into START, beside this program, and the interpreter is started isolated
 * (-I) with START. The environment itself stays: it is the build's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/program.h"
#include "capture/rlimits.h"

#define START "etrace_start"
#define HEAD_BYTES (2 * PATH_MAX)
#define REPAIR "install etrace again"
/* what Python takes to start and to import what a capture needs */
#define NEEDED_MEMORY (32u << 20)
#define NEEDED_DATA (16u << 20)
#define NEEDED_STACK (192u << 10)
#define NEEDED_FILES 16

const char program_name[] = "etrace";

void program_save(void)
{
}

/* The word that follows `at`, without quotes; false when it is not an absolute path. */
static bool take_word(const char *at, char path[PATH_MAX])
{
	const char *end = " \t\r\n";
	char quote[2] = "";
	size_t n;

	at += strspn(at, " \t");
	if (*at == '"' || *at == '\'') {
		quote[0] = *at++;
		end = quote;
	}
	n = strcspn(at, end);
	if (*at != '/' || n >= PATH_MAX)
		return false;
	memcpy(path, at, n);
	path[n] = '\0';
	return true;
}

/* `#!PATH`, or where that is too long or has blanks `#!/bin/sh` and `'''exec' PATH "$0" "$@"`. */
static bool read_interpreter(const char *head, char path[PATH_MAX])
{
	static const char shell[] = "#!/bin/sh\n'''exec' ";

	if (!strncmp(head, shell, strlen(shell)))
		return take_word(head + strlen(shell), path);
	return !strncmp(head, "#!", 2) && take_word(head + 2, path);
}

static void find_interpreter(const char *start, char path[PATH_MAX])
{
	char head[HEAD_BYTES];
	int fd = open(start, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);

	if (n < 0)
		die("%s: %s; " REPAIR, start, strerror(errno));
	close(fd);
	head[n] = '\0';
	if (!read_interpreter(head, path))
		die("%s: its first line names no Python; " REPAIR, start);
}

/* Limits that are meant for the build would end Python, too: it says which only by chance. */
static void prepare_capture(void)
{
	static const struct {
		int resource;
		rlim_t bytes;
	} needs[] = { { RLIMIT_AS, NEEDED_MEMORY }, { RLIMIT_DATA, NEEDED_DATA },
		      { RLIMIT_STACK, NEEDED_STACK }, { RLIMIT_NOFILE, NEEDED_FILES } };
	const char *lack = NULL;
	size_t i;

	limits_raise();
	limits_check();
	for (i = 0; i < sizeof(needs) / sizeof(needs[0]) && !lack; i++)
		lack = limits_lack(needs[i].resource, needs[i].bytes);
	if (lack)
		die("%s", lack);
	limits_hand_on();
}

static bool is_capture(const char *name, char **argv)
{
	return !strcmp(name, "unix-tracer") ||
	       (!strcmp(name, "etrace") && argv[1] && !strcmp(argv[1], "run"));
}

int main(int argc, char **argv)
{
	char start[PATH_MAX], interpreter[PATH_MAX], own[PATH_MAX];
	char *words[argc + 4];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	const char *name;

	if (n < 0)
		die("/proc is missing: mount it (mount -t proc proc /proc) and try again");
	own[n] = '\0';
	name = strrchr(own, '/') + 1;
	program_sibling(start, START);
	find_interpreter(start, interpreter);
	if (is_capture(name, argv))
		prepare_capture();
	words[0] = interpreter;
	words[1] = (char *)"-I";
	words[2] = start;
	words[3] = (char *)name;
	memcpy(words + 4, argv + 1, (size_t)argc * sizeof(*words)); /* with the null at the end */
	execv(interpreter, words);
	die("%s: %s%s", interpreter, strerror(errno), errno == ENOENT ? "; " REPAIR : "");
}
