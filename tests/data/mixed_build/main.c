// SPDX-License-Identifier: Apache-2.0
#include "parts.h"
#include "sizes.h"

#include <stdio.h>

int part(void);

int main(void)
{
	return printf("%s %d\n", NAME, part()) < 0;
}
