/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text -> JSON, as Python's json.dumps(text, ensure_ascii=False) prints it. A lone surrogate becomes
 * its escape, \ud800; a byte that is no WTF-8 becomes \udcNN, as Python's surrogateescape has it.
 */
#ifndef WINDOWS_JSON_H
#define WINDOWS_JSON_H

#include "buffer.h"

void json_string(struct buffer *out, struct text text);

#endif /* WINDOWS_JSON_H */
