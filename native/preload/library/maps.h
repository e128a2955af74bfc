/* SPDX-License-Identifier: Apache-2.0 */
/* The files that this process has mapped, as the kernel names them, whatever they were loaded as. */
#ifndef ETRACE_PRELOAD_MAPS_H
#define ETRACE_PRELOAD_MAPS_H

#include "paths.h"

/* Mappings of one file that follow one another: an object, as the dynamic linker lays it out. */
struct mapped {
	uintptr_t start;
	uintptr_t end;
	bool is_executable; /* a part of it */
	struct path path;
};

#define MAPS_BYTES 1024

struct maps {
	int fd;
	size_t at;
	size_t n;
	bool has_line;
	uintptr_t start; /* of the line that was read last */
	uintptr_t end;
	uintptr_t offset;
	bool is_executable;
	struct path path;
	char bytes[MAPS_BYTES];
};

/* In order of addresses. Without /proc there are none. */
void maps_open(struct maps *maps);
bool maps_next(struct maps *maps, struct mapped *mapped);
void maps_close(struct maps *maps);

#endif /* ETRACE_PRELOAD_MAPS_H */
