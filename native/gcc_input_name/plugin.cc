// SPDX-License-Identifier: Apache-2.0
/*
 * Plugin of GCC that prints the input files of a compilation, one a line, and ends cc1 before it
 * compiles anything: `gcc -fsyntax-only -fplugin=libgcc_input_name.so x.c`. etrace uses it only in a
 * scratch directory, to confirm what it read from a traced command line (docs/compilations.md).
 *
 * cc1 keeps its inputs in in_fnames (gcc/opts.h). PLUGIN_START_UNIT comes when they are open and
 * nothing is parsed yet (gcc/doc/plugins.texi). GCC loads only plugins that declare a licence
 * compatible with the GPL, which Apache-2.0 is with version 3.
 */
#include "gcc-plugin.h"
#include "plugin-version.h"
#include "opts.h"

extern "C" {
__attribute__((visibility("default"))) int plugin_is_GPL_compatible;

__attribute__((visibility("default"))) int
plugin_init(struct plugin_name_args *info, struct plugin_gcc_version *version);
}

static void
print_inputs(void *, void *)
{
	for (unsigned i = 0; i < num_in_fnames; i++)
		puts(in_fnames[i]);
	/* not exit(): cc1 has no output to finish */
	_exit(fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
}

int
plugin_init(struct plugin_name_args *info, struct plugin_gcc_version *version)
{
	if (!plugin_default_version_check(version, &gcc_version))
		return 1;
	register_callback(info->base_name, PLUGIN_START_UNIT, print_inputs, NULL);
	return 0;
}
