/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xcalbuild's configuration of tools (JSON) -> names of programs and their options for response
 * files: [{"binary": "armlink", "responseFileArgs": [{"argument": "--Via", "argFormat": ["space"]}]}]
 */
#ifndef WINDOWS_CONFIG_H
#define WINDOWS_CONFIG_H

#include "response.h"

struct config {
	struct words names; /* empty: every program is known */
	struct words strings; /* what `rules` point to, once all are read */
	struct response_rule *rules;
	size_t n_rules;
};

/* Read a configuration. NULL, or what is wrong; `*at` is then the offset of the byte. */
const char *config_read(struct config *config, struct text json, size_t *at);
void config_free(struct config *config);

#endif /* WINDOWS_CONFIG_H */
