/* SPDX-License-Identifier: Apache-2.0 */
/* The programs in the kernel: loaded, attached, and what they hand over. */
#ifndef ETRACE_BPF_KERNEL_SIDE_H
#define ETRACE_BPF_KERNEL_SIDE_H

#include <stdbool.h>
#include <sys/types.h>

#include "etrace_format.h"
#include "bpf/record.h"

/* Load the programs with the options of the capture and attach them. Return NULL, or why it cannot be. */
const char *kernel_start(void);

/* The next process that this one forks is the root of what is traced. */
void kernel_take_next_child(void);

/* A process that runs, and what it starts from now on. Ends the program if that cannot be. */
void kernel_take_process(pid_t pid);

/* The members of the control group of the options, and what they start. Its number was noted at the start. */
void kernel_take_cgroup(void);

/* From here on no further one is. */
void kernel_take_no_child(void);

/* To wait for. */
int kernel_fd(void);

/* Hand on every record that is there; `text` are the strings after the head. */
void kernel_drain(void (*receive)(const struct record *record, const char *text, size_t n));

/* Nothing is recorded from here on. */
void kernel_stop(void);

/* Records for which there was no room, those that the kernel did not let a program make, and tasks without room. */
u64 kernel_lost_records(void);
u64 kernel_missed_records(void);
u64 kernel_lost_tasks(void);

#endif /* ETRACE_BPF_KERNEL_SIDE_H */
