// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: any bytes through a nogil function of libetrace, FUNCTION of MODULE. The modules
 * are built with the same sanitizers and imported by an embedded interpreter, which is idle after that.
 * Run by tests/fuzz/run.py.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sanitizer/lsan_interface.h>

#ifdef TAKES_CHUNK_BYTES
typedef int function(const char *data, size_t size, size_t chunk_bytes);
#else
typedef int function(const unsigned char *data, uint64_t size);
#endif

static function *target;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* What a module of Cython exports for C is in its __pyx_capi__, a capsule named by its type. */
static void *find_function(void)
{
	PyObject *module = PyImport_ImportModule(MODULE);
	PyObject *exported = module ? PyObject_GetAttrString(module, "__pyx_capi__") : NULL;
	PyObject *capsule = exported ? PyDict_GetItemString(exported, FUNCTION) : NULL;

	return capsule ? PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)) : NULL;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	__lsan_disable(); /* what the interpreter keeps is not the target's */
	Py_InitializeEx(0);
	target = (function *)find_function();
	if (!target) {
		PyErr_Print();
		fprintf(stderr, "fuzz: no " FUNCTION " in " MODULE "; is PYTHONPATH set?\n");
		exit(1);
	}
	PyEval_SaveThread();
	__lsan_enable();
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
#ifdef TAKES_CHUNK_BYTES /* the length chooses one, so that a corpus stays plain text */
	static const size_t chunk_bytes[] = { 0, 1, 60, 0, 300 };
	int status = target((const char *)data, size, chunk_bytes[size % 5]);
#else
	int status = target(data, size);
#endif

	if (status)
		abort(); /* there was memory */
	return 0;
}
