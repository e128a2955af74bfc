// SPDX-License-Identifier: Apache-2.0
/*
 * FOLDER/libetrace-$PLATFORM.so: the dynamic linker puts the name of its machine there
 * (ld.so(8)), so that a program of 64 bits and one of 32 find each its own and neither complains. A
 * folder with a character that separates names in LD_PRELOAD is reached by a link in /tmp.
 */
#include "library.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/program.h"
#include "preload/ring.h"

#define FILE_NAME(machine) "libetrace-" machine ".so"
#define SPECIAL ": \t\n$"

#ifdef __aarch64__
#define THIS_MACHINE "aarch64"
#define OTHER_MACHINE "none"
#else
#define THIS_MACHINE "x86_64"
#define OTHER_MACHINE "i686"
#endif

static char folder[PRELOAD_MAX];
static char name[PRELOAD_MAX + 64];
static char link_folder[64];

static bool is_there(const char *machine)
{
	char path[PRELOAD_MAX + 128];

	snprintf(path, sizeof(path), "%s/" FILE_NAME("%s"), folder, machine);
	return access(path, R_OK) == 0;
}

static void link_to_folder(void)
{
	char target[PRELOAD_MAX];

	snprintf(target, sizeof(target), "%s", folder);
	snprintf(link_folder, sizeof(link_folder), "/tmp/etrace-preload-XXXXXX");
	if (!mkdtemp(link_folder))
		die("cannot reach the library in '%s': %s", folder, strerror(errno));
	snprintf(folder, sizeof(folder), "%s/preload", link_folder);
	if (symlink(target, folder) < 0)
		die("cannot reach the library in '%s': %s", target, strerror(errno));
}

void library_find(const char *given)
{
	char own[PATH_MAX];

	program_sibling(own, "preload");
	snprintf(folder, sizeof(folder), "%.*s", PRELOAD_MAX - 1, given ? given : own);
	if (!is_there(THIS_MACHINE))
		die("%s/" FILE_NAME(THIS_MACHINE) ": the library to preload is not installed; "
		    "run `make build`, or install the package again", folder);
	if (strpbrk(folder, SPECIAL))
		link_to_folder();
	snprintf(name, sizeof(name), "%s/" FILE_NAME("$PLATFORM"), folder);
	if (strlen(name) >= PRELOAD_MAX)
		die("%s: the name is too long for LD_PRELOAD", folder);
}

const char *library_name(void)
{
	return name;
}

bool library_has_other_size(void)
{
	return is_there(OTHER_MACHINE);
}

void library_release(void)
{
	if (!link_folder[0])
		return;
	unlink(folder);
	rmdir(link_folder);
}
