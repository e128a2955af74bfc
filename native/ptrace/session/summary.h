/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_SUMMARY_H
#define ETRACE_PTRACE_SUMMARY_H

#include <stdbool.h>

/* Print a summary, the trace's name and the next step on stderr, if any program ran. */
void summary_tell(bool is_interrupted);

#endif /* ETRACE_PTRACE_SUMMARY_H */
