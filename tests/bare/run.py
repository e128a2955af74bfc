# SPDX-License-Identifier: Apache-2.0
"""The commands of the README where nothing is installed: `-m bare.run [SUITE[:PLAN]...]`; root.

Each plan has a fresh root (root.py) and steps in it; two plans run at once where the disk has room
for both. A step passes when it ends as expected; what it printed is in build/bare/, and shown when
it failed. Failed tests run once more in the same root when nothing else runs, and so does a step
after a fault of the machine; what passes then is named before the last line and in
build/flaky.txt. Times are in build/bare/steps.json and in the records of pytest beside it
(`make minutes`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bare.root import ROOTS, TOP, add_user, base, clone, fresh_root, remove_left, run
from bare.step import COUNTED, ROOT, Step, User, last_lines
from bare.turns import Turns
from runs.again import ALONE, FLAKY, N_LINES

T = TypeVar("T")
LOGS = TOP / "build" / "bare"
RECORDS = "project/build/test-runs"  # in the home of whoever ran tests
MAX_ROOTS = 2
ROOT_BYTES = 10_000_000_000  # most that a plan has taken, rounded up
PLAIN = User("plain", 1001)
REFUSED = User("refused", 1002)
SUDOER = User("sudoer", 1003, "ALL=(ALL) NOPASSWD: ALL")
DEMO = "cd project && make demo"
MISSING = r"these packages are missing: [^\n]*python3-venv"
#: tests that an earlier demo could break: of set-up, optional libraries, packages of npm
AFTER_DEMO = (
    "tests/bare tests/collect/test_output.py tests/xray/test_chrome.py "
    "tests/xray/test_end_to_end.py tests/check/test_sarif.py"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens in one root, in this order, until a step fails."""

    name: str
    steps: tuple[Step, ...]


