# SPDX-License-Identifier: Apache-2.0
"""Capture by the kernel module for users without root: the messages of etraced, and its client."""
