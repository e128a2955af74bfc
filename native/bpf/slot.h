/* SPDX-License-Identifier: Apache-2.0 */
/* How many captures run at once: each adds to the time of every system call of the machine. */
#ifndef ETRACE_BPF_SLOT_H
#define ETRACE_BPF_SLOT_H

#define SLOTS_OF_USER 2
#define SLOTS_OF_MACHINE 4

/* One of the captures without root that may run, until this process ends. NULL, or why there is none. */
const char *slot_take(void);

#endif /* ETRACE_BPF_SLOT_H */
