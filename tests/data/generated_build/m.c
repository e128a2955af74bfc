// SPDX-License-Identifier: Apache-2.0
int f(void);

int main(void)
{
	return f() - 42;
}
