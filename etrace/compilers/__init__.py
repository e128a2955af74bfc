# SPDX-License-Identifier: Apache-2.0
"""Facts about compilers, linkers, archivers and launchers in TOML, and the code that reads them."""