TEST_FIRST = Plan(
    "test-first",
    (
        Step("make test", "cd project && make test", says=(COUNTED.pattern,),
             again="cd project && make test-again"),
        Step("make demo after it", DEMO, says=("src/lua\n",)),
    ),
)  # fmt: skip
DEMO_FIRST = Plan(
    "demo-first",
    (
        Step("make demo without rights, packages missing", DEMO, PLAIN, status=2,
             says=(MISSING, r"as root: apt-get install [^\n]*python3-venv")),
        Step("apt-get install sudo", "apt-get -qq update && apt-get -qq install sudo"),
        Step("make demo with sudo but no right to it", DEMO, REFUSED, status=2,
             says=(MISSING, r"sudo does not let refused")),
        Step("make demo with sudo, warnings are errors", f"export STRICT=1 && {DEMO}", SUDOER,
             says=("src/lua\n",)),
        Step("tests of tools and libraries after it, by sudo",
             "cd project && sudo make needs-test build && sudo .venv/bin/pytest -n auto "
             f"--run-record=build/test-runs/pytest.json {AFTER_DEMO}", SUDOER,
             says=(COUNTED.pattern,), again="cd project && sudo make test-again RUNS=pytest"),
        Step("make lint", "cd project && sudo make lint", SUDOER),
        Step("no more rights", f"rm /etc/sudoers.d/{SUDOER.name}"),
        Step("make demo without rights, nothing missing", DEMO, SUDOER, says=("src/lua\n",)),
    ),
)  # fmt: skip
README = (TOP / "README.md").read_text("utf-8")
#: the lines of README that install packages: by apt-get, and into a virtual environment
[BY_APT] = re.findall(r"^sudo (apt-get install .*)$", README, re.MULTILINE)
BY_PIP = "\n".join(re.findall(r"^(?:python3 -m venv|~/etrace/bin/pip) .*$", README, re.MULTILINE))
#: what docs/packages.md says of libraries for a packaged cas
[EXTRAS] = re.findall(
    r"^```\n(python3 -m venv --system-site-packages .*?)^```",
    (TOP / "docs/packages.md").read_text("utf-8"), re.MULTILINE | re.DOTALL,
)  # fmt: skip
ALWAYS_YES = """echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes"""
NO_KERNEL = "! dpkg -l | grep -E '^ii +(linux-image|initramfs-tools|busybox)'"
#: info and classification of lintian that is not of use here
UNUSED_TAGS = (
    "spelling-error-in-binary,"  # pieces of words in machine code
    "hardening-no-fortify-functions,"  # modules that call none of them
    "debian-watch-file-is-missing,"  # nothing is released on the web
    "package-contains-documentation-outside-usr-share-doc,"  # pages that programs fill
    "systemd-service-file-missing-install-key,"  # the socket starts it
    "package-supports-alternative-init-but-no-init.d-script,"  # Debian's default is systemd
    "capitalization-error-in-description"  # cas is a command
)
LINTIAN = (
    "apt-get -qq install lintian >/dev/null && cd project/build/packages/deb && "
    f"! lintian -I --pedantic --allow-root --suppress-tags {UNUSED_TAGS} *.changes | "
    "grep -v ^N: | grep ."
)
RPMLINT = """sudo apt-get -qq install rpmlint >/dev/null && cd project &&
rpmlint --config packaging/rpmlint.toml build/packages/rpm/*.rpm build/packages/rpm/*/*.rpm"""
PACKAGES = "etrace etrace-dkms etrace-doc libgcc-input-name python3-libetrace"
BUILD = r"""mkdir build && cd build && printf 'int main(void) { return 0; }' >a.c &&
printf 'a: a.c\n\tgcc -o a a.c\n' >Makefile && etrace run -- make &&
etrace_parser .nfsdb .nfsdb.json && cas pp && cas pp --confirm-inputs &&
cas deps a && cas linked_modules"""
LEFT = (
    "find / -xdev -name '*etrace*' -not -path '/proc/*' -not -path '/root/*' -not -path '/home/*'"
)
PACKAGED = Plan(
    "packages",
    (
        Step("make deb", "cd project && make deb",
             says=(r"etrace-dkms_\S+_all\.deb", rf"to install:\n{re.escape(BY_APT)}\n\Z")),
        Step("README's line installs them and no kernel",
             f"{ALWAYS_YES} && cd project && {BY_APT} && {NO_KERNEL} && ! dpkg -l | grep dbgsym"),
        Step("a build by the packages' commands", BUILD, PLAIN,
             says=(r"/build/a\.c$", r"/build/a$", r"inputs +1 of 1 confirmed")),
        Step("etrace doctor and the site", "etrace doctor && "
             "grep -q Secure.Boot /usr/share/doc/etrace-doc/html/search/search_index.js", PLAIN,
             says=(r"ptrace: works", r"gcc plugin +yes")),
        Step("Python and pip know them", "apt-get -qq install python3-pip python3-venv && pip list",
             says=(r"^linux-build-tracer +\d",)),
        Step("libraries that are extras, as docs/packages.md says", f"cd build && {EXTRAS} "
             "~/etrace-extras/bin/pip install perfetto && ~/etrace-extras/bin/python "
             "/usr/bin/etrace timeline --format perfetto -o t.pftrace && test -s t.pftrace", PLAIN,
             says=(r"^count_star\(\)\n[1-9]\d*$",)),
        Step("lintian says nothing", LINTIAN),
        Step("a kernel for which the module cannot be built stops nothing",
             "mkdir -p /lib/modules/9.9.9/build && touch /lib/modules/9.9.9/build/Makefile && "
             "/etc/kernel/postinst.d/etrace 9.9.9 && dpkg-reconfigure etrace-dkms && "
             "rm -r /lib/modules/9.9.9",
             says=(r"etrace-module: 9\.9\.9: not built; etrace traces by ptrace there",)),
        Step("headers come after the module", "apt-get install -qq linux-headers-amd64 && "
             "modinfo -k $(ls /lib/modules | head -1) etrace",
             says=(r"etrace-module: \S+: built and installed", r"updates/dkms/etrace\.ko")),
        Step("another kernel comes with its headers",
             "apt-get install -qq --no-install-recommends linux-headers-rt-amd64 "
             "linux-image-rt-amd64 && modinfo -k $(basename /lib/modules/*-rt-amd64) etrace",
             says=(r"etrace-module: \S+-rt-amd64: built and installed",)),
        Step("a read-only /var/lib/dkms stops nothing",
             "unshare -m sh -c 'mount --bind /var/lib/dkms /var/lib/dkms && "
             "mount -o remount,ro,bind /var/lib/dkms && dpkg-reconfigure etrace-dkms'",
             says=(r"etrace-module: \S+: (not built|built and installed)",)),
        Step("apt-get purge leaves only the group", "getent group etrace && "
             f"apt-get purge -qq {PACKAGES} && ! {LEFT} | grep . && getent group etrace"),
    ),
)  # fmt: skip
#: Debian's Python installs below dist-packages; with this one it does as Arch's
SITE_PACKAGES = """import sysconfig
schemes = sysconfig._INSTALL_SCHEMES
schemes["posix_local"] = {
    name: path.replace("{installed_base}", "/usr").replace("{base}", "/usr").replace(
        "{platbase}", "/usr") for name, path in schemes["posix_prefix"].items()
}"""
MAKEPKG = f"""apt-get -qq install makepkg pacman-package-manager libarchive-tools \\
    bpftool clang libbpf-dev libelf-dev llvm zlib1g-dev \\
    meson pkgconf libzstd-dev python3-pyelftools python3-rich &&
install -d -o {PLAIN.name} /srv/arch /srv/arch/site &&
echo '{SITE_PACKAGES}' >/srv/arch/site/sitecustomize.py &&
cp project/build/packages/arch/PKGBUILD project/build/packages/arch/*.tar.xz /srv/arch &&
cd /srv/arch && runuser -u {PLAIN.name} -- env -i HOME=/srv/arch PATH=/usr/sbin:/usr/bin:/bin \
    PYTHONPATH=/srv/arch/site PKGEXT=.pkg.tar.gz makepkg -d &&
ls *.gz && for package in *.gz; do tar -xf $package -C / usr; done"""
ARCH = Plan(
    "arch",
    (
        Step("make arch", "cd project && make arch", says=(r"/PKGBUILD",)),
        Step("makepkg", MAKEPKG, says=tuple(
            rf"^{name}-\d\S*\.pkg\.tar\.gz" for name in
            ("etrace", "etrace-dkms", "etrace-doc", "libgcc-input-name", "python-libetrace"))),
        Step("its commands",
             "export PYTHONPATH=$(echo /usr/lib/python3.*/site-packages) && " + BUILD, PLAIN,
             says=(r"/build/a\.c$", r"inputs +1 of 1 confirmed")),
    ),
)  # fmt: skip
SAID = ("to install:\n",)
NAMED_FIRST = (
    r"\Asetup: these packages are missing: [^\n]*\n"
    r"  hint: as root: apt-get install [^\n]*python3-venv[^\n]*\nmake: "
)


