/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read whole: response files, the configuration. Only regular ones, within a limit. */
#ifndef WINDOWS_FILES_H
#define WINDOWS_FILES_H

#include "text/buffer.h"

/* Append the content as UTF-8. GetLastError() says why not. */
bool file_read(struct text name, size_t max_bytes, struct buffer *content);

#endif /* WINDOWS_FILES_H */
