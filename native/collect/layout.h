/* SPDX-License-Identifier: Apache-2.0 */
/* What tracefs says about pages and records. */
#ifndef ETRACE_COLLECT_LAYOUT_H
#define ETRACE_COLLECT_LAYOUT_H

#include "page.h"

/*
 * Read the layout below the open directory `instance`, named `name` in messages. Ends the program
 * when a file is missing or says what this program does not understand.
 */
void layout_read(struct page_layout *layout, int instance, const char *name);

#endif /* ETRACE_COLLECT_LAYOUT_H */
