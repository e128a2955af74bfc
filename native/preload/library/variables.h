/* SPDX-License-Identifier: Apache-2.0 */
/* The variables without which an executed program would not be traced. */
#ifndef ETRACE_PRELOAD_VARIABLES_H
#define ETRACE_PRELOAD_VARIABLES_H

#include "system.h"

/* Whether the library could be read when an environment was looked at last. */
bool variables_have_library(void);

/* What variables_put() needs in bytes for this environment; 0 when it has all that is needed. */
size_t variables_need(char *const *environment);

/*
 * A copy of the environment in `room`, with what is missing. Where the library cannot be read (another root
 * directory, another user), without it: the dynamic linker would complain.
 */
char **variables_put(char *const *environment, void *room);

/* `environment`, or a copy with what is missing, which lives as long as the calling function. */
#define TRACED(environment) \
	({ \
		char *const *given_ = (environment); \
		size_t need_ = variables_need(given_); \
		need_ ? variables_put(given_, __builtin_alloca(need_)) : (char **)given_; \
	})

#endif /* ETRACE_PRELOAD_VARIABLES_H */
