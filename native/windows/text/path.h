/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files as Windows reads them: drives, both slashes, no case. Which programs are known. */
#ifndef WINDOWS_PATH_H
#define WINDOWS_PATH_H

#include "buffer.h"

/*
 * `name` as a program in `directory` means it: absolute names unchanged, `\x` on its drive, `x`
 * below it; `D:x` is in the root of D: when the directory is on another drive.
 */
void path_join(struct buffer *out, struct text directory, struct text name);
/* The last part, without `.exe`. */
struct text path_program(struct text path);
/* Without the slash at its end, except in a root. */
struct text path_directory(struct text path);
/* Neither a device (`\\.\x`) nor a name of the object manager. */
bool path_is_plain(struct text path);
/* Without `\\?\`, `\??\` and `\\?\UNC`, which a program need not have given. */
void path_add_plain(struct buffer *out, struct text path);

/*
 * Programs that make an item of the build spec, by the last part of argument 0: names between
 * commas, those of unix-tracer, then the compilers that only Windows has.
 */
extern const char known_default[];

/* Take a list between commas; an empty name is left out. */
void known_split(struct words *names, struct text list);
/* Whether one of `names`, which may be globs, is that of `program`. Case does not count. */
bool known_has(const struct words *names, struct text program);

#endif /* WINDOWS_PATH_H */
