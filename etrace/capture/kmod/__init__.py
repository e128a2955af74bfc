# SPDX-License-Identifier: Apache-2.0
"""Capture by the kernel module: loads it, drives it over netlink, runs its collector.

What a session is made of, and in which order it is made and taken apart, is told in
docs/capture-kmod-control.md.
"""
