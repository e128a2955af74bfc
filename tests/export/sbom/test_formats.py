# SPDX-License-Identifier: Apache-2.0
"""Documents of a traced build, read by what the field uses: docs/sbom.md has the table."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import bills
import databases
import pytest
import spdx_model
from packageurl import PackageURL

BIN = Path(sys.executable).parent
FORMATS = ("spdx3", "spdx2.3", "cyclonedx", "in-toto")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bills.build(bills.write_tree(tmp_path_factory.mktemp("project") / "tree"))


def elements(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in document["@graph"] if each["type"] == kind]


def targets(document: dict[str, Any], kind: str, source: str) -> list[str]:
    found = [
        each
        for each in document["@graph"]
        if each.get("relationshipType") == kind and each["from"] == source
    ]
    return [to for each in found for to in each["to"]]


def files_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in elements(document, "software_File")}


def build_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    builds = elements(document, "build_Build")
    return next(each for each in builds if each["name"] == name and "module" in each[TYPE])


TYPE = "build_buildType"


# ---- validators


def faults(document: dict[str, Any], path: Path) -> set[str]:
    """Return the kinds of faults that spdx3-validate finds in a document."""
    from spdx3_validate.core import validate

    spdx_model.serve()
    path.write_text(json.dumps(document))
    return {error.kind for error in validate(str(path)).errors}


@pytest.fixture
def tiny(tree: Path) -> dict[str, Any]:
    return bills.document(tree, "tiny", *bills.WORDS, "--environment", "VISIBLE")


def test_spdx_3_is_valid_by_schema_and_shacl(tiny: dict[str, Any], tmp_path: Path) -> None:
    assert faults(tiny, tmp_path / "tiny.spdx.json") == set()


@pytest.mark.long("shows that the validator finds faults")
def test_spdx_3_that_lacks_something_is_not_valid(tiny: dict[str, Any], tmp_path: Path) -> None:
    for build in elements(tiny, "build_Build"):
        del build[TYPE]
    assert faults(tiny, tmp_path / "tiny.spdx.json") == {"schema", "shacl"}


def test_spdx_3_has_the_elements_that_the_model_of_spdx_reads(tree: Path, tmp_path: Path) -> None:
    from spdx_python_model.bindings import v3_0_1 as spdx3

    path, found = tmp_path / "a.spdx.json", spdx3.SHACLObjectSet()
    path.write_bytes(bills.export(tree, *bills.WORDS)[0])
    with path.open("rb") as stream:
        spdx3.JSONLDDeserializer().read(stream, found)
    assert found.link() == set()  # no relationship leads to what is not there
    assert len(list(found.foreach_type(spdx3.software_Package))) > 3


@pytest.mark.parametrize("standard", ["ntia", "bsi", "fsct3-min"])
def test_spdx_3_has_the_minimum_elements(tree: Path, tmp_path: Path, standard: str) -> None:
    path = tmp_path / "hello.spdx.json"
    path.write_bytes(bills.export(tree, "hello", *bills.WORDS)[0])
    words = ["--sbom-spec", "spdx3", "--comply", standard, "-v", str(path)]
    done = subprocess.run(
        [BIN / "ntia-checker", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "Conformant: True" in done.stdout


def test_spdx_2_is_valid_and_has_the_minimum_elements(tree: Path, tmp_path: Path) -> None:
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    path = tmp_path / "hello.spdx.json"
    path.write_bytes(bills.export(tree, "--format", "spdx2.3", *bills.WORDS)[0])
    document = parse_file(str(path))
    problems = validate_full_spdx_document(document)
    assert [each.validation_message for each in problems] == []
    done = subprocess.run([BIN / "ntia-checker", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_cyclonedx_is_valid(tree: Path) -> None:
    from cyclonedx.model.bom import Bom
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = bills.export(tree, "--format", "cyclonedx", *bills.WORDS)[0].decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = Bom.from_json(json.loads(text))  # type: ignore[attr-defined]
    assert bom.validate()
    assert {"hello", "tiny"} <= {each.name.rpartition("/")[2] for each in bom.components}


def test_a_package_of_which_only_tools_were_used_is_excluded(tree: Path) -> None:
    text = bills.export(tree, "--format", "cyclonedx", "--with-tools", *bills.WORDS)[0]
    found = json.loads(text)["components"]
    of_package: dict[str, set[str]] = {}
    for each in found:
        notes = {note["name"]: note["value"] for note in each.get("properties", ())}
        if package := notes.get("etrace:package"):
            of_package.setdefault(package, set()).add(notes["etrace:kind"])
    packages = {each["purl"]: each for each in found if "purl" in each}
    only_tools = {purl for purl, kinds in of_package.items() if kinds == {"tool"}}
    assert only_tools
    assert {
        purl for purl, each in packages.items() if each.get("scope") == "excluded"
    } == only_tools
    assert {packages[purl]["type"] for purl in only_tools} == {"application"}


def test_in_toto_is_a_statement_with_slsa_provenance(tree: Path) -> None:
    from google.protobuf.json_format import ParseDict
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    found = bills.document(tree, "--format", "in-toto", *bills.WORDS)
    statement = Statement.copy_from_pb(ParseDict(found, Message()))
    statement.validate()
    provenance = ParseDict(found["predicate"], provenance_pb2.Provenance())
    assert provenance.build_definition.build_type
    subjects = {each["name"]: each["digest"]["sha256"] for each in found["subject"]}
    for name in ("hello", "tiny"):
        assert subjects[name] == hashlib.sha256((tree / name).read_bytes()).hexdigest()
    materials = {each["name"]: each for each in provenance_of(found)}
    assert materials["tiny.c"]["digest"]["gitBlob"] == bills.git(tree, "rev-parse", "HEAD:tiny.c")
    commit = bills.git(tree, "rev-parse", "HEAD")
    assert materials["tree"]["digest"] == {"gitCommit": commit}
    assert materials["tree"]["uri"] == f"git+https://example.org/hello.git@{commit}"


def provenance_of(statement: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    return found


# ---- a reader: vulnerabilities of what was not compiled


def entry(number: int, file: str) -> dict[str, Any]:
    affected = {
        "vendor": "example", "product": "hello", "defaultStatus": "unaffected",
        "programFiles": [file],
        "versions": [{"version": "1.0", "lessThan": "2.0", "status": "affected",
                      "versionType": "semver"}],
    }  # fmt: skip
    name = f"CVE-2024-100{number}"
    return {
        "dataType": "CVE_RECORD", "dataVersion": "5.1",
        "cveMetadata": {"cveId": name, "state": "PUBLISHED", "assignerShortName": "example",
                        "datePublished": "2024-01-01T00:00:00.000Z"},
        "containers": {"cna": {"affected": [affected], "providerMetadata": {"orgId": "x"},
                               "descriptions": [{"lang": "en", "value": file}]}},
    }  # fmt: skip


def test_a_vulnerability_of_what_was_not_compiled_is_dropped(tree: Path, tmp_path: Path) -> None:
    database = tmp_path / "cvelist"
    folder = database / "cves/2024/1xxx"
    folder.mkdir(parents=True)
    for number, file in enumerate(("hello.c", "unused.c"), 1):
        said = entry(number, file)
        (folder / f"{said['cveMetadata']['cveId']}.json").write_text(json.dumps(said))
    bills.git(database, "init", "-q", "-b", "main")
    bills.git(database, "add", ".")
    bills.git(database, "commit", "-q", "-m", "one")
    path, output = tmp_path / "hello.spdx.json", tmp_path / "found.csv"
    path.write_bytes(bills.export(tree, "hello", *bills.WORDS)[0])
    done = subprocess.run(
        [BIN / "sbom-cve-check", "--ignore-default-config", "--offline-mode",
         "--disable-auto-updates", "--sbom-path", path, "--add-db", "cve-db-cvelist", database,
         "--export-type", "csv", "--export-path", output],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = output.read_text().splitlines()
    states = {number: row for row in rows for number in ("1001", "1002") if f"2024-{number}" in row}
    assert "not_affected" not in states["1001"], rows
    assert "not_affected" in states["1002"], rows
    assert "not compiled" in states["1002"], rows


# ---- what documents say


@pytest.mark.parametrize("form", FORMATS)
def test_documents_are_the_same_every_time(tree: Path, form: str) -> None:
    first = bills.export(tree, "--format", form)[0]
    assert bills.export(tree, "--format", form)[0] == first
    later = bills.export(tree, "--format", form, epoch="1700000001")[0]
    is_timed = form != "in-toto"
    assert (later != first) == is_timed
    assert later.replace(b"22:13:21Z", b"22:13:20Z") == first


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("words", [(), ("--environment", "*")], ids=["usual", "environment"])
def test_no_document_holds_a_secret(tree: Path, form: str, words: tuple[str, ...]) -> None:
    text, said = bills.export(tree, "--format", form, *words)
    for secret in bills.SECRETS:
        assert secret.encode() not in text
        assert secret not in said
    assert (b"VISIBLE" in text) == bool(words and form in ("spdx3", "in-toto"))


def test_a_secret_is_written_only_when_its_name_was_asked_for(tree: Path) -> None:
    text = bills.export(tree, "--environment", "SECRET_KEY")[0]
    assert bills.SECRETS[0].encode() in text
    assert b"VISIBLE" not in text
    assert b"command" not in bills.export(tree, "--no-parameters", "--format", "in-toto")[0]


def test_the_inputs_of_a_module_are_what_was_read(tree: Path) -> None:
    document = bills.document(tree, "tiny")
    names = {each["spdxId"]: each["name"] for each in elements(document, "software_File")}
    build = build_of(document, "tiny")
    inputs = targets(document, "hasInput", build["spdxId"])
    assert {names[each] for each in inputs if each in names} == {"tiny.c", "made.h"}
    outputs = targets(document, "hasOutput", build["spdxId"])
    assert {names[each] for each in outputs if each in names} == {"tiny"}
    tools = {names[each] for each in targets(document, "usesTool", build["spdxId"])}
    assert {name.rpartition("/")[2] for name in tools} >= {"cc1"}
    assert "unused.c" not in files_of(document)


def test_any_file_that_the_build_made_may_be_a_module(tree: Path) -> None:
    document = bills.document(tree, "hello.o")
    names = {each["spdxId"]: each["name"] for each in elements(document, "software_File")}
    inputs = targets(document, "hasInput", build_of(document, "hello.o")["spdxId"])
    predefined = "/usr/include/stdc-predef.h"  # which gcc reads by itself
    assert {names[each] for each in inputs if each in names} == {
        "hello.c", "odd-\\xff.h", predefined,
    }  # fmt: skip


def test_a_file_has_its_digests_licence_and_package(tree: Path) -> None:
    document = bills.document(tree, "hello")
    files = files_of(document)
    content = (tree / "hello.c").read_bytes()
    hashes = {each["algorithm"]: each["hashValue"] for each in files["hello.c"]["verifiedUsing"]}
    assert hashes == {
        "sha256": hashlib.sha256(content).hexdigest(),
        "sha512": hashlib.sha512(content).hexdigest(),
    }
    expressions = {
        each["spdxId"]: each["simplelicensing_licenseExpression"]
        for each in elements(document, "simplelicensing_LicenseExpression")
    }
    licences = targets(document, "hasDeclaredLicense", files["hello.c"]["spdxId"])
    assert [expressions[each] for each in licences] == ["Apache-2.0"]
    packages = {each["name"]: each for each in elements(document, "software_Package")}
    purl = packages["libc6"]["software_packageUrl"]
    assert PackageURL.from_string(purl).name == "libc6"
    assert packages["hello"]["software_packageVersion"] == bills.git(tree, "rev-parse", "HEAD")


def test_a_name_that_is_not_utf_8_is_there_in_full(tree: Path) -> None:
    document = bills.document(tree, "hello")
    odd = files_of(document)["odd-\\xff.h"]
    assert (tree / bills.ODD.decode("utf-8", "surrogateescape")).exists()
    assert bills.ODD.hex() in odd["comment"]


def test_what_only_symbolic_links_led_to_has_its_hash(tree: Path) -> None:
    (odd,) = files_of(bills.document(tree, "hello"))["odd-\\xff.h"]["verifiedUsing"][:1]
    assert odd["hashValue"] == hashlib.sha256(bills.SOURCES[bills.ODD].encode()).hexdigest()


def test_what_changed_since_the_build_has_no_hash_and_says_so(tree: Path, tmp_path: Path) -> None:
    other = bills.build(bills.write_tree(tmp_path / "other"))
    (other / "tiny.c").write_text((other / "tiny.c").read_text() + "\n")
    (other / "made.h").unlink()
    text, said = bills.export(other, "tiny")
    files = files_of(json.loads(text))
    assert "verifiedUsing" not in files["tiny.c"]
    assert "it has changed since the build" in files["tiny.c"]["comment"]
    assert "it was gone" in files["made.h"]["comment"]
    assert "cas: without a hash, changed: 1 file\n" in said
    assert "cas: without a hash, removed by the build: 1 file\n" in said
    package = next(
        each for each in elements(json.loads(text), "software_Package") if each["name"] == "tiny"
    )
    assert package["software_packageVersion"].endswith("-dirty")


def test_hashes_of_the_capture_stay_when_files_do_not(tmp_path: Path) -> None:
    tree = bills.build(bills.write_tree(tmp_path / "hashed"), "--hash")
    contents = {name: (tree / name).read_bytes() for name in ("tiny.c", "made.h")}
    (tree / "tiny.c").write_text("changed")
    (tree / "made.h").unlink()
    files = files_of(bills.document(tree, "tiny"))
    for name, content in contents.items():
        hashes = {each["algorithm"]: each["hashValue"] for each in files[name]["verifiedUsing"]}
        assert hashes["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_change_that_keeps_size_and_mtime_is_seen(tmp_path: Path) -> None:
    tree = bills.build(bills.write_tree(tmp_path / "other"))
    source = tree / "tiny.c"
    status = source.stat()
    source.write_text(source.read_text()[::-1])
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    file = files_of(bills.document(tree, "tiny"))["tiny.c"]
    assert "verifiedUsing" not in file
    assert "it has changed since the build" in file["comment"]


def test_programs_have_hashes(tree: Path) -> None:
    files = files_of(bills.document(tree, "tiny"))
    tools = [each for each in files.values() if each["software_primaryPurpose"] == "application"]
    assert any(each["name"].endswith("/cc1") for each in tools)
    assert [each["name"] for each in tools if "verifiedUsing" not in each] == []


def test_the_licence_is_that_of_own_files(tree: Path) -> None:
    document = bills.document(tree, "hello")
    package = next(e for e in elements(document, "software_Package") if e["name"] == "hello")
    licences = {e["spdxId"]: e for e in elements(document, "simplelicensing_LicenseExpression")}

    def said(kind: str) -> list[str]:
        found = targets(document, kind, package["spdxId"])
        return [licences[each]["simplelicensing_licenseExpression"] for each in found]

    assert said("hasDeclaredLicense") == ["Apache-2.0"]
    assert said("hasConcludedLicense") == []


def test_licences_that_no_list_has_are_references(tmp_path: Path) -> None:
    # REUSE-IgnoreStart
    tree = bills.write_tree(tmp_path / "odd")
    for name, licence in (("tiny.c", "Foo-Bar"), ("hello.c", "mit or gpl-2.0+")):
        text = (tree / name).read_text()
        (tree / name).write_text(f"// SPDX-License-Identifier: {licence}\n" + text)
    # REUSE-IgnoreEnd
    document = bills.document(bills.build(tree))
    texts = {e["spdxId"] for e in elements(document, "simplelicensing_SimpleLicensingText")}
    found = {
        e["simplelicensing_licenseExpression"]: e.get("simplelicensing_customIdToUri", [])
        for e in elements(document, "simplelicensing_LicenseExpression")
    }
    assert [each["key"] for each in found["LicenseRef-Foo-Bar"]] == ["LicenseRef-Foo-Bar"]
    assert {each["value"] for each in found["LicenseRef-Foo-Bar"]} <= texts
    assert "mit OR gpl-2.0+" in found


def test_what_is_added_but_not_committed_is_no_commit(tmp_path: Path) -> None:
    tree = bills.write_tree(tmp_path / "added")
    (tree / "tiny.c").write_text((tree / "tiny.c").read_text() + "\n")
    bills.git(tree, "add", "tiny.c")
    bills.build(tree)
    document = bills.document(tree, "tiny")
    package = next(e for e in elements(document, "software_Package") if e["name"] == "tiny")
    assert package["software_packageVersion"].startswith("sha256:")
    assert "clean as git's index has it, on commit" in files_of(document)["tiny.c"]["comment"]


def test_what_the_user_says_is_in_the_name_of_the_document(tree: Path) -> None:
    namespaces = {
        bills.document(tree, "--format", "spdx2.3", "--copyright", text)["documentNamespace"]
        for text in ("A", "B")
    }
    assert len(namespaces) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cpe", "garbage"), "garbage: no CPE 2.3 name"),
        (("--namespace", "foo"), "foo: no absolute URI without #"),
        (("--namespace", "http://x/#a"), "http://x/#a: no absolute URI without #"),
    ],
)
def test_what_readers_would_refuse_is_refused(
    tree: Path, words: tuple[str, str], said: str
) -> None:
    assert said in bills.export(tree, *words, status=2)[1]


def test_words_that_are_not_utf_8_make_no_half_characters(tree: Path) -> None:
    for each in FORMATS:
        text, _ = bills.export(tree, "--format", each, "--name", "x\udcff")
        assert "\\udcff" not in text.decode().replace("\\\\", "")
        json.loads(text)


def test_a_trace_without_environments_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    databases.capture_database(tmp_path, ["cp", "a", "b"], tmp_path)
    subprocess.run([BIN / "cas", "pp", "-q", "--db", tmp_path], check=True)
    _, said = bills.export(tmp_path, str(tmp_path.resolve() / "b"), "--environment", "PATH")
    assert "the trace has only environments of make and ninja: etrace run --env keeps all" in said


def test_steps_lead_from_sources_to_the_module(tree: Path) -> None:
    document = bills.document(tree, "tiny", "--format", "in-toto")
    definition = document["predicate"]["buildDefinition"]
    steps = definition["internalParameters"]["steps"]
    reached, waiting = set[str](), ["tiny"]
    while waiting:
        name = waiting.pop()
        for step in steps:
            if name in step.get("outputs", ()):
                fresh = set(step.get("inputs", ())) - reached
                reached |= fresh
                waiting.extend(fresh)
    assert {"tiny.o", "tiny.c", "made.h"} <= reached
    assert not any("steps" in each for each in bills.document(tree, "tiny", "--no-steps"))


# ---- usage


def test_a_module_that_is_none_is_refused(tree: Path) -> None:
    assert "the build did not make" in bills.export(tree, "tiny.c", status=1)[1]
    assert "SOURCE_DATE_EPOCH" in bills.export(tree, epoch="soon", status=2)[1]
    assert "no SPDX expression" in bills.export(tree, "--licence", "all mine", status=2)[1]


def test_a_document_is_compared_with_the_build(tree: Path, tmp_path: Path) -> None:
    own, listed = tmp_path / "own.json", tmp_path / "list"
    for form in FORMATS:
        own.write_bytes(bills.export(tree, "--format", form, "hello")[0])
        has_all = form in ("spdx3", "cyclonedx")
        lines, said = bills.export(tree, "hello", "--compare", str(own), status=not has_all)
        assert (lines == b"") == has_all
        assert not [line for line in lines.decode().splitlines() if line[0] in "-~"], form
        assert "only in the build" in said
    listed.write_text("hello.c\nnever.c\n/usr/bin/never\n")
    found = bills.export(tree, "hello", "--compare", str(listed), status=1)[0].splitlines()
    assert [line for line in found if line.startswith(b"-")] == [b"- /usr/bin/never", b"- never.c"]
    assert b"+ hello  [executable]" in found
    own.write_text("{}")
    assert "names no files" in bills.export(tree, "--compare", str(own), status=2)[1]
