# SPDX-License-Identifier: Apache-2.0
"""Command lines of compilations and links as other tools take them."""
