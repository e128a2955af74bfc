# SPDX-License-Identifier: Apache-2.0
# Thin: each target names what does the work. `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BUILD ?= build/release
# with STRICT=1, as in CI, a warning of Meson, Cython or a compiler ends the build
SETUP_ARGS ?= -Dbuildtype=release $(if $(STRICT),-Dwerror=true --fatal-meson-warnings)
PYTEST_ARGS ?=
export PYTHON
# a pipe fails when any part of it does
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest --no-loadscope-reorder
# what failed and how long it took, for `make test-again` and `make minutes`
RECORDS := build/test-runs
RUNS ?= tests sanitize
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' etrace/__init__.py)
SOURCES := $(shell find etrace cython native completions kmod/include -type f ! -name '*.pyc' 2>/dev/null) \
	meson.build $(wildcard meson_options.txt) pyproject.toml

.DEFAULT_GOAL := help
.PHONY: FORCE help build module install-module dkms-tree deb rpm arch wheel windows windows-zip docs pictures release-check reproducible demo test test-again minutes pytest sanitize test-long test-windows test-bare test-bare-all test-install test-install-all test-vm test-stress \
	test-kernels test-arm64 test-kasan kernel-tree kernel-tree-remove kernel-patches test-kernel-tree lint format bench bench-capture proof bench-kernel bench-kernel-profile bench-kernel-build generate debug fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 22

# What a target needs is named, and installed where that is allowed, before anything is built.
.NOTPARALLEL:
needs-%: FORCE
	@build-aux/setup $* $(VENV)

build: $(VENV)/.built ## every command, in $(VENV)/bin

# changes when a library that a feature needs comes or goes
$(VENV)/.features: FORCE
	@build-aux/features $(VENV) $(BUILD)

$(VENV)/.built: $(SOURCES) build-aux/setup build-aux/build.py build-aux/manual.py build-aux/translate.py $(VENV)/.features
	@build-aux/setup build $(VENV)
	@build-aux/features $(VENV) $(BUILD)
	@touch $@.begun # a file that changes from here on is newer
	@! ls -d $(VENV)/lib/python3*/site-packages/etrace-*.dist-info >/dev/null 2>&1 || \
		$(BIN)/python -P -m pip uninstall -q -y etrace # a stranger's, or of a tree that had that name
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python build-aux/build.py $(BUILD) $(SETUP_ARGS)
	@test -x $(BIN)/etrace || { echo "make: the build failed; see above" >&2; exit 1; }
	@$(BIN)/python -P -m etrace.capture.features
	@mv $@.begun $@

module: needs-module ## build the kernel module for the running kernel
	$(MAKE) -C kmod modules

install-module: ## as root: put it where `etrace start` and modprobe find it
	$(MAKE) -C kmod modules_install

