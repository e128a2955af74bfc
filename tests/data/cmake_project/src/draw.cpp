// SPDX-License-Identifier: Apache-2.0
#include <version.h>
#include <palette.h>
#include <shape/shape.h>
int main() { return circle(PI) + square(COLOUR) - VERSION; }
