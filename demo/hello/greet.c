#include "greet.h"
#include "words.h"

const char *greet(void)
{
	return WORD;
}