dkms-tree: ## lay the module out as DKMS takes it, with its formatter; DEST=/usr/src/etrace-VERSION
	@test -n "$(DEST)" || { echo "make dkms-tree DEST=/usr/src/etrace-VERSION" >&2; exit 1; }
	mkdir -p "$(DEST)/format"
	cp -R kmod/Kbuild kmod/Makefile kmod/src kmod/include "$(DEST)"
	cp native/format/*.c native/format/*.h "$(DEST)/format"

deb: ## Debian packages for this release of Debian, in build/packages/deb
rpm: ## RPM packages, in build/packages/rpm
arch: ## what Arch's makepkg takes, in build/packages/arch
wheel: ## a wheel and a source distribution for PyPI, in build/packages/wheel
deb rpm arch wheel: %: needs-% build
	$(BIN)/python build-aux/packages.py $@ --output build/packages/$@

windows: needs-windows ## windows-tracer.exe for x86-64 and i686, in build/windows
	$(MAKE) -C native/windows OUT=$(abspath build/windows) VERSION=$(VERSION)

windows-zip: windows build ## the same with README and licences: build/packages/windows/*.zip
	$(BIN)/python build-aux/windows_zip.py --programs build/windows --output build/packages/windows

test-windows: needs-windows build ## the tracer for Windows, under Wine; a part of make test
	$(BIN)/pytest $(PYTEST_ARGS) tests/windows

docs: needs-docs build ## the site of these documents, the commands and the library, in build/website/site
	$(BIN)/python build-aux/website.py

pictures: needs-browser build ## the pictures of the report in docs/pictures, of real builds
	$(BIN)/python build-aux/pictures.py

release-check: needs-deb+wheel+rpm+arch+windows build ## whether this tree can be released; RELEASE=--unreleased takes an undated changelog
	nice $(BIN)/python build-aux/release_check.py $(RELEASE)

reproducible: needs-deb+wheel+rpm+arch+windows build ## build packages twice in unlike surroundings and compare the bytes; KINDS='arch deb dkms rpm wheel windows'
	nice $(BIN)/python build-aux/reproducible.py $(KINDS)

kernel-tree: ## put the module into a kernel's own tree; DEST=/path/linux-x.y [MAINTAINER='Name <address>']
	$(PYTHON) build-aux/kernel_tree.py put "$(DEST)" --maintainer '$(MAINTAINER)'

kernel-tree-remove: ## take it back; DEST=
	$(PYTHON) build-aux/kernel_tree.py remove "$(DEST)"

kernel-patches: ## the same as a patch series in OUT=; DEST= [MAINTAINER=]
	$(PYTHON) build-aux/kernel_tree.py patches "$(DEST)" "$(OUT)" --maintainer '$(MAINTAINER)'

demo: needs-demo build ## trace, parse and summarise the build of a real C project
	@$(BIN)/python demo/run.py

# a worker more than processors: one waits for the guest
test: needs-test+browser+vm build ## all tests but the long ones, a guest beside the others
	@rm -rf $(RECORDS) build/flaky.txt && mkdir -p $(RECORDS)
	$(PYTEST) -n $$(($$(nproc) + 1)) -m 'not long and (not vm or not (kasan or tree or slow))' \
		--run-record=$(RECORDS)/tests.json $(PYTEST_ARGS); \
		status=$$?; echo $$status >$(RECORDS)/status; [ $$status -le 1 ] # 1: a test failed
	$(MAKE) sanitize
	@exit $$(cat $(RECORDS)/status)

test-again: ## run the tests that failed in the last `make test` once more, one at a time; RUNS=pytest
	@PYTHONPATH=tests $(BIN)/python -m runs.again $(RUNS:%=$(RECORDS)/%.json)

minutes: ## tables of where the last test runs spent their time
	@PYTHONPATH=tests $(PYTHON) -m runs.minutes $(wildcard $(RECORDS)/*.json build/bare/*.json)

pytest: needs-test+browser build ## the tests that boot no guest; PYTEST_ARGS chooses
	$(PYTEST) -n auto -m 'not vm and not long' --run-record=$(RECORDS)/pytest.json $(PYTEST_ARGS)

test-long: needs-test+browser+spark build ## the same with what looks for rare faults: fuzzers, large builds, seeded faults; before a release
	ETRACE_LONG=1 $(PYTEST) -n auto -m 'not vm' $(PYTEST_ARGS)
	$(BIN)/python build-aux/mutate.py

# tests of parts that are not built with sanitizers
UNSANITIZED := tests/capture/kmod tests/capture/bpf $(wildcard tests/capture/test_*strace*.py tests/capture/test_bpf*.py) \
	tests/capture/test_other_machines.py

sanitize: needs-test build ## the tests of capture and collect on C programs built with ASan and UBSan
	PATH="$(abspath $(BIN)):$$PATH" && { test -e build/sanitize/build.ninja || \
		CC="$${CC:-cc}" CXX="$${CXX:-c++}" meson setup build/sanitize -Dwerror=true -Db_sanitize=address,undefined -Db_lundef=false \
			-Dbuildtype=debugoptimized >/dev/null; } && \
		ninja -C build/sanitize native/ptrace/etrace-ptrace native/collect/etrace_cat preload >/dev/null
	ln -sfn $(abspath build/sanitize/native/preload/library) build/sanitize/native/preload/collector/preload
	ETRACE_PTRACE=$(abspath build/sanitize/native/ptrace/etrace-ptrace) \
		ETRACE_CAT=$(abspath build/sanitize/native/collect/etrace_cat) \
		ETRACE_PRELOAD_PROGRAM=$(abspath build/sanitize/native/preload/collector/etrace-preload) \
		ASAN_OPTIONS=detect_leaks=0 $(PYTEST) -n auto -m 'not slow and not vm' \
		--run-record=$(RECORDS)/sanitize.json $(UNSANITIZED:%=--ignore=%) tests/capture tests/collect

test-bare: needs-bare ## make demo and make test in fresh minimal roots of Debian 12, as several users; root
	PYTHONPATH=tests $(PYTHON) -m bare.run bookworm

test-bare-all: needs-bare ## the same and the packages as every kind of user, in Debian 12 and 13
	PYTHONPATH=tests $(PYTHON) -m bare.run bookworm:all trixie:all

test-install: needs-install ## the packages in a machine of Debian 12 with systemd, booted under emulation; root
	PYTHONPATH=tests $(PYTHON) -m install.run bookworm

test-install-all: needs-install ## the same with Debian 12 and 13
	PYTHONPATH=tests $(PYTHON) -m install.run bookworm trixie

test-vm: needs-test+vm build ## the kernel module in this Debian's kernel under emulation
	$(BIN)/pytest -m 'vm and not kasan and not tree and not slow' $(PYTEST_ARGS) tests/vm
	@echo 'test-vm leaves out a longer build, storm and CLI session (make test-stress), other kernels (make' \
		'test-kernels) and detectors (make test-kasan): docs/testing.md has their last results'

test-stress: needs-test+vm build ## storms, 500 rounds of loading and starting, a longer build and CLI session
	ETRACE_STRESS=long ETRACE_VM_SECONDS=10800 $(BIN)/pytest -m vm $(PYTEST_ARGS) tests/vm/test_stress.py \
		tests/vm/test_build.py tests/vm/test_backends.py tests/vm/test_cli.py tests/vm/test_service.py tests/vm/test_machine.py

# what each kernel is tested with
KERNEL_TESTS := $(addprefix tests/vm/test_,events.py control.py servers.py probes_off.py cgroup.py stress.py)

test-kernels: needs-test+vm build ## the module in every Linux of etrace/spec/kernels.toml and for arm64; root; fetches 700 MB once
	ETRACE_KERNELS=all $(BIN)/pytest -m vm $(PYTEST_ARGS) $(KERNEL_TESTS) tests/vm/test_tracers.py
	$(MAKE) test-arm64

test-arm64: needs-test+vm+arm64 build ## the module and the ptrace backend in Linux 6.1 for arm64; fetches 80 MB once
	ETRACE_KERNELS=arm64 $(BIN)/pytest -m vm $(PYTEST_ARGS) $(KERNEL_TESTS) tests/vm/test_tracers.py -k "not bpf"

test-kasan: needs-test+kasan build ## the module in a kernel full of detectors, built once in 20 minutes
	PYTHONPATH=tests nice $(BIN)/python -m vm.debug_kernel
	ETRACE_KERNELS=debug ETRACE_VM_SECONDS=7200 $(BIN)/pytest -m vm $(PYTEST_ARGS) $(KERNEL_TESTS) \
		tests/vm/test_debug_kernel.py

test-kernel-tree: needs-test+tree build ## a kernel with the module in its own tree, built in and not; builds it in 10 minutes
	ETRACE_KERNELS=tree ETRACE_VM_SECONDS=3600 $(BIN)/pytest -m vm $(PYTEST_ARGS) \
		tests/vm/test_kernel_tree.py tests/vm/test_events.py tests/vm/test_servers.py \
		tests/vm/test_usage.py::test_threads_that_end_before_a_tick_are_counted \
		tests/vm/test_control.py::test_ways_around_the_events_are_counted \
		tests/vm/test_control.py::test_sessions_are_of_privileged_users_and_one_at_a_time
	ETRACE_KERNELS=tree-module ETRACE_VM_SECONDS=3600 $(BIN)/pytest -m vm $(PYTEST_ARGS) \
		tests/vm/test_kernel_tree.py::test_the_kselftest_passes tests/vm/test_events.py tests/vm/test_servers.py \
		tests/vm/test_control.py

bench-capture: needs-test build ## the tables of capture alone; ROUNDS=5, BPF where you may load it
	$(BIN)/python bench/capture.py $(ROUNDS)

proof: needs-test+proof build ## Linux, git and LLVM under every backend: docs/proof.md; PROOF='--rounds 1 --project git', root for BPF
	PYTHONPATH=tests:bench $(BIN)/python bench/proof.py $(PROOF)

bench-kernel: needs-test+vm build ## what the module and BPF cost, in instructions; KERNELS='6.1 5.10 6.12 7.2'
	PYTHONPATH=tests:bench $(BIN)/python -m kernel.instructions $(KERNELS)

bench-kernel-build: needs-test+vm build ## a real build natively and traced, in instructions
	PYTHONPATH=tests:bench $(BIN)/python -m kernel.whole_build $(KERNELS)

bench-kernel-profile: needs-test+vm build ## the same by function; PROFILE='open_close', '--function NAME'
	PYTHONPATH=tests:bench $(BIN)/python -m kernel.by_function $(PROFILE)

lint: needs-lint build ## all linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.:cython $(BIN)/lint-imports
	$(BIN)/python build-aux/arrows.py
	$(BIN)/python build-aux/c_layers.py
	$(BIN)/python build-aux/english.py
	@! expand -t8 $$(git ls-files 'kmod/src/*.[ch]') | grep -v '"' | grep '.\{101\}'  # as checkpatch counts
	$(BIN)/reuse --suppress-deprecation lint -q || $(BIN)/reuse lint
	PYTHONPATH=. $(BIN)/python -m etrace.render --check
	$(BIN)/python build-aux/website.py

format: needs-lint ## let ruff rewrite the Python files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: needs-test+browser build ## measure speed and memory: paired runs, medians, ratios
	$(BIN)/python bench/run.py

generate: needs-build ## render what is rendered from etrace/spec
	PYTHONPATH=. $(BIN)/python -m etrace.render

debug: ## build with every check on into .venv-debug, and run the tests on it
	$(MAKE) pytest VENV=.venv-debug BUILD=build/debug \
		SETUP_ARGS='-Dbuildtype=debugoptimized -Ddebug_checks=true'

fuzz: needs-fuzz build ## ten million runs of the fuzzers
	$(BIN)/python tests/fuzz/run.py --runs 10000000 --seconds 7200
	$(BIN)/python tests/fuzz/fuzz_images.py --seconds 3600
	$(BIN)/python tests/fuzz/fuzz_imports.py --seconds 3600

clean: ## remove everything that was made
	rm -rf build dist *.egg-info .venv .venv-debug .hypothesis .*_cache
	find . -name .git -prune -o -name __pycache__ -prune -exec rm -rf {} +
	find kmod \( -name '*.ko' -o -name '*.o' -o -name '*.mod' -o -name '*.mod.c' -o -name '.*.cmd' -o -name '.*.o.d' \
		-o -name modules.order -o -name Module.symvers \) -delete
