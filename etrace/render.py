# SPDX-License-Identifier: Apache-2.0
"""(template, values) -> file. The only user of jinja2.

`python -m etrace.render` writes every rendered file of the source tree, `--check` compares instead.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from etrace.errors import EtraceError, SpecError
from etrace.redaction import names, texts
from etrace.spec import builders, database, model, syscalls

#: rendered file -> template, relative to the top of the tree and to etrace/spec/templates
OUTPUTS = {
    "kmod/include/etrace/events.h": "events.h.j2",
    "cython/libetrace/trace/events.pxd": "events.pxd.j2",
    "cython/libetrace/image/columns.pxd": "columns.pxd.j2",
    "cython/libetrace/image/schema.json": "schema.json.j2",
    "cython/libetrace/image/schema.pxd": "schema.pxd.j2",
    "native/capture/tool_names.h": "tool_names.h.j2",
    "native/format/etrace_builders.h": "builders.h.j2",
    "native/format/etrace_secret_names.h": "secret_names.h.j2",
    "native/ptrace/task/calls.h": "ptrace_calls.h.j2",
    "native/preload/library/calls.h": "preload_calls.h.j2",
    "native/bpf/calls.h": "bpf_calls.h.j2",
    "kmod/src/event/calls.h": "kmod_calls.h.j2",
    "docs/format.md": "format.md.j2",
    "docs/image.md": "image.md.j2",
}


def render(template: Path, values: dict[str, Any]) -> str:
    """Render one template; an undefined name is an error (SpecError), never an empty string."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  C, Cython, Markdown and unit files: nothing here is HTML
    )
    env.filters["json"] = json.dumps
    try:
        return env.get_template(template.name).render(values)
    except jinja2.TemplateError as error:
        raise SpecError(f"{template}: {error}", "correct the template or its values") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place, then rename: it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class ToolNames(NamedTuple):
    """What a tracer knows of tools: which programs read response files, and how they name them.

    `forms`: those of responses.toml. `choices`: (form, option, form chosen). `options`: (group,
    option, whether the name of the file is a part of it). `names`: (name, form, group of options),
    sorted as bytes. `runners`: (pattern of a name, group, whether it reads files itself, form),
    and `runner_options`: (option with a value, group). Forms and groups are numbers.
    """

    forms: list[dict[str, Any]]
    choices: list[tuple[int, str, int]]
    options: list[tuple[int, str, int]]
    names: list[tuple[str, int, int]]
    runners: list[tuple[str, int, int, int]]
    runner_options: list[tuple[str, int]]


def tool_names() -> ToolNames:
    """Return the names of all compilers, linkers, archivers and launchers, without a user's own."""
    from etrace.compilers import response_forms, tools  # noqa: PLC0415  only this needs them
    from etrace.compilers.options import Form, split_form  # noqa: PLC0415

    raw = tools.tables()
    known = tools.Tools(raw)
    forms = list(response_forms.forms_of(known.responses).values())
    number = {form.name: at for at, form in enumerate(forms)}
    out = ToolNames([], [], [], [], [], [])
    for form in forms:
        quoting = {"double": "gnu"}.get(form.quoting, form.quoting)
        quoting = quoting if quoting in ("gnu", "windows") else "other"
        flags = {key: int(getattr(form, key)) for key in ("unicode", "nested", "doubled")}
        out.forms.append({"name": form.name, "quoting": quoting.upper(), **flags})
        chosen = (form.chosen or {}).items()
        out.choices.extend((number[form.name], option, number[to]) for option, to in chosen)
    groups: dict[tuple[tuple[str, int], ...], int] = {(): 0}
    for group, tool in enumerate(known):
        names, options = raw[tool.name].get("names", ()), tool.options.forms.items()
        form_number = number[tool.settings.get("response", response_forms.DEFAULT)]
        split = [(split_form(text), meaning) for text, meaning in options]
        if tool.kind == tools.RUNNER:
            if tool.settings.get("in_process"):
                reads = int("response" in tool.settings)
                out.runners.extend((name, group, reads, form_number) for name in names)
                out.runner_options.extend(
                    (flag.decode(), group) for (flag, form), meaning in split
                    if meaning in ("value", "argv0") and form is Form.SEPARATE
                )  # fmt: skip
            continue
        of_files = tuple(
            (flag.decode(), int(form is Form.JOINED))
            for (flag, form), meaning in split if meaning == "response"
        )  # fmt: skip
        if of_files not in groups:
            groups[of_files] = len(groups)
            out.options.extend((groups[of_files], *option) for option in of_files)
        out.names.extend((name, form_number, groups[of_files]) for name in names)
    out.names.sort(key=lambda each: each[0].encode())
    return out


def outputs(top: Path) -> dict[Path, str]:
    """Render all rendered files of the tree `top`: path -> text."""
    schema = database.load()
    values = {
        "spec": model.load(),
        "schema": schema,
        "tables": schema.tables,
        "modes": {"ACCESS": database.ACCESS, "EXISTS": database.EXISTS, "TYPE": database.TYPE}
        | {f"TYPE_{name}": bits for name, bits in database.FILE_TYPES.items()},
        "type_shift": database.TYPE_SHIFT,
        "tools": tool_names(),
        "calls": syscalls.load(),
        "builders": [name.decode() for name in builders.TOOLS],
        "secret_names": names.LISTS,
        "max_name": names.MAX_NAME,
        "hidden": texts.HIDDEN,
    }
    templates = top / "etrace" / "spec" / "templates"
    return {top / path: render(templates / name, values) for path, name in OUTPUTS.items()}


def check(rendered: Mapping[Path, str]) -> list[str]:
    """Return the differences between the files and their rendering, as diff lines."""
    lines: list[str] = []
    for path, text in rendered.items():
        old = path.read_text().splitlines() if path.exists() else []
        lines += difflib.unified_diff(old, text.splitlines(), str(path), "rendered", lineterm="")
    return lines


def main(argv: list[str] | None = None) -> int:
    """Command line of `python -m etrace.render`."""
    parser = argparse.ArgumentParser(prog="python -m etrace.render", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="only compare; exit with 1 when a file differs"
    )
    parser.add_argument("--top", type=Path, default=Path.cwd(), help="top of the source tree")
    args = parser.parse_args(argv)
    try:
        rendered = outputs(args.top)
        if args.check:
            differences = check(rendered)
            sys.stdout.writelines(f"{line}\n" for line in differences)
            return 1 if differences else 0
        for path, text in rendered.items():
            if not path.exists() or path.read_text() != text:  # a newer file is built again
                write_whole(path, text)
    except EtraceError as error:
        hint = f": {error.hint}" if error.hint else ""
        sys.stderr.write(f"render: {error.message}{hint}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
