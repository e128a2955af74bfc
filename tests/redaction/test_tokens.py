# SPDX-License-Identifier: Apache-2.0
"""Tokens that detect-secrets knows by their form are hidden; its rules are the oracle.

Left out are its rules of names beside secrets, which need whole lines, and of entropy.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etrace.redaction.commands import shown_arguments

#: modules of detect_secrets.plugins -> class
DETECTORS = {
    "azure_storage_key": "AzureStorageKeyDetector", "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector", "gitlab_token": "GitLabTokenDetector",
    "mailchimp": "MailchimpDetector", "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector", "sendgrid": "SendGridDetector",
    "stripe": "StripeDetector", "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}  # fmt: skip
ASCII = st.characters(codec="ascii", exclude_categories=["Cc"])


def rules() -> list[Any]:
    """Return the patterns of the detectors, each with a name."""
    found = []
    for module, name in DETECTORS.items():
        detector = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)()
        found += [
            pytest.param(rule, id=f"{name}-{at}") for at, rule in enumerate(detector.denylist)
        ]
    return found


@pytest.mark.parametrize("rule", rules())
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_token_is_hidden_by_its_form(rule: re.Pattern[str], data: st.DataObject) -> None:
    token = data.draw(st.from_regex(rule, fullmatch=True, alphabet=ASCII))
    for words in (["t", token], ["sh", "-c", f"t '{token}'"], [f"--x={token}"]):
        assert token not in " ".join(shown_arguments(words))
