/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of argv, as the database image has them, against all patterns. */
#ifndef ETRACE_ROWS_H
#define ETRACE_ROWS_H

#include "glob.h"

/* The text of row i is its strings arguments[argv[i]..argv[i + 1]), one space between. */
struct rows {
	const uint64_t *strings; /* n_strings + 1 offsets in `bytes` */
	uint64_t n_strings;
	const uint8_t *bytes;
	uint64_t n_bytes;
	const uint64_t *argv; /* n + 1 offsets in `arguments` */
	uint64_t n;
	const uint32_t *arguments;
	uint64_t n_arguments;
};

/*
 * Set the bits of each row in `bits`, ceil(n patterns / 8) bytes a row, all zero before. 0, -ENOMEM,
 * -EINVAL for an offset out of order or range, -EOVERFLOW for a row of 4 GiB, -EINTR.
 */
int match_rows(const struct globs *globs, const struct rows *rows, uint8_t *bits);

#endif /* ETRACE_ROWS_H */
