#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
tr a-z A-Z
