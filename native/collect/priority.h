/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_COLLECT_PRIORITY_H
#define ETRACE_COLLECT_PRIORITY_H

/* Get to run, write and live in preference to what is traced, as far as that is permitted. */
void priority_raise(void);

#endif /* ETRACE_COLLECT_PRIORITY_H */
