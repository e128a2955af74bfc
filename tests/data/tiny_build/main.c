// SPDX-License-Identifier: Apache-2.0
#include "generated.h"
#include "parts.h"

#include <stdio.h>

int main(void)
{
	greet(WORD_0);
	printf("%d words\n", count_words());
	return 0;
}
