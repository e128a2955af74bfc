# SPDX-License-Identifier: Apache-2.0
"""Capture by BPF programs in the kernel (docs/capture-bpf.md)."""
