// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: any bytes as DWARF: units, abbreviations, entries, and line tables. The first
 * byte says where abbreviations begin, the second the byte order. Run by tests/fuzz/run.py.
 */
#include "embedded.h"

typedef int debug_memory(const unsigned char *data, uint64_t size);

static debug_memory *scan;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	scan = (debug_memory *)load_function("libetrace.xray.subprograms",
					     "etrace_xray_debug_memory");
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (scan(data, size) != 0)
		abort(); /* there was memory */
	return 0;
}
