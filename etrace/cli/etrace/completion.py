# SPDX-License-Identifier: Apache-2.0
"""`etrace completion SHELL`: what makes a shell complete the commands of etrace."""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `etrace completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to make it for")
    parser.epilog = (
        'In bash and zsh: eval "$(etrace completion bash)"; in fish: etrace completion fish'
        " | source. An installed etrace has done this already."
    )


def run(args: argparse.Namespace) -> int:
    """Run `etrace completion`."""
    from etrace.cli.manual.completion import script

    sys.stdout.write(script(args.shell))
    return 0
