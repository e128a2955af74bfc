# SPDX-License-Identifier: Apache-2.0
"""Capture by the kernel module: loads it, drives it over netlink, runs its collector.

docs/capture-kmod.md describes the parts of a session, and the order of its start and stop.
"""
