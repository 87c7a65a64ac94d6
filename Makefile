# Every target begins with `setup`, which does nothing when nothing has changed.
# PYTHON=3.12 (or a path) picks the interpreter, VENV another folder than .venv, ARGS goes to the tool that is run.

SHELL := /bin/bash
VENV ?= .venv
TIME ?= 60
CELLS ?= 3.11 3.12 3.13 3.14 3.15 twins
python := $(VENV)/bin/python
typed := $(wildcard src tests scripts benchmarks examples docs/conf.py)
c := 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h' 'examples/*.c' 'benchmarks/*.c' ':!*_slots.h'
windows := $(wildcard src/vmscope/win32.py src/vmscope/*/_windows.py tests/windows)

export VENV PYTHON
export VMSCOPE_WERROR ?= 1
.DEFAULT_GOAL := help

.PHONY: help agents setup test fuzz test-windows matrix freethreaded pythons cpython lint format types bench docs tables demo jdks prometheus clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## build everything into .venv: locked dependencies, the extension, a JDK if there is none
	@scripts/setup

test: setup ## the whole test suite; ARGS="-k name" for a part
	$(python) -m pytest -n 2 $(ARGS)

fuzz: setup ## coverage-guided fuzzing of what reads others' bytes, with clang: TIME=60 seconds each; ARGS names some
	$(python) -m tests.fuzz --seconds=$(TIME) $(ARGS)

test-windows: setup ## the Windows suite, on a Windows Python and with a Windows JRE, under Wine
	@scripts/windows test $(ARGS)

matrix: setup ## the unit and property tests, and native agents, on each of 3.11 to 3.15 that is found or fetched, and the twins
	@scripts/matrix $(ARGS) $(CELLS)

freethreaded: setup ## CPython 3.13 without a GIL, built once with and without ThreadSanitizer, and the tests on it
	@scripts/freethreaded && scripts/freethreaded tsan
	$(python) -m pytest -q tests/integration/test_free_threaded.py

pythons: setup ## CPython 3.14 and 3.15 from Debian's packages, and the tests of what is done to them from outside
	@scripts/pythons 3.14 3.15
	@for version in 3.14 3.15; do PYTHON=$$version VENV=build/python-$$version scripts/setup || exit 1; done
	$(python) -m pytest -q tests/integration/test_attach_remote.py

cpython: setup ## CPython's own tests of sys, signals, threads, ... under `vmscope run` and under `python`: no new failure
	$(python) scripts/cpython_tests.py $(ARGS)

prometheus: setup ## prometheus_client's own tests with the drop-in, for its last four minor versions, fetched by pip
	$(python) scripts/prometheus_suite.py $(ARGS)

lint: setup ## ruff: rules and format; clang-format and cppcheck for C
	$(python) -m ruff check
	$(python) -m ruff format --check
	git ls-files $(c) | xargs $(dir $(python))clang-format --dry-run -Werror
	@if type cppcheck >/dev/null; then scripts/cppcheck; else echo "no cppcheck: the C is not analysed"; fi

format: setup ## let ruff and clang-format put things right
	$(python) -m ruff check --fix
	$(python) -m ruff format
	git ls-files $(c) | xargs $(dir $(python))clang-format -i

types: setup ## mypy, strict, tests included
	$(python) -m mypy $(typed)
	$(python) -m mypy --platform win32 --no-warn-unreachable --follow-imports silent $(windows)

bench: ## the benchmarks, as ratios in one run
	@scripts/setup bench
	$(python) -m benchmarks $(ARGS)

docs: ## the documentation, into docs/_build; a warning is an error, and so is a word of scripts/style_words.toml
	@scripts/setup docs
	$(python) scripts/style.py
	$(python) scripts/tables.py --check
	$(python) scripts/jvmti_slots.py --check
	$(python) -m sphinx -W --keep-going -q -b html docs docs/_build/html

tables: setup ## write the documentation's tables anew from those in the code
	$(python) scripts/tables.py
	$(python) scripts/jvmti_slots.py
	$(python) scripts/jni_slots.py

demo: setup ## a Python service and a JVM, seen by vmscope and by the JDK's own tools
	$(python) examples/demo.py $(ARGS)

agents: setup ## agents for JVMs that others wrote, from Debian's packages, and the tests that load them
	@scripts/agents
	$(python) -m pytest -q tests/integration/test_other_agents.py

jdks: setup ## JDK 17 and 21 from PyPI, where the machine lacks them, for the tests that compare versions
	@scripts/jdks 17 21

clean: ## remove everything that was built or installed here
	rm -rf .venv build dist docs/_build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests scripts benchmarks examples docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	rm -f src/vmscope/native/_native*.so src/vmscope/native/_native*.pyd
