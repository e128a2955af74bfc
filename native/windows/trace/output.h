/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that appears whole or not at all: it is written beside its place under another
 * name, marked for removal until it is complete, and then renamed. A killed tracer leaves nothing.
 * What is complete is kept under the other name when the place cannot be had.
 */
#ifndef WINDOWS_OUTPUT_H
#define WINDOWS_OUTPUT_H

#include <windows.h>

#include "text/buffer.h"

struct output {
	HANDLE file;
	wchar_t *path;
	wchar_t *temporary;
	struct buffer buffer; /* to be written */
	unsigned long long n_bytes;
	DWORD error;
};

/* die() when the place cannot be written. */
void output_open(struct output *output, const wchar_t *path);
/* Write what is in the buffer when it is much. */
void output_flow(struct output *output);
/* Give the file its name; false when it could not be written, which was said. */
bool output_finish(struct output *output);
void output_drop(struct output *output);

#endif /* WINDOWS_OUTPUT_H */
