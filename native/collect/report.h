/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_COLLECT_REPORT_H
#define ETRACE_COLLECT_REPORT_H

/* The collecting begins. */
void report_start(void);

/* One line about the progress to --status-fd, twice a second at most; `now`: in any case. */
void report_status(bool now);

/* The collector ended: print losses on stderr, write the stats. */
void report_end(void);

/* Anything that happened and is not in the output was lost. */
bool report_lossy(void);

#endif /* ETRACE_COLLECT_REPORT_H */
