// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: any bytes through libetrace's reader, joiner, verifier and builder. The modules
 * are built with the same sanitizers and imported by an embedded interpreter; after that the
 * interpreter is idle, an execution calls the nogil function alone. Run by tests/fuzz/run.py.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sanitizer/lsan_interface.h>

#define MODULE "libetrace.passes"
#define FUNCTION "etrace_parse_memory"

typedef int parse_memory(const char *data, size_t size, size_t chunk_bytes);

static parse_memory *parse;

/* What a module of Cython exports for C is in its __pyx_capi__, a capsule named by its type. */
static parse_memory *find_parse(void)
{
	PyObject *module = PyImport_ImportModule(MODULE);
	PyObject *exported = module ? PyObject_GetAttrString(module, "__pyx_capi__") : NULL;
	PyObject *capsule = exported ? PyDict_GetItemString(exported, FUNCTION) : NULL;

	if (!capsule)
		return NULL;
	return (parse_memory *)PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	__lsan_disable(); /* what the interpreter keeps is not the parser's */
	Py_InitializeEx(0);
	parse = find_parse();
	if (!parse) {
		PyErr_Print();
		fprintf(stderr, "fuzz_parser: no " FUNCTION " in " MODULE "; is PYTHONPATH set?\n");
		exit(1);
	}
	PyEval_SaveThread();
	__lsan_enable();
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
