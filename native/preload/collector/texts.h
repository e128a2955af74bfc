/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of a record, one after the other. */
#ifndef ETRACE_PRELOAD_TEXTS_H
#define ETRACE_PRELOAD_TEXTS_H

#include <string.h>

#include "etrace_format.h"
#include "ring_file.h"

struct strings {
	const char *at;
	const char *end;
};

static inline struct strings strings_of(const struct event *event)
{
	return (struct strings){ event->bytes, event->bytes + event->n_bytes };
}

/* The next one; empty when there is none (the record is not what it should be). */
static inline struct etrace_text strings_next(struct strings *strings)
{
	struct etrace_text text = { strings->at, 0 };
	uint32_t n;

	if ((size_t)(strings->end - strings->at) < sizeof(n)) {
		strings->at = strings->end;
		return text;
	}
	memcpy(&n, strings->at, sizeof(n));
	strings->at += sizeof(n);
	if (n > (size_t)(strings->end - strings->at))
		n = (uint32_t)(strings->end - strings->at);
	text = (struct etrace_text){ strings->at, n };
	strings->at += n;
	return text;
}

#endif /* ETRACE_PRELOAD_TEXTS_H */
