/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For targets in Cython: the modules are built with the same sanitizers and imported by an embedded
 * interpreter; after that the interpreter is idle, an execution calls a nogil function alone.
 */
#ifndef ETRACE_FUZZ_EMBEDDED_H
#define ETRACE_FUZZ_EMBEDDED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sanitizer/lsan_interface.h>

/* What a module of Cython exports for C is in its __pyx_capi__, a capsule named by its type. */
static void *find_function(const char *module_name, const char *name)
{
	PyObject *module = PyImport_ImportModule(module_name);
	PyObject *exported = module ? PyObject_GetAttrString(module, "__pyx_capi__") : NULL;
	PyObject *capsule = exported ? PyDict_GetItemString(exported, name) : NULL;

	return capsule ? PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)) : NULL;
}

/* Start the interpreter, find the function, and let the interpreter rest. */
static void *load_function(const char *module_name, const char *name)
{
	void *found;

	__lsan_disable(); /* what the interpreter keeps is not the target's */
	Py_InitializeEx(0);
	found = find_function(module_name, name);
	if (!found) {
		PyErr_Print();
		fprintf(stderr, "fuzz: no %s in %s; is PYTHONPATH set?\n", name, module_name);
		exit(1);
	}
	PyEval_SaveThread();
	__lsan_enable();
	return found;
}

#endif /* ETRACE_FUZZ_EMBEDDED_H */
