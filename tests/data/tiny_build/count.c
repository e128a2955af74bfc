// SPDX-License-Identifier: Apache-2.0
#include "generated.h"
#include "parts.h"

int count_words(void)
{
	return N_WORDS;
}
