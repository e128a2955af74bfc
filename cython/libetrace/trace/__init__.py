# SPDX-License-Identifier: Apache-2.0
"""Traces: source, line grammar, event assembly, joiner, verifier, descriptors, pipes, parser."""
