/* SPDX-License-Identifier: Apache-2.0 */
/* What response files of compilers hold (docs/compilations.md). */
#ifndef ETRACE_PRELOAD_RESPONSE_H
#define ETRACE_PRELOAD_RESPONSE_H

/* A program was loaded: tell what the files hold that its arguments name, if it is a compiler. */
void response_tell(char *const *arguments);

#endif /* ETRACE_PRELOAD_RESPONSE_H */
