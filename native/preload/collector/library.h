/* SPDX-License-Identifier: Apache-2.0 */
/* Where the preload libraries are. */
#ifndef ETRACE_PRELOAD_LIBRARY_FILE_H
#define ETRACE_PRELOAD_LIBRARY_FILE_H

#include <stdbool.h>

/* The folder of the libraries; NULL: the one beside this program. Ends the program without one. */
void library_find(const char *folder);

/* What LD_PRELOAD has to name. */
const char *library_name(void);

/* Whether there is one for programs of the other word size. */
bool library_has_other_size(void);

/* Remove what was made for this capture. */
void library_release(void);

#endif /* ETRACE_PRELOAD_LIBRARY_FILE_H */
