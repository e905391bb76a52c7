# drawstring: `make help` lists what there is. Every target does the set-up that it needs.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python
ARGS ?=
HISTORIES ?= 3
EXAMPLES ?= 100000
SEED ?= $(shell date +%s)
WORKERS ?= 4
REFEREES ?= 2
SEEDS ?= 3
STEPS ?= 12
STORE ?= memory
ENGINE ?= drawstring
# Tests start hundreds of processes: what Python compiled for one is kept for the others, whatever the caller set.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 22

.PHONY: setup
setup: ## create .venv from the lock file; quick when nothing changed
	@scripts/venv.sh .venv requirements/dev.lock --project
	@$(PY) scripts/azurite.py install
	@$(PY) scripts/kafka_broker.py install

.PHONY: test
test: setup ## run the tests in four processes, one of them with Spark (ARGS="-k name" goes to pytest; WORKERS=0: in one)
	@$(PY) -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder -m "not long" $(ARGS)

.PHONY: test-long
test-long: setup ## what `make test` leaves out: more cases, all combinations, every step, more examples
	@$(PY) -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --hypothesis-profile=full -m "long or scaled or hypothesis" $(ARGS)

.PHONY: fuzz
fuzz: setup ## damage many files in new ways: EXAMPLES of them, drawn by SEED
	@FUZZ_EXAMPLES=$(EXAMPLES) FUZZ_SEED=$(SEED) $(PY) -m pytest tests/fuzz $(ARGS)
	@$(PY) -m pytest --hypothesis-profile=search tests/formats $(ARGS)

.PHONY: sim
sim: setup ## random lives of tables: deaths, pauses, power cuts, full disks, many writers (SEEDS=20 STEPS=12 SEED=7 STORE=memory, local, s3, gcs or azure)
	@SIM_STORE=$(STORE) SIM_SEED=$(SEED) SIM_SEEDS=$(SEEDS) SIM_STEPS=$(STEPS) $(PY) -m pytest -n $(WORKERS) tests/sim $(ARGS)

.PHONY: check
check: lint types contracts test ## lint, format check, types, import contracts, tests

.PHONY: lint
lint: setup ## ruff: rules and format
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

.PHONY: fmt
fmt: setup ## format the code and fix what ruff can fix
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .

.PHONY: types
types: setup ## mypy, strict
	@$(PY) -m mypy

.PHONY: contracts
contracts: setup ## which room may import which
	@.venv/bin/lint-imports --no-logo --no-cache

.PHONY: demo
demo: setup ## the main job on real data (without a JDK: on the embedded engine)
	@if home="$$($(PY) scripts/jdk.py)"; then \
	    JAVA_HOME="$$home" $(PY) -m demo --engine spark $(ARGS); \
	else \
	    echo "The demo runs on the embedded engine instead."; \
	    $(PY) -m demo --engine local $(ARGS); \
	fi

.PHONY: rooms
rooms: setup ## draw the picture of the rooms for the architecture page, from the imports
	@$(PY) scripts/rooms.py > docs/rooms.svg

.PHONY: docs
docs: ## build the documentation site into build/docs, strictly, and check its links
	@scripts/venv.sh .venv-docs requirements/docs.lock --project
	@rm -rf build/docs build/doctrees  # pages that are not read again would not warn again
	@.venv-docs/bin/sphinx-build --quiet --fail-on-warning --keep-going -b html -d build/doctrees docs build/docs
	@.venv-docs/bin/python scripts/check_site.py build/docs
	@echo "the site is in build/docs: open build/docs/index.html"

.PHONY: setup-bench
setup-bench:
	@scripts/venv.sh .venv-bench requirements/bench.lock --project

.PHONY: setup-pypaimon
setup-pypaimon: ## pypaimon, for the suite of layouts: it wants an older pyarrow
	@scripts/venv.sh .venv-pypaimon requirements/pypaimon.lock

.PHONY: bench
bench: setup-bench ## both engines beside what a user would pick instead
	@home="$$(.venv-bench/bin/python scripts/jdk.py)"; [ -n "$$home" ] && export JAVA_HOME="$$home"; \
	    .venv-bench/bin/python -m bench $(ARGS)

.PHONY: setup-interop
setup-interop: setup ## PySpark 3.5 and Apache Hudi's bundle, to compare with
	@scripts/venv.sh .venv-referee requirements/referee.lock
	@if home="$$($(PY) scripts/jdk.py --newest 21)"; then \
	    JAVA_HOME="$$home" .venv-referee/bin/python scripts/hudi_bundle.py; \
	fi

.PHONY: interop
interop: setup-interop ## real Apache Hudi and drawstring read each other's tables and go on with them (HISTORIES=50: random ones; REFEREES=0: in one process)
	@HISTORIES=$(HISTORIES) HUDI_METADATA=true $(PY) -m pytest -n $(REFEREES) --dist worksteal tests/interop $(ARGS)

.PHONY: interop-short
interop-short: setup-interop ## the part of interop that takes some minutes, Hudi's metadata table off where it is not tested
	@$(PY) -m pytest -n $(REFEREES) --dist worksteal tests/interop -m "not long" $(ARGS)

.PHONY: conformance
conformance: setup-interop ## Apache Hudi's own SQL tests (SOURCES=FOLDER has its .scala files; ENGINE=hudi: on Apache Hudi)
	@mkdir -p build
	@if [ "$(ENGINE)" = hudi ]; then home="$$($(PY) scripts/jdk.py --newest 21)"; \
	    HUDI_BUNDLE_JAR="$$(JAVA_HOME="$$home" .venv-referee/bin/python scripts/hudi_bundle.py | tail -1)" \
	    JAVA_HOME="$$home" ENGINE=hudi .venv-referee/bin/python -m tests.conformance build/conformance-hudi.json $$(find "$(SOURCES)" -name 'Test*.scala' | sort); \
	else \
	    $(PY) -m tests.conformance build/conformance-drawstring.json $$(find "$(SOURCES)" -name 'Test*.scala' | sort); \
	fi

.PHONY: test-spark-oldest
test-spark-oldest: ## the tests on the lowest versions that pyproject.toml allows, PySpark 4.0 among them
	@scripts/venv.sh .venv-oldest requirements/oldest.lock --project
	@.venv-oldest/bin/python scripts/azurite.py install
	@.venv-oldest/bin/python scripts/kafka_broker.py install
	@home="$$(.venv-oldest/bin/python scripts/jdk.py --newest 21)"; [ -n "$$home" ] && export JAVA_HOME="$$home"; \
	    .venv-oldest/bin/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder -m "not long" -o filterwarnings=default $(ARGS)

.PHONY: lock
lock: setup ## write the lock files anew (ARGS=--upgrade for the newest versions)
	@scripts/lock.sh $(ARGS)

.PHONY: clean
clean: ## remove the environments and the caches
	rm -rf .venv .venv-bench .venv-docs .venv-oldest .venv-pypaimon .venv-referee .tools .azurite
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
