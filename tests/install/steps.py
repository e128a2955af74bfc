# SPDX-License-Identifier: Apache-2.0
"""What users do with a machine that is installed from the packages."""

from __future__ import annotations

from bare.root import TOP
from bare.step import Step, User

BUILDER = User("builder", 1001)
OTHER = User("other", 1002)
NAMES = "etrace etrace-dkms etrace-doc libgcc-input-name"
ALL = f"{NAMES} python3-libetrace"
LEFT = "find / -xdev -name '*etrace*' -not -path '/srv/*' -not -path '/home/*' -not -path '/root/*'"

#: what README has people type after `make deb`, which has filled that folder
[README_SAYS] = (
    line
    for line in (TOP / "README.md").read_text().splitlines()
    if line.startswith("sudo apt-get install ")
)
CLONE = """apt-get update -qq && apt-get install -qq sudo &&
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes &&
mkdir -p clone/build/packages && ln -s /srv/packages clone/build/packages/deb && cd clone"""

IN_ROOT = (
    Step("apt-get install, as README says",
         f"{CLONE} && {README_SAYS} && rm /etc/apt/apt.conf.d/yes",
         says=(r"etrace-module: \S+: built and installed",)),
    Step("a member of the group", "usermod -aG etrace builder"),
)  # fmt: skip

#: a build in a shell that was there before the session
OTHER_SHELL = r"""mkfifo go
runuser -l builder -c 'read -r go && make -C bzip2 bzip2' <go &
exec 3>go
etrace start --pid $! --descendants -o trace && echo go >&3 && wait $! && etrace stop &&
cd trace && etrace_parser .nfsdb .nfsdb.json && cas pp && cas deps /home/builder/bzip2/bzip2"""

SOURCES = (r"/bzip2/huffman\.c$", r"/bzip2/bzlib_private\.h$", r"/usr/include/stdio\.h$")

IN_MACHINE = (
    Step("the machine is up", "systemctl --failed --no-legend; uname -r", says=(r"^6\.",)),
    Step("etrace doctor", "etrace doctor", OTHER, says=(r"ptrace: works",)),
    Step("etrace doctor as root", "etrace doctor", says=(r"kmod: works",)),
    Step("a build without rights",
         "make -s -C bzip2 clean && etrace run --backend ptrace -o trace -- make -C bzip2 bzip2 &&"
         " cd trace && cas parse && cas pp && cas deps ~/bzip2/bzip2", BUILDER,
         says=SOURCES),
    Step("a build by the service",
         "make -s -C bzip2 clean && etrace run --backend kmod -o served -- make -C bzip2 bzip2 &&"
         " cd served && cas parse && cas pp && cas deps ~/bzip2/bzip2", BUILDER, says=SOURCES),
    Step("the service and who is not of its group", "etrace run --backend kmod -- true", OTHER,
         status=125, says=(r"membership in group etrace",)),
    Step("etrace start without rights", "etrace start", OTHER, status=125,
         says=(r"root",)),
    Step("etrace start, a build in another shell, etrace stop",
         "make -s -C /home/builder/bzip2 clean && " + OTHER_SHELL,
         says=SOURCES),
    Step("a newer version", "sed -i s,packages,newer, /etc/apt/sources.list.d/machine.list && "
         f"apt-get update -qq -o Dir::Etc::SourceList=/dev/null && apt-get install -qq {NAMES} && "
         "etrace doctor && dpkg -s etrace", says=(r"^Version: .*\+newer", r"kmod: works")),
    Step("remove", f"apt-get remove -qq {ALL} && ! command -v etrace && ! modinfo etrace"),
    Step("purge leaves nothing", f"apt-get purge -qq {ALL} && ! {LEFT} | grep ."),
)  # fmt: skip
