# SPDX-License-Identifier: Apache-2.0
"""What a capture works with: processes, owners, files, tracefs, the module over netlink."""
