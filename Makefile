# Needs make and Python >= 3.11 with venv; everything else is installed into .venv, from lock files with hashes.
#
#   make demo        a verified release of a made-up cohort, and where its report is
#   make demo-portal the portal with five people and made-up data, and where it is
#   make install     .venv with all that the tests need, and the package editable
#   make test        install, system packages, lint, types, tests
#   make test-interpreted  tests of kernels, which run as plain Python: for coverage and debuggers
#   make test-set-up docs/how-to/set-up.md from its first line on a new Debian (root, debootstrap; DEBIAN=bookworm)
#   make test-browser the portal's pages in the system's Chromium, with pictures
#   make lint        ruff and mypy alone
#   make studies-small  each study on little made-up data (minutes; `make test` runs it too)
#   make studies     every study and benchmark, on the public data sets (STUDIES_ARGS='--data DIR'; a day)
#   make pages       README and docs/ with what their commands print now (PAGES=docs/tutorials/registry.md)
#   make site        the documentation as a site: build/site/index.html
#   make fuzz        hostile inputs to every reader, spec, query and index (FUZZ_ARGS='--inputs 20000 --seed 1')
#   make mutants     small changes of src that the tests have to notice, one at a time (MUTANTS_ARGS=readers; an hour)
#   make wheel       dist/: a wheel for this platform and Python, with compiled kernels in it
#   make floors      the quick tests with the lowest versions that pyproject.toml allows (needs uv)
#   make lock        compile requirements/*.txt again (needs uv); LOCK_ARGS=--upgrade moves everything forward
#   make clean       caches, builds and the demo; the environment stays
#   make distclean   the environment too

PYTHON ?=
VENV   := .venv
PY     := $(VENV)/bin/python
JOBS   ?= 2
PYTEST_ARGS ?=
DEBIAN ?= bookworm
INTERPRETED ?= $(wildcard tests/methods/*/test_worked_example*.py) tests/methods/disassociation/test_fit.py \
    tests/methods/condensation/test_kernels.py tests/cli/test_demo.py
PAGES ?= README.md $(wildcard docs/tutorials/*.md docs/how-to/*.md)
FLOORS ?= tests/cohort tests/cli/test_spec.py tests/cli/test_flags.py tests/cli/test_demo.py tests/release
FUZZ_ARGS ?= --inputs 20000 --seed 1

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export MPLCONFIGDIR ?= $(CURDIR)/.cache/matplotlib
# Someone else's libraries must not get in front of ours.
unexport PYTHONPATH
unexport PYTHONHOME
# Without it, each of the processes that tests start compiles every file again; pip need not compile those never read.
unexport PYTHONDONTWRITEBYTECODE

# The build tools first, pinned like the rest: what is published as source only is built with them, not with a download.
PIP := $(PY) -m pip install --quiet --no-compile --require-hashes --no-build-isolation
EDITABLE := $(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help install demo demo-portal test-browser test-set-up test test-interpreted system-packages lint studies studies-small pages site fuzz mutants wheel floors lock clean distclean

help:
	@sed -n 's/^#   //p' Makefile

$(VENV)/.stamp-venv:
	@sh scripts/make-venv.sh $(VENV) "$(PYTHON)"
	@touch $@

# The run lock and the build backend: all that `leeward demo` needs. An environment with the dev lock has it already.
$(VENV)/.stamp-run: $(VENV)/.stamp-venv requirements/run.txt requirements/build.txt pyproject.toml
	@if [ ! -f $(VENV)/.stamp-dev ]; then \
	    echo "Installing what Leeward runs on (once; a minute or two) ..."; \
	    $(PIP) -r requirements/build.txt && $(PIP) -r requirements/run.txt; \
	fi
	@$(EDITABLE)
	@touch $@

# The lock of the portal, likewise.
$(VENV)/.stamp-portal: $(VENV)/.stamp-venv requirements/portal.txt requirements/build.txt pyproject.toml
	@if [ ! -f $(VENV)/.stamp-dev ]; then \
	    echo "Installing what the portal runs on (once; a minute or two) ..."; \
	    $(PIP) -r requirements/build.txt && $(PIP) -r requirements/portal.txt; \
	fi
	@$(EDITABLE)
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-venv requirements/dev.txt requirements/build.txt pyproject.toml
	@echo "Installing what the tests need (once; a few minutes) ..."
	@$(PIP) -r requirements/build.txt
	@$(PIP) -r requirements/dev.txt
	@$(EDITABLE)
	@touch $@

install: $(VENV)/.stamp-dev

demo: $(VENV)/.stamp-run
	@sh scripts/demo.sh $(VENV)/bin/leeward demo-release

system-packages:
	@sh scripts/system-packages.sh java postgresql chromium r nspawn

# A new folder each time: the portal of an earlier demo is not overwritten.
demo-portal: $(VENV)/.stamp-portal
	@$(VENV)/bin/leeward serve --demo --folder "$$(mktemp -d $${TMPDIR:-/tmp}/leeward-portal.XXXXXX)" $(PORTAL_ARGS)

# Walks the portal's pages with the system's Chromium and leaves pictures in .cache/portal-pictures.
test-browser: install
	@sh scripts/system-packages.sh chromium
	$(PY) -m tests.portal.browser .cache/portal-pictures

# Some minutes: everything is installed there as the page says; `make test` runs the page too, on a copy of this system.
test-set-up: install
	@sh scripts/system-packages.sh nspawn
	[ -d build/debian-$(DEBIAN) ] || debootstrap --include=systemd-sysv,dbus $(DEBIAN) build/debian-$(DEBIAN)
	$(PY) -m tests.portal.test_set_up build/debian-$(DEBIAN)

lint: install
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict --num-workers $(JOBS) src

test: install system-packages lint
	$(PY) -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

test-interpreted: install
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest $(PYTEST_ARGS) $(INTERPRETED)

studies-small: install
	$(PY) -m pytest tests/studies

studies: install
	$(PY) benchmarks/run_all.py $(STUDIES_ARGS)

pages: install
	$(PY) -m tests.console $(PAGES)

site: install
	$(PY) -m sphinx -q -W --keep-going -b html docs build/site

fuzz: install
	$(PY) -m tests.fuzz $(FUZZ_ARGS)

mutants: install
	$(PY) scripts/mutants.py $(MUTANTS_ARGS)

# Readers, flags, specs and each method once, from wheels alone; Spark and its pandas have none of those versions.
floors:
	uv venv --quiet --clear build/floors
	uv pip install --quiet --python build/floors --resolution lowest-direct --only-binary :all: --no-binary leeward \
	    --editable '.[models,files,omop,queries,portal,notes]'
	uv pip install --quiet --python build/floors pytest hypothesis jsonschema sybil 'pandas==2.2.3'
	build/floors/bin/python -m pytest $(PYTEST_ARGS) $(FLOORS)

lock:
	@requirements/compile.sh $(LOCK_ARGS)

# A path of Numba's own files stays in the machine code: build where the path may be seen.
wheel: install
	$(PY) scripts/build_kernels.py
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean:
	rm -rf .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo-release demo-release.old
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true

distclean: clean
	rm -rf $(VENV)
