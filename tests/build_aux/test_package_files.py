# SPDX-License-Identifier: Apache-2.0
"""The comparison of the files of RPM packages with those of Debian's."""

from __future__ import annotations

from pathlib import Path

import package_files

TOP = Path(__file__).resolve().parents[2]


def test_what_nothing_explains_is_reported() -> None:
    debs = {"etrace": {"/usr/bin/cas", "/usr/share/doc/etrace/copyright"}, "etrace-doc": set()}
    rpms = {"etrace": {"/usr/bin/etrace", "/usr/share/licenses/etrace/Apache-2.0.txt"}}
    assert list(package_files.differences(debs, rpms)) == [
        "etrace-doc: only as a deb",
        "etrace: /usr/bin/cas: only in the deb",
        "etrace: /usr/bin/etrace: only in the rpm",
    ]


def test_a_difference_is_explained_for_one_kind_only() -> None:
    assert package_files.is_explained("deb", "/usr/share/doc/etrace/copyright")
    assert not package_files.is_explained("rpm", "/usr/share/doc/etrace/copyright")
