// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common.h"
#ifdef __cplusplus
extern "C" {
#endif
int area(int side);
int circle(int radius);
int square(int side);
#ifdef __cplusplus
}
#endif
