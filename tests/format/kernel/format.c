// SPDX-License-Identifier: GPL-2.0-only
/* kbuild compiles files of its own directory only, so the shared one is included. */
#include "../../../native/format/etrace_format.c"
