# SPDX-License-Identifier: Apache-2.0
"""What `cas pp` adds to the database image: one pass a file."""
