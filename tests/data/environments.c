// SPDX-License-Identifier: Apache-2.0
/* `environments N K`: N executions, one after the other, each with K variables of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE_MAX 16

int main(int argc, char **argv)
{
	if (argc < 3)
		return 0;
	int n = atoi(argv[1]), k = atoi(argv[2]);
	char **variables = calloc(k + 1, sizeof(*variables));
	char *texts = malloc((size_t)k * VARIABLE_MAX);

	for (int i = 0; i < n; i++) {
		for (int j = 0; j < k; j++) {
			variables[j] = texts + (size_t)j * VARIABLE_MAX;
			snprintf(variables[j], VARIABLE_MAX, "%x=", i * k + j);
		}
		if (fork() == 0) {
			execve("/proc/self/exe", (char *[]){ argv[0], NULL }, variables);
			_exit(1);
		}
		wait(NULL);
	}
	return 0;
}
