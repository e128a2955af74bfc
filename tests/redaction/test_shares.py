# SPDX-License-Identifier: Apache-2.0
"""How many secrets are hidden, and how many words of ordinary builds."""

from __future__ import annotations

import hashlib
import lzma
import random
import re
import shlex
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from secret_shapes import Shape, shapes

from etrace.redaction import commands
from etrace.redaction.commands import shown_arguments

ROOT = Path(__file__).parents[2]
LUA = ROOT / "tests/golden/lua.nfsdb.xz"
#: at least this part of secrets, and at most this part of ordinary words is hidden
LEAST_SECRETS, MOST_WORDS = 0.95, 0.01
N_WORDS = 20_000


def is_hidden(shape: Shape) -> bool:
    """Whether nothing of a shape's secrets is left."""
    shown = "\n".join(shown_arguments(shape.words))
    return not any(secret in shown for secret in shape.secrets)


@pytest.mark.parametrize("seed", [1, 2])
def test_nearly_all_secrets_are_hidden(seed: int) -> None:
    known = list(shapes(seed))
    missed = [shape.template for shape in known if not is_hidden(shape)]
    assert len(known) > 500
    assert all(shape.secrets for shape in known)
    assert len(missed) <= (1 - LEAST_SECRETS) * len(known), missed


def commands_of_lua() -> Iterator[list[str]]:
    """Yield the command lines of a real build, and its environment and files as single words."""
    text = lzma.decompress(LUA.read_bytes()).decode(errors="surrogateescape")
    argv: list[str] = []
    for line in text.splitlines():
        field = line.partition("!")[2]
        if match := re.match(r"A(\d*)\|(.*)", field):
            argv.append(match[2])
        elif argv:
            yield argv
            argv = []
        if match := re.match(r"(?:FN|FO|E\d*|PN|CW)\|(.*)", field):
            yield [match[1]]


