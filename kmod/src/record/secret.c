// SPDX-License-Identifier: GPL-2.0-only
/* kbuild compiles files of its own tree only, so the shared one is included. */
#include "etrace_secret.c"
