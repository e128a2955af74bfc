# SPDX-License-Identifier: Apache-2.0
"""XRay logs: bytes to records (decoder), their grammar (grammar), records to calls (expander)."""
