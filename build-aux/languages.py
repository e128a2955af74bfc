# SPDX-License-Identifier: Apache-2.0
"""GitHub's list of languages -> etrace/spec/languages.tsv: `python build-aux/languages.py`.

The list is the npm package linguist-languages, which follows the releases of GitHub Linguist. npm
fetches it and node reads it; no build and no test needs them, for the table is committed.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

PACKAGE, VERSION = "linguist-languages", "9.5.0"
TABLE = Path(__file__).resolve().parents[1] / "etrace" / "spec" / "languages.tsv"
HEAD = f"""\
# SPDX-License-Identifier: MIT
# Languages of GitHub Linguist (npm: {PACKAGE} {VERSION}).
# Made by build-aux/languages.py: do not edit.
# type, name, and suffixes between blanks; the last line has the names of files
"""
READ = 'import("./package/index.js").then((all) => console.log(JSON.stringify(Object.values(all))))'


def render(languages: list[dict[str, object]]) -> str:
    """Return the table: a line for each language that has suffixes, and one of file names."""
    lines, names = [], set[str]()
    for each in sorted(languages, key=lambda language: str(language["name"])):
        if each["name"] == "Text":  # .txt, README, LICENSE: no language
            continue
        suffixes = sorted(_words(each, "extensions"), key=str.lower)
        names |= _words(each, "filenames")
        if suffixes:
            lines.append(f"{each['type']}\t{each['name']}\t {' '.join(suffixes).lower()} \n")
    return f"{HEAD}{''.join(lines)}file names\t\t {' '.join(sorted(names))} \n"


def _words(language: dict[str, object], key: str) -> set[str]:
    value = language.get(key)
    words = map(str, value) if isinstance(value, list) else ()
    return {word for word in words if " " not in word}


def main() -> None:
    """Fetch the package and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=folder, check=True)
        archive = next(Path(folder).glob("*.tgz"))
        subprocess.run(["tar", "xzf", archive.name], cwd=folder, check=True)
        shown = subprocess.run(
            ["node", "-e", READ], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
        )
    TABLE.write_text(render(json.loads(shown.stdout)))


if __name__ == "__main__":
    main()
