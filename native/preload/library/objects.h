/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that the dynamic linker loaded. */
#ifndef ETRACE_PRELOAD_OBJECTS_H
#define ETRACE_PRELOAD_OBJECTS_H

#include "record.h"

/* Where the kernel has loaded the linker itself. */
void objects_note_linker(uintptr_t address);

/* Add the names of those that are loaded to a record, when the program starts; return how many. */
int objects_put_first(struct record *record);

/* A record of those that were opened since the last look, if there are any. */
void objects_put_new(void);

#endif /* ETRACE_PRELOAD_OBJECTS_H */
