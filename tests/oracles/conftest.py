# SPDX-License-Identifier: Apache-2.0
"""The packages that are built, each once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest
from backends import need_tool
from package_builds import Built, Package

#: what a `configure` reads and leaves behind it, when a header that it made is a dependency
CONFIGURE = "made by configure, with all that it tried"
#: headers elsewhere than in /usr/include: the compiler's, and Linux's, to which Debian 13 links
OTHER_HEADERS = "/usr/lib/(gcc/.*/include|linux/uapi)/.*"
MANIFEST = "mksourceid hashes every file of sqlite's manifest into sqlite3.c"

PACKAGES = (
    Package(
        name="lua",
        source="lua5.4",
        script="make -j2 linux MYCFLAGS='-MD -g'",
        n_objects=34,
        modules=("src/liblua.a", "src/lua", "src/luac"),
    ),
    Package(
        name="zlib",
        source="zlib",
        script="CFLAGS='-O0 -MD -g' ./configure; make -j2",
        n_objects=34,
        modules=("libz.a", "libz.so.1.*", "example", "minigzip", "examplesh", "minigzipsh"),
        generated=(
            (r"<tree>|<tree>/(zconf\.h(\.in)?|zconf\.temp\.h)", CONFIGURE),
            (r"<tree>/(configure(\.log)?|Makefile(\.in)?|zlib\.(map|h)|ztest\d+.*)", CONFIGURE),
            (rf"/usr/include/.*|{OTHER_HEADERS}", "of ztest.c, which configure compiles"),
            (r"<tree>/objs/\w+\.o|<tree>/\w+\.lo", "the object under its other name"),
        ),
    ),
    Package(
        name="jsoncpp",
        source="libjsoncpp",
        # it runs its compilers by ccache when there is one, and a hit would compile nothing
        script="export CCACHE_DISABLE=1; cmake -G 'Unix Makefiles' -B out -DCMAKE_BUILD_TYPE=Debug"
        " -DJSONCPP_WITH_TESTS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON; make -C out -j2",
        n_objects=9,
        modules=("out/lib/libjsoncpp.a", "out/lib/libjsoncpp.so.*.*.*"),
    ),
    Package(
        name="sqlite",
        source="sqlite3",
        prepare="./configure CFLAGS='-O0 -MD -g' --disable-tcl --disable-shared",
        script="make sqlite3 libsqlite3.la",
        n_objects=4,
        modules=("sqlite3", "lemon", "mkkeywordhash", ".libs/libsqlite3.a"),
        generated=(
            (r"<tree>/([^/]*|(src|ext|tsrc|tool|test|mptest|vsixtest)/.*)", MANIFEST),
            (r"<tree>/(\.fossil-settings|art|autoconf|contrib|doc)/.*", MANIFEST),
            (r"/tmp/tcl_\w+|/usr/share/tcltk/.*|/etc/(nsswitch\.conf|passwd)", "tclsh: sqlite3.c"),
            (rf"/usr/include/.*|{OTHER_HEADERS}", "shell.c: sqlite3.c has its depfile"),
        ),
    ),
    Package(
        name="bash",
        source="bash",
        # gcc 14 made an error of what its termcap does
        prepare="./configure --disable-nls"
        " CFLAGS='-O0 -MD -g -Wno-error=implicit-function-declaration'",
        script="make -j2",
        n_objects=150,
        modules=(
            "bash",
            "builtins/libbuiltins.a",
            "lib/readline/libreadline.a",
            "builtins/mkbuiltins",
        ),
        generated=(
            (r"<tree>/builtins/(\w+\.def|(builtext|builtins|mk)-\d+(\.\w)?)", "by mkbuiltins"),
            (r"<tree>/builtins/psize\.(aux|c|sh)|/tmp/pipsize\.\w+", "pipesize.h"),
            (r"<tree>/(support/mkversion\.sh|(newversion|patchlevel)\.h)", "version.h"),
            (r"<tree>/pathnames\.(h\.in|tmp)", "pathnames.h"),
            (r"<tree>/lsignames\.h", "signames.h"),
        ),
    ),
)
TOOLS = (
    ("make", "make"), ("gcc", "gcc"), ("g++", "g++"), ("cmake", "cmake"), ("ar", "binutils"),
    ("readelf", "binutils"), ("tclsh", "tcl"),
)  # fmt: skip


LONG = {"bash": [pytest.mark.long]}


@pytest.fixture(
    scope="session",
    params=[pytest.param(p, id=p.name, marks=LONG.get(p.name, ())) for p in PACKAGES],
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A package, built and post-processed."""
    for tool, debian in TOOLS:
        need_tool(tool, debian)
    package: Package = request.param
    return Built(package, Path(tmp_path_factory.mktemp(package.name)).resolve())
