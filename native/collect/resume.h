/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a collector that died, to be continued. */
#ifndef ETRACE_COLLECT_RESUME_H
#define ETRACE_COLLECT_RESUME_H

#include <sys/types.h>

/*
 * Cut the file behind the last event, or frame with --zstd, that is whole as far as can be told;
 * return its length. Ends the program when it is not such a file; it is as it was then.
 */
off_t resume_cut(int fd, const char *name);

#endif /* ETRACE_COLLECT_RESUME_H */
