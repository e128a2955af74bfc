// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: any bytes through libetrace's reader, joiner, verifier and builder. Run by
 * tests/fuzz/run.py.
 */
#include "embedded.h"

typedef int parse_memory(const char *data, size_t size, size_t chunk_bytes);

static parse_memory *parse;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	parse = (parse_memory *)load_function("libetrace.trace.pipeline", "etrace_parse_memory");
	return 0;
}

/* The length chooses how the trace is cut into chunks, so that a corpus stays plain text. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const size_t chunk_bytes[] = { 0, 1, 60, 0, 300 };

	if (parse((const char *)data, size, chunk_bytes[size % 5]) != 0)
		abort(); /* there was memory */
	return 0;
}
