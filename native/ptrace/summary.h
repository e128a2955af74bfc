/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_SUMMARY_H
#define ETRACE_PTRACE_SUMMARY_H

#include <stdbool.h>

/* Tell on stderr what was captured, where it is and what to do next; nothing when no program ran. */
void summary_tell(bool is_interrupted);

#endif /* ETRACE_PTRACE_SUMMARY_H */
