# SPDX-License-Identifier: Apache-2.0
"""The module as a file: where it is, how to get it, loading it, what it needs of the kernel."""
