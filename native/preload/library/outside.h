/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PRELOAD_OUTSIDE_H
#define ETRACE_PRELOAD_OUTSIDE_H

/* A program without the shared memory of that name: the collector counts it. */
void outside_tell(const char *ring);

#endif /* ETRACE_PRELOAD_OUTSIDE_H */
