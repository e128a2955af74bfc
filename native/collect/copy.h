/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_COLLECT_COPY_H
#define ETRACE_COLLECT_COPY_H

/* Copy the lines of a file, pipe or trace_pipe to the output until its end or a signal. */
void copy_run(const char *path);

#endif /* ETRACE_COLLECT_COPY_H */
