/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PARTS_H
#define PARTS_H
int count_words(void);
void greet(const char *whom);
#endif
