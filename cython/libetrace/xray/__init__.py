# SPDX-License-Identifier: Apache-2.0
"""XRay logs: bytes to records (decoder), grammar of records (grammar), records to calls (calls)."""
