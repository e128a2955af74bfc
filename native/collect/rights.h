/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_COLLECT_RIGHTS_H
#define ETRACE_COLLECT_RIGHTS_H

/* Everything is open: give up what only opening it needed. The trace is `output`. */
void rights_drop(int output);

#endif /* ETRACE_COLLECT_RIGHTS_H */
