// SPDX-License-Identifier: Apache-2.0
/*
 * What another process was started with: RTL_USER_PROCESS_PARAMETERS, which its PEB points to. A
 * 32-bit process of a 64-bit Windows has two PEBs. The 64-bit one is complete before the process
 * runs, so it is read first; the other one serves where it has no parameters (Wine).
 *
 * Sources of the offsets: winternl.h and phnt's ntrtl.h; they are the same since Windows 2000 (32
 * bits) and XP x64 (64 bits).
 */
#include "trace/parameters.h"

#include <stdint.h>
#include <stdlib.h>
#include <winternl.h>

#include "text/path.h"
#include "text/wtf8.h"
#include "trace/report.h"

#define WOW64_INFORMATION 26 /* ProcessWow64Information: address of the 32-bit PEB, or 0 */
#define NORMALIZED 1 /* in Flags: pointers, else offsets from the parameters */
#define ENVIRONMENT_MAX (8u << 20)
#define PAGE 4096
#define PATH_ROOM 32768

/* Offsets of one word size. */
struct layout {
	size_t word;
	size_t loader; /* these two in the PEB, the others in the parameters */
	size_t parameters;
	size_t flags;
	size_t directory;
	size_t image;
	size_t command_line;
	size_t environment;
};

static const struct layout layout64 = { 8, 0x18, 0x20, 0x08, 0x38, 0x60, 0x70, 0x80 };
static const struct layout layout32 = { 4, 0x0c, 0x10, 0x08, 0x24, 0x38, 0x40, 0x48 };

struct remote {
	HANDLE process;
	const struct layout *layout;
	uint64_t peb;
	uint64_t parameters;
	bool is_normalized;
};

static bool read_at(const struct remote *remote, uint64_t address, void *out, size_t len)
{
	SIZE_T n;

	if (address > UINTPTR_MAX)
		return false;
	return ReadProcessMemory(remote->process, (const void *)(uintptr_t)address, out, len, &n) &&
	       n == len;
}

static bool read_word(const struct remote *remote, uint64_t address, uint64_t *out)
{
	*out = 0; /* both are little endian */
	return read_at(remote, address, out, remote->layout->word);
}

static bool read_pointer(const struct remote *remote, uint64_t address, uint64_t *out)
{
	if (!read_word(remote, address, out))
		return false;
	if (*out && !remote->is_normalized)
		*out += remote->parameters;
	return true;
}

/* A UNICODE_STRING: length and room in bytes, then the pointer. */
static bool read_string(const struct remote *remote, size_t offset, struct buffer *out)
{
	uint64_t address = remote->parameters + offset, text;
	uint16_t n_bytes;
	wchar_t *wide;
	bool is_read;

	if (!read_at(remote, address, &n_bytes, sizeof(n_bytes)) ||
	    !read_pointer(remote, address + remote->layout->word, &text))
		return false;
	wide = must_realloc(NULL, n_bytes);
	is_read = !n_bytes || read_at(remote, text, wide, n_bytes);
	if (is_read) /* the program itself reads no further than the first null character */
		wtf8_from_utf16(out, (const uint16_t *)wide, wcsnlen(wide, n_bytes / sizeof(wchar_t)));
	free(wide);
	return is_read;
}

/* Look on from `*at`, which is moved: every unit is looked at once. */
static bool has_end(const struct buffer *block, size_t *at)
{
	const uint16_t *units = (const uint16_t *)(const void *)block->data;
	size_t n = block->len / sizeof(uint16_t);

	for (; *at < n; ++*at) {
		if (!units[*at] && (!*at || !units[*at - 1])) /* or no variable at all */
			return true;
	}
	return false;
}

static void split_environment(struct words *out, const struct buffer *block)
{
	const uint16_t *units = (const uint16_t *)(const void *)block->data;
	size_t n = block->len / sizeof(uint16_t), start = 0;

	for (size_t at = 0; at < n; at++) {
		struct buffer variable = { 0 };

		if (units[at])
			continue;
		if (at == start)
			return;
		wtf8_from_utf16(&variable, units + start, at - start);
		words_add(out, buffer_text(&variable));
		buffer_free(&variable);
		start = at + 1;
	}
}

