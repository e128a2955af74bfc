// SPDX-License-Identifier: Apache-2.0
#include "table.h"

int f(void)
{
	return T;
}