def kinds_of_users(kind: str, *more: Step) -> Plan:
    """Make a kind of package as each kind of user; what is missing is named before a build."""
    command = f"cd project && make {kind}"
    sudo = f"apt-get -qq update && apt-get -qq install sudo && {ALWAYS_YES}"
    return Plan(
        f"make-{kind}",
        (
            Step("without rights, packages missing", command, PLAIN, 2, (NAMED_FIRST,)),
            Step("apt-get install sudo", sudo),
            Step("with sudo", command, SUDOER, says=SAID),
            *more,
            Step("without rights, nothing missing", command, PLAIN, says=SAID),
            Step("as root", command, says=SAID),
        ),
    )


INSTALLS = (
    kinds_of_users(
        "deb",
        Step("README's line", f"cd project && sudo {BY_APT} && etrace run -- true", SUDOER),
    ),
    kinds_of_users(
        "wheel",
        Step("README's lines", f"cd project && {BY_PIP} && ~/etrace/bin/etrace doctor", SUDOER),
    ),
    kinds_of_users(
        "rpm",
        Step("rpmlint says nothing", RPMLINT, SUDOER, says=(r" 0 errors, 0 warnings",)),
    ),
    kinds_of_users("arch"),
)
PLANS = (TEST_FIRST, DEMO_FIRST)
#: of make test-bare-all, or when they are named
NAMED = (PACKAGED, ARCH, *INSTALLS)


@dataclass(slots=True)
class Progress:
    """What the plans have done so far."""

    turns: Turns = field(default_factory=Turns)
    steps: list[dict[str, object]] = field(default_factory=list)  # their times, for runs/minutes.py
    forgiven: list[str] = field(default_factory=list)  # lines that say what passed when run alone

    def forgive(self, name: str, lines: Iterable[str]) -> None:
        """Note that something passed when it ran again; `lines` are the end of its failure."""
        self.forgiven += [*(f"    {line}" for line in lines), ALONE + name]


def twice(what: str, make: Callable[[], T], progress: Progress) -> T:
    """Make something; when the disk or an archive fails, try once more."""
    try:
        return make()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"bare: {what}: {error}; once more", file=sys.stderr, flush=True)
        made = make()
        progress.forgive(what, [str(error)])
        return made


def take(suite: str, plan: Plan, progress: Progress) -> list[bool]:
    """Run the steps of a plan; return whether each passed."""
    where = f"{suite}, {plan.name}"
    passed: list[bool] = []
    with progress.turns.beside(), ExitStack() as roots:

        def prepare() -> Path:
            roots.close()  # of a first try
            root = roots.enter_context(fresh_root(suite))
            for user in {step.user for step in plan.steps}:
                if user != ROOT:
                    add_user(root, user)
                clone(root, user)
            return root

        root = twice(f"{where}: its root", prepare, progress)
        for number, step in enumerate(plan.steps, 1):
            log = LOGS / f"{suite}-{plan.name}-{number}.log"
            is_passed = take_step(where, step, root, log, progress)
            passed.append(is_passed or take_again(where, step, root, log, progress))
            keep_records(root, step.user, f"{suite}-{plan.name}-{number}")
            if not passed[-1]:
                break
    return passed + [False] * (len(plan.steps) - len(passed))


