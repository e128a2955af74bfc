# SPDX-License-Identifier: Apache-2.0
"""The tracer for Windows as a release file: `build-aux/windows_zip.py --output DIR`.

One zip with both programs, the page that describes them, and the licences. Its README is rendered
as the files of the packages are (packaging/manifest.toml); times and order are fixed, so the same
tree gives the same bytes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import zipfile
from email.utils import parsedate_to_datetime
from pathlib import Path

from packages import TOP, manifest, project_version, render_all, this_release

KIND = "windows"
MODE = 0o644
PROGRAM = "windows-tracer.exe"
LICENCES = ("Apache-2.0.txt",)


def build_programs(folder: Path) -> Path:
    """Build both programs afresh below `folder`; return it."""
    shutil.rmtree(folder, ignore_errors=True)
    words = [f"OUT={folder.resolve()}", f"VERSION={project_version()}"]
    subprocess.run(["make", "-s", "-C", str(TOP / "native/windows"), *words], check=True)
    return folder


def members(programs: Path, rendered: Path) -> dict[str, Path]:
    """Return the files of the zip by name."""
    return {
        f"x86_64/{PROGRAM}": programs / "x86_64" / PROGRAM,
        f"i686/{PROGRAM}": programs / "i686" / PROGRAM,
        "README.txt": rendered / "README.txt",
        "capture-windows.md": TOP / "docs/capture-windows.md",
        **{f"LICENSES/{name}": TOP / "LICENSES" / name for name in LICENCES},
    }


def make_zip(programs: Path, output: Path) -> Path:
    """Write the zip; return its path."""
    values = manifest(this_release())
    name = f"windows-tracer-{values['project']['version']}"
    output.mkdir(parents=True, exist_ok=True)
    rendered = output / "rendered"
    render_all(rendered, values, KIND)
    moment = parsedate_to_datetime(values["changed"]).timetuple()[:6]
    path, unfinished = output / f"{name}.zip", output / f"{name}.zip.new"
    with zipfile.ZipFile(unfinished, "w") as archive:
        for member, source in members(programs, rendered).items():
            info = zipfile.ZipInfo(f"{name}/{member}", moment)
            info.external_attr = MODE << 16
            archive.writestr(info, source.read_bytes(), zipfile.ZIP_DEFLATED)
    unfinished.rename(path)
    return path


def main(argv: list[str] | None = None) -> int:
    """Command line of `build-aux/windows_zip.py`."""
    parser = argparse.ArgumentParser(prog="build-aux/windows_zip.py")
    parser.add_argument(
        "--programs", type=Path, help="what `make windows` made (default: make them)"
    )
    parser.add_argument("--output", type=Path, default=TOP / "build/packages/windows")
    args = parser.parse_args(argv)
    programs = args.programs or build_programs(args.output / "programs")
    print(make_zip(programs, args.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
