// SPDX-License-Identifier: Apache-2.0
/* The head of a program's file: the `#!` line of a script, the PT_INTERP of an ELF file. */
#include "capture/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Any program may have sent the name, and opening a device or a pipe does something. */
size_t program_file_head(const char *path, char head[FILE_HEAD_BYTES], struct stat *st)
{
	int found = open(path, O_PATH | O_CLOEXEC);
	char name[32];
	ssize_t n = -1;
	int fd = -1;

	memset(head, 0, FILE_HEAD_BYTES);
	if (found < 0)
		return 0;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
	if (fstat(found, st) == 0 && S_ISREG(st->st_mode))
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		n = pread(fd, head, FILE_HEAD_BYTES - 1, 0);
		close(fd);
	}
	close(found);
	return n > 0 ? (size_t)n : 0;
}

const char *program_file_interpreter(const char *head, size_t *len)
{
	const char *start = head + 2 + strspn(head + 2, " \t");

	*len = strcspn(start, " \t\n");
	return memcmp(head, "#!", 2) || !*len ? NULL : start;
}

/* A program header, of either class. */
struct segment {
	uint32_t type;
	uint64_t offset, size;
};

static struct segment segment_at(const char *at, int class)
{
	if (class == ELFCLASS64) {
		Elf64_Phdr header;

		memcpy(&header, at, sizeof(header));
		return (struct segment){ header.p_type, header.p_offset, header.p_filesz };
	} else {
		Elf32_Phdr header;

		memcpy(&header, at, sizeof(header));
		return (struct segment){ header.p_type, header.p_offset, header.p_filesz };
	}
}

bool program_file_loader(const char *head, size_t n, const char **loader)
{
	int class = head[EI_CLASS];
	size_t i, at, count, size, least;

	*loader = NULL;
	if (class == ELFCLASS64) {
		const Elf64_Ehdr *elf = (const Elf64_Ehdr *)head;

		at = elf->e_phoff, count = elf->e_phnum, size = elf->e_phentsize;
		least = sizeof(Elf64_Phdr);
	} else {
		const Elf32_Ehdr *elf = (const Elf32_Ehdr *)head;

		at = elf->e_phoff, count = elf->e_phnum, size = elf->e_phentsize;
		least = sizeof(Elf32_Phdr);
	}
	for (i = 0; i < count && at <= n && n - at >= least; i++, at += size) {
		struct segment segment = segment_at(head + at, class);

		if (segment.type != PT_INTERP)
			continue;
		if (segment.offset < n && segment.size && segment.size <= n - segment.offset &&
		    segment.size <= PATH_MAX && !head[segment.offset + segment.size - 1])
			*loader = head + segment.offset;
		return true;
	}
	return false;
}
