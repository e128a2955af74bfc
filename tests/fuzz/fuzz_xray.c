// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: any bytes as an XRay log, through framing, reader, expander, percentiles and
 * stacks. The length chooses the options. Run by tests/fuzz/run.py.
 */
#include "embedded.h"

typedef int account_memory(const unsigned char *data, uint64_t size);

static account_memory *account;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	account = (account_memory *)load_function("libetrace.xray.account",
						  "etrace_xray_account_memory");
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (account(data, size) != 0)
		abort(); /* there was memory */
	return 0;
}