def commands_of_compilers() -> Iterator[list[str]]:
    """Yield every option that gcc knows, in one command."""
    helped = subprocess.run(
        ["gcc", "--help=warnings,optimizers,common,target,params,c,c++"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    yield ["gcc", *dict.fromkeys(w for w in helped.split() if w.startswith("-"))]


def words_of_sources() -> Iterator[list[str]]:
    """Yield the words of this tree's sources, whose names are those of every tracer and build."""
    for folder in ("etrace", "cython", "native", "kmod", "docs", "build-aux", "bench"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".py", ".pyx", ".pxd", ".build", ".md", ".js"):
                if "redaction" in path.parts:
                    continue
                yield [str(path.relative_to(ROOT))]
                words = path.read_text(encoding="utf-8").split()
                yield from ([word] for word in words)
                yield from ([f"-D{w}=1"] for w in words if re.fullmatch(r"[A-Z_]{4,}", w))


def made_up_words() -> Iterator[list[str]]:
    """Yield what builds have that is random and can be shown."""
    chance = random.Random(1)
    for _ in range(500):
        raw = chance.randbytes(32)
        sha1, sha256 = hashlib.sha1(raw).hexdigest(), hashlib.sha256(raw).hexdigest()
        md5, number = hashlib.md5(raw).hexdigest(), uuid.UUID(bytes=raw[:16])
        yield from ([word] for word in (
            sha1, sha256, md5, sha1[:12], f"sha256:{sha256}", f"-frandom-seed={sha1[:16]}",
            f"-Wl,--build-id=0x{sha1}", f"/usr/lib/debug/.build-id/{sha1[:2]}/{sha1[2:]}.debug",
            str(number), f"repo/image:1.2@sha256:{sha256}", f"--hash={sha512_of(raw)}",
            f"-DGIT_COMMIT={sha1}", f"-DVERSION=v1.2-3-g{sha1[:9]}", f"/tmp/cc{sha1[:6]}.o",
            f"CACHE_KEY={sha256}", f"/nix/store/{sha1[:32]}-hello-2.12/bin/hello",
            f"{number}.tmp", f"conftest.{chance.randrange(10**6)}", f"lib{md5}.so",
        ))  # fmt: skip


def sha512_of(raw: bytes) -> str:
    return hashlib.sha512(raw).hexdigest()


ORDINARY = """
gcc -DAUTH_TYPE=openssl -DUSE_TOKEN=ON -DHAVE_PASSWD=1 -DMAX_TOKENS=4096 -c tokenizer.c
gcc -DTOKEN_FILE="/etc/x" -DPASSWD_PATH=/usr/bin/passwd -c a.c
./configure --enable-pass-through --with-pam --without-secret --disable-token
gcc -Wno-unused-secret -fdump-passes -Rpass=inline -mllvm -debug-pass=Arguments -o passes.o passes.c
ar rcs libsecret.a token.o key.o passwd.o auth.o cookie.o credential.o
gcc -Ilib/keyring -c lib/keyring.c lib/password.c crypto/passwd.c apps/pkey.c -o lib/keyring.o
t --password-file /run/secrets/x --token-file=x --passphrase-fd 3 --ask-pass --no-token
openssl x509 -in server.pem -passin file:/run/x -CAkey ca.key -key server.key
openssl req -new -key server.key -passin env:PASS -out a.csr
docker run -p 8080:80 -u 1000:1000 -e DEBUG=1 nginx:1.25
docker build -t name:tag --secret id=npm,src=.npmrc .
mysql -P 3306 -h db -u me x
psql -p 5432 -U me
ssh -p 22 -i key.pem git@github.com
git clone ssh://git@github.com/a/b.git
git clone git@github.com:a/b.git
npm install left-pad@1.3.0 @scope/name@2.0.0 alias@npm:other@1.0.0
go get golang.org/x/tools@v0.1.0
sort -u names.txt
mkdir -p a/b/c
cp -p key.c token.h pass/
make PASS=1 TOKENS=all V=1 -k
python3 -m pytest tests/test_token.py::test_auth -k password -p no:cacheprovider
cargo build --features auth,token --target-dir target
ninja -t restat pass.o
bazel build //auth:token @repo//pass:lib --host_action_env=PATH
sh -c 'if test -n "$PASSWORD"; then echo yes; fi; cc -c token.c && echo pass: ok'
sh -c 'grep -q "^token: " x || sed -e "s/token: *//" x > y'
cmake -DCMAKE_BUILD_TYPE=Release -DBUILD_AUTH=ON -DTOKENIZER=flex ..
ld --build-id=sha1 --hash-style=gnu -dynamic-linker /lib64/ld-linux-x86-64.so.2 -o auth auth.o
msbuild /p:Configuration=Release /t:Build x.sln
java -Xmx512m -cp a.jar:b.jar com.example.auth.TokenService
rsync -a --password-file=/etc/x host::mod /y
env DBUS_SESSION_BUS_ADDRESS=unix:path=/b SSH_AUTH_SOCK=/tmp/x/a.1 PWD=/src OLDPWD=/ make
"""


def test_few_words_of_ordinary_builds_are_hidden() -> None:
    written = (shlex.split(line) for line in ORDINARY.strip().splitlines())
    words: set[str] = set()
    lost: set[str] = set()
    for source in (
        commands_of_lua(), commands_of_compilers(), words_of_sources(), made_up_words(), written
    ):  # fmt: skip
        for command in source:
            words.update(command)
            shown = shown_arguments(command)
            lost.update(a for a, b in zip(command, shown, strict=True) if a != b)
    assert len(words) >= N_WORDS
    assert len(lost) <= MOST_WORDS * len(words), sorted(lost)[:50]


@pytest.mark.parametrize("line", ORDINARY.strip().splitlines())
def test_an_ordinary_command_is_shown_as_it_was(line: str) -> None:
    words = shlex.split(line)
    assert list(shown_arguments(words)) == words


def test_commands_that_are_passed_over_have_no_secret() -> None:
    """Most are not looked at, because none of their words can have one or say where one is."""
    known = [shape.words for shape in shapes()] + list(commands_of_lua())
    for words in known:
        assert commands.spans_of_command(words) == commands._spans_of_loud(words, 0), words


def test_digests_are_shown() -> None:
    lost = [words for words in made_up_words() if list(shown_arguments(words)) != words]
    assert lost == []
