// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

#include <stdio.h>

void greet(const char *whom)
{
	printf("hello, %s\n", whom);
}
