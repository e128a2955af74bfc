/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a program, and what the kernel loads for it: elf(5). */
#ifndef ETRACE_CAPTURE_PROGRAM_FILE_H
#define ETRACE_CAPTURE_PROGRAM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define FILE_HEAD_BYTES 4096

/* Read the first bytes of a regular file, never of another; zeros follow. Returns how many. */
size_t program_file_head(const char *path, char head[FILE_HEAD_BYTES], struct stat *st);

/* The name in the first line of a script, within `head`; NULL: it has none. */
const char *program_file_interpreter(const char *head, size_t *len);

/* Whether an ELF file names a dynamic loader; `loader` is NULL when the name is not within `head`. */
bool program_file_loader(const char *head, size_t n, const char **loader);

#endif /* ETRACE_CAPTURE_PROGRAM_FILE_H */
