# SPDX-License-Identifier: Apache-2.0
"""The Content-Security-Policy of a page that is one file."""

from __future__ import annotations

import base64
import hashlib


def policy(script: str, style: str) -> str:
    """Return a policy that allows this script and this style sheet, and nothing else.

    The page carries it in a `meta` element, where `frame-ancestors` has no effect.
    """
    return (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; "
        f"style-src 'sha256-{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
