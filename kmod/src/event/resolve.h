/* SPDX-License-Identifier: GPL-2.0-only */
/* The files that names of a task lead to now. Process context of the task, sleeps. */
#ifndef ETRACE_RESOLVE_H
#define ETRACE_RESOLVE_H

#include "etrace_format.h"

/* With a descriptor: what execveat puts before its name. */
#define ETRACE_FD_DIRECTORY "/dev/fd/"

/* Is `name` one of a link of /proc, which leads to a descriptor or a program? */
bool etrace_is_proc_name(const char *name);

/*
 * What a descriptor is, where `name` is one by a link of /proc, in `buf` of ETRACE_PATH_BYTES; else
 * absent.
 */
struct etrace_text etrace_descriptor_name(const char *name, char *buf);

/*
 * The file that a path of the task leads to now: absolute, directories resolved, a symlink at its
 * end followed or not, in `buf` of ETRACE_PATH_BYTES. Where there is no such file but its directory
 * exists and `or_new` is set, the name it would have; else absent. `scratch` of 2 * PATH_MAX bytes
 * is used on the way. Sleeps.
 */
struct etrace_text etrace_resolve(int dirfd, u64 address, bool follow, bool or_new, char *scratch,
				  char *buf);

#endif /* ETRACE_RESOLVE_H */
