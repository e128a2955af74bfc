/* SPDX-License-Identifier: Apache-2.0 */
/* What another process was started with, read from its memory before it runs. */
#ifndef WINDOWS_PARAMETERS_H
#define WINDOWS_PARAMETERS_H

#include <windows.h>

#include "text/buffer.h"

struct parameters {
	struct buffer directory;
	struct buffer command_line;
	struct buffer image; /* as it was asked for */
	struct words environment;
	bool lacks_environment; /* it was asked for, and could not be read, or not to its end */
	bool has_loader; /* its loader has begun: before, Wine may not have filled the others in */
	unsigned long parent; /* process id of who made it */
};

/* False when the process cannot be read; `parent` is set wherever it is known. */
bool parameters_read(struct parameters *out, HANDLE process, bool wants_environment);
/* The path of the file that runs, as the file system spells it; `file` may be NULL. */
struct buffer parameters_image(HANDLE process, HANDLE file);
void parameters_free(struct parameters *parameters);

#endif /* WINDOWS_PARAMETERS_H */
