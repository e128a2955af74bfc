/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files as Windows reads them: drives, both slashes, names without regard to case. */
#ifndef WINDOWS_PATH_H
#define WINDOWS_PATH_H

#include "buffer.h"

/*
 * `name` as a program in `directory` means it: absolute names as they are, `\x` on its drive, `x`
 * below it; `D:x` lies in the root of D: when the directory is on another drive.
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

#endif /* WINDOWS_PATH_H */
