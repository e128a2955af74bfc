/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A variable of an environment that nobody asked for -> the same without its value when that looks
 * like a secret: by its name, as etrace/redaction/names.py reads names, or by a name, an address
 * with a password or a private key in the value. Context: any; nothing here allocates or sleeps.
 */
#ifndef ETRACE_SECRET_H
#define ETRACE_SECRET_H

#include "etrace_format.h"

#define ETRACE_HIDDEN_MAX 256 /* a longer name is cut */

/*
 * Write what a capture records in place of `NAME=value`, and return its length; 0 when it records
 * the variable unchanged. A value that is not whole is hidden.
 */
size_t etrace_hide(char hidden[ETRACE_HIDDEN_MAX], const char *variable, size_t len, bool is_whole);

#endif /* ETRACE_SECRET_H */
