/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of windows-tracer, with xcalbuild's options and some of its own. */
#ifndef WINDOWS_OPTIONS_H
#define WINDOWS_OPTIONS_H

#include <windows.h>

#include "text/config.h"

#define RESPONSES_SUFFIX L".rsp" /* after the name of the event lines */

struct options {
	wchar_t *output; /* NULL: no build spec */
	wchar_t *trace; /* NULL: no event lines */
	bool is_debug;
	bool has_environment;
	bool expands;
	bool no_wait;
	struct words known;
	bool knows_all;
	struct response_rules rules;
	struct config config;
	wchar_t *command; /* as it was typed */
};

/* Read the process's own command line. Ends for -h, -p, --version and for a wrong one. */
void options_read(struct options *options);

#endif /* WINDOWS_OPTIONS_H */
