// SPDX-License-Identifier: Apache-2.0
/*
 * Landlock: a right that a ruleset handles and no rule grants is denied, for this process and all
 * that it starts. Reading stays free, except of devices. Source: Linux's Documentation/userspace-api/landlock.rst and
 * include/uapi/linux/landlock.h; numbers of the calls are those of all architectures.
 */
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	CREATE_RULESET = 444,
	ADD_RULE = 445,
	RESTRICT_SELF = 446,
};

#define ASK_VERSION 1u
#define PATH_BENEATH 1

#define EXECUTE (1ull << 0)
#define WRITE_FILE (1ull << 1)
#define READ_FILE (1ull << 2)
#define CHANGES (0x1ffull << 4) /* removing and making of files of each kind */
#define REFER (1ull << 13) /* version 2 */
#define TRUNCATE (1ull << 14) /* 3 */
#define IOCTL_DEVICE (1ull << 15) /* 5 */
#define TCP 3ull /* 4: bind, connect */
#define SCOPES 3ull /* 6: abstract sockets and signals stay inside */
#define N_HEADERS 64

struct ruleset {
	uint64_t files;
	uint64_t network;
	uint64_t scoped;
};

struct rule {
	uint64_t allowed;
	int32_t below;
} __attribute__((packed));

static uint64_t handled_files(long version)
{
	return EXECUTE | WRITE_FILE | READ_FILE | CHANGES | (version > 1 ? REFER : 0) |
	       (version > 2 ? TRUNCATE : 0) | (version > 4 ? IOCTL_DEVICE : 0);
}

static void allow(int ruleset, int below, uint64_t rights, const char *name)
{
	struct rule rule = { rights, below };

	if (below < 0 || syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) < 0)
		give_up("missing", "Landlock: %s: %s", name, strerror(errno));
}

static void allow_path(int ruleset, const char *path, uint64_t rights)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	allow(ruleset, fd, rights, path);
	close(fd);
}

/* The dynamic loader that a program names; "" for a static one. */
static void find_interpreter(int fd, char path[PATH_MAX])
{
	ElfW(Ehdr) header;
	ElfW(Phdr) segment;
	int i;

	*path = '\0';
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phentsize != sizeof(segment) ||
	    header.e_phnum > N_HEADERS)
		give_up("refused", "it is not an ELF program of this machine");
	for (i = 0; i < header.e_phnum; i++) {
		off_t at = (off_t)(header.e_phoff + (unsigned int)i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			give_up("refused", "its file is cut off");
		if (segment.p_type == PT_INTERP && segment.p_filesz < PATH_MAX &&
		    pread(fd, path, segment.p_filesz, (off_t)segment.p_offset) ==
			    (ssize_t)segment.p_filesz)
			path[segment.p_filesz] = '\0';
	}
}

/* Files can be read, but terminals and other devices: their readers take something away. */
static void allow_reading(int ruleset)
{
	static const char *const known[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					     "/dev/urandom", "/dev/shm" };
	DIR *root = opendir("/");
	struct dirent *each;
	size_t i;
	int fd;

	if (!root)
		give_up("missing", "/: %s", strerror(errno));
	while ((each = readdir(root))) {
		if (strcmp(each->d_name, "dev") == 0 || strspn(each->d_name, ".") == strlen(each->d_name))
			continue;
		fd = openat(dirfd(root), each->d_name, O_PATH | O_CLOEXEC);
		if (fd >= 0)
			allow(ruleset, fd, READ_FILE, each->d_name);
		if (fd >= 0)
			close(fd);
	}
	closedir(root);
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (access(known[i], F_OK) == 0)
			allow_path(ruleset, known[i], READ_FILE);
}

static void allow_execution(const struct sandbox *box, int ruleset)
{
	char interpreter[PATH_MAX];
	size_t i;

	if (box->may == MAY_ALL) {
		allow_path(ruleset, "/", EXECUTE);
		return;
	}
	find_interpreter(box->program, interpreter);
	allow(ruleset, box->program, EXECUTE, box->arguments[0]);
	if (*interpreter)
		allow_path(ruleset, interpreter, EXECUTE);
	for (i = 0; i < box->n_folders; i++)
		allow_path(ruleset, box->folders[i], EXECUTE);
}

void landlock_restrict(const struct sandbox *box)
{
	long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
	struct ruleset rules = { handled_files(version), TCP, SCOPES };
	size_t size = version < 4 ? sizeof(rules.files) :
		      version < 6 ? 2 * sizeof(rules.files) : sizeof(rules);
	int ruleset;

	if (version < 1)
		give_up("missing", "Landlock (Linux 5.13 or later, with landlock in lsm=)");
	ruleset = (int)syscall(CREATE_RULESET, &rules, size, 0);
	if (ruleset < 0)
		give_up("missing", "Landlock: %s", strerror(errno));
	allow_reading(ruleset);
	allow_execution(box, ruleset);
	allow_path(ruleset, "/dev/null", (WRITE_FILE | TRUNCATE) & rules.files);
	if (box->has_scratch)
		allow_path(ruleset, box->scratch, rules.files & ~EXECUTE);
	if (syscall(RESTRICT_SELF, ruleset, 0) < 0)
		give_up("missing", "Landlock: %s", strerror(errno));
	close(ruleset);
}
