# SPDX-License-Identifier: Apache-2.0
"""`etrace doctor` and `etrace completion`: what works here, and what shells complete."""

from __future__ import annotations

import argparse
import sys

from etrace.capture import doctor, features
from etrace.capture.kmod.findings import Check
from etrace.cli.options.common import add_examples

# ---- doctor ----


def declare_doctor(parser: argparse.ArgumentParser) -> None:
    """`etrace doctor` has no options."""
    parser.epilog = "Exit status: 0 when at least one backend works, else 1."
    add_examples(parser, "etrace doctor", "etrace doctor > report.txt")


def run_doctor(_args: argparse.Namespace) -> int:
    """Run `etrace doctor`."""
    facts = list(doctor.facts())
    width = max(len(f.name) for f in facts)
    print("this machine")
    for fact in facts:
        print(f"  {fact.name:<{width}}  {fact.value}")
    print("\nbackends (each was tried)")
    findings = doctor.examine()
    for finding in findings:
        mark = "works" if finding.probe.works else "does not work"
        print(f"  {finding.backend}: {mark}: {finding.description}")
        if not finding.probe.works:
            print(f"      because: {finding.probe.reason}")
            if finding.probe.hint:
                print(f"      do this: {finding.probe.hint}")
    print("\nwhat the BPF programs need")
    _show_checks(list(doctor.bpf_programs()))
    print("\nwhat the kernel module needs")
    _show_checks(list(doctor.kernel_module()))
    if strangers := list(doctor.strangers()):
        print("\nwarning: another program's package has this program's name")
        _show_checks(strangers)
    _show_features()
    return 0 if any(f.probe.works for f in findings) else 1


def _show_checks(checks: list[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        print(f"  {check.name:<{width}}  {check.value}")
        if check.hint:
            print(f"      do this: {check.hint}")


def _show_features() -> None:
    """Print the features of this build and of installed programs."""
    width = max(len(feature.name) for feature in features.FEATURES)
    print("\nfeatures")
    for feature in features.FEATURES:
        mark = "yes" if feature.is_here else "no "
        print(f"  {feature.name:<{width}}  {mark}  {feature.purpose}")
        if not feature.is_here:
            print(f"      do this: {feature.hint}")


# ---- completion ----

SHELLS = ("bash", "zsh", "fish")


def declare_completion(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `etrace completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.epilog = (
        'In bash and zsh: eval "$(etrace completion bash)"; in fish: etrace completion fish\n'
        "| source. An installed etrace sets this up by itself."
    )
    add_examples(parser, "etrace completion bash", "etrace completion fish")


def run_completion(args: argparse.Namespace) -> int:
    """Run `etrace completion`."""
    from etrace.cli.manual.completion import script

    sys.stdout.write(script(args.shell))
    return 0
