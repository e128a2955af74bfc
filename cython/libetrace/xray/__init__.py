# SPDX-License-Identifier: Apache-2.0
"""XRay logs: bytes to records (reader), grammar (verifier), records to calls (calls)."""