/* Its end is where two null characters are; memory after it need not exist, so page by page. */
static bool read_environment(const struct remote *remote, struct words *out)
{
	struct buffer block = { 0 };
	char page[PAGE];
	uint64_t at;
	size_t looked = 0;
	bool is_whole = false;

	if (!read_pointer(remote, remote->parameters + remote->layout->environment, &at))
		return false;
	while (at && !(is_whole = has_end(&block, &looked)) && block.len < ENVIRONMENT_MAX) {
		size_t len = PAGE - at % PAGE;

		if (!read_at(remote, at, page, len))
			break;
		buffer_add(&block, page, len);
		at += len;
	}
	if (block.len)
		split_environment(out, &block);
	buffer_free(&block);
	return is_whole || !at;
}

static bool find_parameters(struct remote *remote, uint64_t peb)
{
	uint32_t flags;

	remote->peb = peb;
	if (!peb || !read_word(remote, peb + remote->layout->parameters, &remote->parameters) ||
	    !remote->parameters)
		return false;
	if (!read_at(remote, remote->parameters + remote->layout->flags, &flags, sizeof(flags)))
		return false;
	remote->is_normalized = flags & NORMALIZED;
	return true;
}

static bool find_remote(struct remote *remote, uint64_t peb)
{
	ULONG_PTR peb32 = 0;

	remote->layout = sizeof(void *) == 8 ? &layout64 : &layout32;
	if (find_parameters(remote, peb))
		return true;
	if (sizeof(void *) == 4 ||
	    NtQueryInformationProcess(remote->process, (PROCESSINFOCLASS)WOW64_INFORMATION, &peb32,
				      sizeof(peb32), NULL))
		return false;
	remote->layout = &layout32;
	return find_parameters(remote, peb32);
}

/*
 * Wine's programs copy them when they begin, and what was read from the first place may be void.
 * False for a process that has ended meanwhile: there will be nothing else to read.
 */
static bool has_moved(const struct remote *remote)
{
	uint64_t now;

	return read_word(remote, remote->peb + remote->layout->parameters, &now) &&
	       now != remote->parameters;
}

bool parameters_read(struct parameters *out, HANDLE process, bool wants_environment)
{
	struct remote remote = { .process = process };
	PROCESS_BASIC_INFORMATION basic;
	struct text directory;
	uint64_t loader;

	*out = (struct parameters){ 0 };
	if (NtQueryInformationProcess(process, ProcessBasicInformation, &basic, sizeof(basic), NULL))
		return false;
	out->parent = (unsigned long)basic.InheritedFromUniqueProcessId;
	if (!find_remote(&remote, (uintptr_t)basic.PebBaseAddress))
		return false;
	out->has_loader = read_word(&remote, remote.peb + remote.layout->loader, &loader) && loader;
	if (!read_string(&remote, remote.layout->directory, &out->directory) ||
	    !read_string(&remote, remote.layout->image, &out->image) ||
	    !read_string(&remote, remote.layout->command_line, &out->command_line))
		return false;
	directory = path_directory(buffer_text(&out->directory));
	out->directory.len = directory.len;
	out->lacks_environment = wants_environment && !read_environment(&remote, &out->environment);
	return !has_moved(&remote);
}

struct buffer parameters_image(HANDLE process, HANDLE file)
{
	wchar_t *wide = must_realloc(NULL, PATH_ROOM * sizeof(wchar_t));
	struct buffer path, plain = { 0 };
	DWORD n = 0;

	if (file)
		n = GetFinalPathNameByHandleW(file, wide, PATH_ROOM, VOLUME_NAME_DOS);
	if (!n || n >= PATH_ROOM) {
		n = PATH_ROOM;
		if (!QueryFullProcessImageNameW(process, 0, wide, &n))
			n = 0;
	}
	path = text_from_wide(wide, n);
	path_add_plain(&plain, buffer_text(&path));
	buffer_free(&path);
	free(wide);
	return plain;
}

void parameters_free(struct parameters *parameters)
{
	buffer_free(&parameters->directory);
	buffer_free(&parameters->command_line);
	buffer_free(&parameters->image);
	words_free(&parameters->environment);
}
