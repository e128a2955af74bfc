# SPDX-License-Identifier: Apache-2.0
"""What is known of compilers, linkers and archivers: TOML files, and what reads them."""
