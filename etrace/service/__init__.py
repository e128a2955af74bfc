# SPDX-License-Identifier: Apache-2.0
"""etraced: runs sessions of the kernel module for members of a group (docs/service.md)."""
