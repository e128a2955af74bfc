# SPDX-License-Identifier: Apache-2.0
"""What the user asks about: files, filters, rules -> rows of the database."""
