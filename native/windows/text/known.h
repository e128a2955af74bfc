/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs make an item of the build spec: by the last part of argument 0, without `.exe`. */
#ifndef WINDOWS_KNOWN_H
#define WINDOWS_KNOWN_H

#include "buffer.h"

/* Names between commas: those of unix-tracer, then the compilers that only Windows has. */
extern const char known_default[];

/* Take a list between commas; an empty name is left out. */
void known_split(struct words *names, struct text list);
/* Whether one of `names`, which may be globs, is that of `program`. Case does not count. */
bool known_has(const struct words *names, struct text program);

#endif /* WINDOWS_KNOWN_H */
