# SPDX-License-Identifier: Apache-2.0
"""Packages of pip, npm and cargo, by what is beside their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from packageurl import PackageURL

from etrace.origin.origins import Origins

FILES = {
    "venv/lib/python3.11/site-packages/Foo_Bar-1.0.dist-info/METADATA": "Metadata-Version: 2.4\n"
    "Name: Foo.Bar\nVersion: 1.0\nAuthor-email: A <a@example.org>\nLicense-Expression: MIT\n",
    "venv/lib/python3.11/site-packages/Foo_Bar-1.0.dist-info/RECORD": "foo/__init__.py,,\n"
    '"foo/a,b.py",sha256=x,3\n../../../bin/foo,,\n',
    "w/node_modules/@scope/pkg/package.json": '{"name": "@scope/pkg", "version": "2.1.0",'
    ' "license": "ISC", "author": {"name": "N"}}',
    "c/registry/src/index.crates.io-6f/serde-1.0.200/Cargo.toml": '[package]\nname = "serde"\n'
    'version = "1.0.200"\nlicense = "MIT OR Apache-2.0"\n',
    "p/vendor/libc/Cargo.toml": '[package]\nname = "libc"\nversion = "0.2.1"\n',
    "p/vendor/libc/.cargo-checksum.json": "{}",
}
OWNED = {
    "/venv/lib/python3.11/site-packages/foo/__init__.py": "pkg:pypi/foo-bar@1.0",
    "/venv/lib/python3.11/site-packages/foo/a,b.py": "pkg:pypi/foo-bar@1.0",
    "/venv/lib/python3.11/site-packages/foo/__pycache__/__init__.cpython-311.pyc":
        "pkg:pypi/foo-bar@1.0",
    "/venv/bin/foo": "pkg:pypi/foo-bar@1.0",
    "/w/node_modules/@scope/pkg/lib/index.js": "pkg:npm/%40scope/pkg@2.1.0",
    "/c/registry/src/index.crates.io-6f/serde-1.0.200/src/lib.rs": "pkg:cargo/serde@1.0.200",
    "/p/vendor/libc/src/lib.rs": "pkg:cargo/libc@0.2.1",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_files_have_their_packages(root: Path) -> None:
    others = ["/venv/lib/python3.11/site-packages/other.py", "/w/src/a.js", "/p/vendor/x/a.rs"]
    found = Origins([name.encode() for name in (*OWNED, *others)], bytes(root))
    assert {path.decode(): each.purl for path, each in found.packages.items()} == OWNED
    assert found.problems == []
    for purl in OWNED.values():
        assert PackageURL.from_string(purl).to_string() == purl
    licences = {found.terms(each).expression for each in found.packages.values()}
    assert licences == {"MIT", "ISC", "MIT OR Apache-2.0", ""}


def test_half_a_character_is_shown(root: Path) -> None:
    (root / "w/node_modules/@scope/pkg/package.json").write_text(r'{"name": "a\ud800"}')
    found = Origins([b"/w/node_modules/@scope/pkg/lib/index.js"], bytes(root))
    assert [each.name for each in found.packages.values()] == [r"a\ud800"]


def test_damage_is_said(root: Path) -> None:
    (root / "w/node_modules/@scope/pkg/package.json").write_text("[" * 100_000)
    toml = root / "c/registry/src/index.crates.io-6f/serde-1.0.200/Cargo.toml"
    toml.write_bytes(b"\xff = [")
    found = Origins([name.encode() for name in OWNED], bytes(root))
    assert {each.rpartition(": ")[2] for each in found.problems} == {"not JSON", "not TOML"}
    for text in (f"{'a.' * 20_000}b = 1\n", f"a = {'1' * 5000}\n"):  # by the square; ValueError
        toml.write_text(text)
        found = Origins([name.encode() for name in OWNED], bytes(root))
        assert any("not TOML" in each for each in found.problems)
    path = b"/c/registry/src/index.crates.io-6f/serde-1.0.200/src/lib.rs"
    assert found.packages[path].purl == "pkg:cargo/serde@1.0.200"  # as the directory is called
