# SPDX-License-Identifier: Apache-2.0
"""Tokens, private keys and web hooks: what is a secret by its form (tokens.toml)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

#: the part of an address that is a secret: incoming web hooks
HOOKS = re.compile(
    r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/-]{10,})"
    r"|discord(?:app)?\.com/api/webhooks/(\d{5,}/[\w-]{10,})"
    r"|(?:\.webhook\.office\.com/webhookb2|outlook\.office\.com/webhook)/([\w@/-]{20,})"
    r"|api\.telegram\.org/bot(\d{5,}:[\w-]{10,})"
    r"|hooks\.zapier\.com/hooks/catch/([\w/]{8,})"
    r"|maker\.ifttt\.com/\S{0,80}/key/([\w-]{10,})"
    r"|(?:anaconda|conda|prefix)\.[a-z.]{2,20}/t/([\w-]{10,})"
)
PEM = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
PEM_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")


@cache
def token() -> re.Pattern[str]:
    """Return the pattern of all tokens."""
    text = files("etrace.redaction").joinpath("tokens.toml").read_text(encoding="utf-8")
    forms = (form for of_issuer in tomllib.loads(text).values() for form in of_issuer)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(forms)})(?![A-Za-z0-9])")
