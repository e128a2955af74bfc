# SPDX-License-Identifier: Apache-2.0
"""Writes etrace as a series of patches for a kernel, with a cover letter, as git format-patch does.

Only the files that the series touches are copied into a repository of its own, so DEST needs none
and stays unchanged. The words are those of kmod/tree/series.txt: subject, empty line and text of
the cover letter and of each patch, with a line of `%` between them.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import kernel_files
from kernel_files import Kernel, KernelTreeError

WORDS = kernel_files.OURS / "series.txt"
SUBJECT_BYTES = 72


def _git(repository: Path, maintainer: str, *words: str | Path) -> str:
    """Run git as the maintainer, whatever this machine's configuration says."""
    match = re.fullmatch(r"([^<>]+) <([^<>\s]+)>", maintainer)
    if not match:
        raise KernelTreeError(f"{maintainer!r} is not a maintainer", "give 'Name <address>'")
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", match[1]), ("EMAIL", match[2]))
    }
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null",
                   "GIT_CONFIG_SYSTEM": "/dev/null"}  # fmt: skip
    done = subprocess.run(
        ["git", *words], cwd=repository, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise KernelTreeError(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout


def words_of(patch: int) -> tuple[str, str]:
    """Return subject and text of a patch; 0 is the cover letter."""
    subject, _, text = WORDS.read_text().split("\n%\n")[patch].partition("\n\n")
    if "\n" in subject or len(subject) > SUBJECT_BYTES:
        raise KernelTreeError(f"{WORDS}: the subject {subject!r} is longer than a line of a mail")
    return subject, text.strip("\n")


def write(kernel: Kernel, out: Path, maintainer: str) -> list[Path]:
    """Write the series into the folder `out`; return its files in order."""
    if out.exists() and any(out.glob("*.patch")):
        raise KernelTreeError(f"{out} has patches already", "give a new folder, or remove them")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="etrace-series-") as folder:
        repository = Path(folder)
        _git(repository, maintainer, "init", "-q", "-b", "etrace")
        commit_base(kernel, repository, maintainer)
        for patch in range(kernel_files.FORMATTER, kernel_files.SELFTESTS + 1):
            commit_patch(kernel, repository, maintainer, patch)
        _git(repository, maintainer, "format-patch", "-q", "--cover-letter", "--signoff",
             "-o", out.resolve(), "base..etrace")  # fmt: skip
    series = sorted(out.glob("*.patch"))
    _fill_cover_letter(series[0])
    return series


def commit_base(kernel: Kernel, repository: Path, maintainer: str) -> None:
    """Commit what the hooks change, as the kernel has it."""
    for hook in kernel_files.hooks(maintainer):
        target = repository / hook.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((kernel.root / hook.path).read_bytes())
    _git(repository, maintainer, "add", "-f", ".")
    _git(repository, maintainer, "commit", "-q", "-m", "base")
    _git(repository, maintainer, "tag", "base")


def commit_patch(kernel: Kernel, repository: Path, maintainer: str, patch: int) -> None:
    """Commit one patch's files and hooks."""
    for name, file in kernel_files.files(kernel).items():
        if file.patch == patch:
            target = repository / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode)
    for hook in kernel_files.hooks(maintainer):
        if hook.patch == patch:
            target = repository / hook.path
            target.write_text(hook.put(target.read_text()))
    subject, text = words_of(patch)
    _git(repository, maintainer, "add", "-f", ".")
    _git(repository, maintainer, "commit", "-q", "-m", f"{subject}\n\n{text}")


def _fill_cover_letter(path: Path) -> None:
    subject, text = words_of(0)
    letter = path.read_text()
    letter = letter.replace("*** SUBJECT HERE ***", subject)
    path.write_text(letter.replace("*** BLURB HERE ***", text))