def take_again(where: str, step: Step, root: Path, log: Path, progress: Progress) -> bool:
    """Run alone what may run once more after a failure; return whether the step passes by that.

    Failed tests run once more, and so does a step after a fault of the machine; a step that needs
    both has both.
    """
    tried: list[str] = []
    failed_log = log
    while True:
        has_failed = has_failed_tests(root, step.user)
        second = step.second_try(failed_log, has_failed_tests=has_failed)
        if second is None or second.command in tried:
            return False
        tried.append(second.command)
        print(f"{where}: {second.name}: waits to run again, alone", flush=True)
        with progress.turns.alone():
            again = log.with_suffix(f".again{len(tried)}.log")
            is_passed = take_step(where, second, root, again, progress)
        if second.command == step.again:
            progress.forgiven += taken(root / step.user.home[1:] / "project" / FLAKY)
            return is_passed
        if is_passed:
            progress.forgive(f"{where}: {step.name}", last_lines(failed_log, N_LINES))
            return True
        failed_log = again


def has_failed_tests(root: Path, user: User) -> bool:
    """Return whether a record of pytest in a user's clone names a failed test."""
    records = (root / user.home[1:] / RECORDS).glob("*.json")
    return any(json.loads(record.read_text())["failed"] for record in records)


def taken(file: Path) -> list[str]:
    """Return the lines of a file, none if there is none, and remove it."""
    if not file.exists():
        return []
    lines = file.read_text(errors="replace").splitlines()
    file.unlink()
    return lines


def take_step(where: str, step: Step, root: Path, log: Path, progress: Progress) -> bool:
    """Run one step in a root and report how it ended."""
    started = time.monotonic()
    with log.open("wb") as output:
        status = run(root, step.user, step.command, output)
    seconds = time.monotonic() - started
    progress.steps.append({"plan": where, "step": step.name, "seconds": round(seconds, 1)})
    return step.report(where, status, log, seconds)


def keep_records(root: Path, user: User, name: str) -> None:
    """Keep the records of pytest of a step, before the root is removed."""
    for record in (root / user.home[1:] / RECORDS).glob("*.json"):
        shutil.copy(record, LOGS / f"{name}-{record.name}")
        record.unlink()


def chosen(words: Iterable[str]) -> list[tuple[str, Plan]]:
    """Return what `SUITE`, `SUITE:PLAN` or `SUITE:all` asks for."""
    found = []
    for word in words:
        suite, _, name = word.partition(":")
        every = {plan.name: [plan] for plan in (*PLANS, *NAMED)}
        every |= {"": [*PLANS], "all": [*PLANS, *NAMED]}
        plans = every.get(name, [])
        if not plans:
            names = ", ".join(filter(None, every))
            sys.exit(f"bare: no plan {name!r}; there are {names}")
        found += [(suite, plan) for plan in plans]
    return found


def main(words: list[str]) -> int:
    """Run the plans of the suites; the last line counts steps."""
    if os.geteuid() != 0:
        print("bare: only root can make a root file system: sudo make test-bare", file=sys.stderr)
        return 1
    started = time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)
    plans = chosen(words or ["bookworm"])
    remove_left()
    free = shutil.disk_usage(ROOTS).free
    n_at_once = min(len(plans), MAX_ROOTS, free // ROOT_BYTES)
    room = f"{free / 1e9:.0f} GB are free below {ROOTS}"
    print(f"bare: {room}; plans at once: {n_at_once}", flush=True)
    if n_at_once == 0:
        print(f"bare: a root needs {ROOT_BYTES / 1e9:.0f} GB there; make room", file=sys.stderr)
        return 1
    for left in (TOP / FLAKY, *LOGS.glob("*")):  # of the run before
        left.unlink(missing_ok=True)
    progress = Progress()
    for suite in {suite for suite, _ in plans}:
        twice(f"the base of {suite}", lambda suite=suite: base(suite), progress)  # type: ignore[misc]
    results: list[bool] = []
    with ThreadPoolExecutor(max_workers=n_at_once) as pool:
        ended = [pool.submit(take, suite, plan, progress) for suite, plan in plans]
        for (suite, plan), future in zip(plans, ended, strict=True):
            try:
                results += future.result()
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"FAILED  {suite}, {plan.name}: {error}", flush=True)
                results += [False] * len(plan.steps)
    (LOGS / "steps.json").write_text(json.dumps(progress.steps))
    print(f"bare: {(time.monotonic() - started) / 60:.1f} min")
    if progress.forgiven:
        text = "\n".join(progress.forgiven)
        (TOP / FLAKY).write_text(text + "\n")
        print(text)
    print(f"{sum(results)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
