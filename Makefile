# make run: install into .venv and build recipes/bert.yaml. make test: each module's tests and a few whole builds, at most 5 minutes
# on two cores. make test-sample: what CI runs of the slow tests (tests/sample.py); make test-left: the slow tests that the last
# sample left out. make test-rest: all slow tests, the portable path (make test-portable), and 200 random programs
# (ONNXBUILD_LAW_PROGRAMS, ONNXBUILD_LAW_S: more of them, longer). make test-all: make test and make test-rest, after make servers,
# which installs what tests run against. make dist: wheel and sdist of the commit in dist/. make docs: the site in build/site/.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Its weights are installed by hand (recipes/models/smollm2.txt); tests/recipes/test_smollm2.py checks it.
BY_HAND := recipes/smollm2.yaml
TESTS := $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: run test test-sample test-left test-rest test-portable test-law test-all servers check bench format golden dist docs clean

run: $(INSTALLED)
	$(BIN)/onnxbuild run recipes/bert.yaml

test: $(INSTALLED)
	ONNXBUILD_EXAMPLES=0.2 $(TESTS) -m "not slow or smoke"

test-all: servers test test-rest

# As root on Debian with apt-get; elsewhere it says what is missing. Tests that miss a program are skipped by name.
servers:
	PYTHON=$(PYTHON) tests/install_servers.sh .servers

# What CI runs: in four commits in a row all slow tests, the portable path and some random programs.
test-sample: $(INSTALLED)
	$(BIN)/python -m tests.sample
	case $$(($$(git rev-list --count HEAD) % 4)) in \
	1) $(MAKE) test-portable ;; 3) $(MAKE) test-law ONNXBUILD_LAW_PROGRAMS=20 ;; esac

test-left: $(INSTALLED)
	$(BIN)/python -m tests.sample --left

test-rest: $(INSTALLED) test-portable test-law
	$(BIN)/python -m tests.sample --all

test-law: $(INSTALLED)
	$(BIN)/python -m tests.attack.law --seed 1 --jobs 2 \
		--programs $${ONNXBUILD_LAW_PROGRAMS:-200} --seconds $${ONNXBUILD_LAW_S:-0}

# What differs on the portable path: locks, the store, the processes of steps, whole builds (docs/decisions/0006-posix.md).
test-portable: $(INSTALLED)
	$(BIN)/python -m pytest -q -p tests.portable tests/adapters/disk tests/adapters/store tests/adapters/test_store_contract.py \
		tests/processes/test_executor.py tests/processes/test_fenced_call.py \
		tests/cli/test_ready_model_builds.py

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/onnxbuild lint $(filter-out $(BY_HAND),$(wildcard recipes/*.yaml))

bench: $(INSTALLED)
	$(BIN)/python benchmarks/uptodate.py
	$(BIN)/python benchmarks/one_leaf.py
	$(BIN)/python benchmarks/cold.py

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The generated files: the schemas and the reference page.
golden: $(INSTALLED)
	$(BIN)/onnxbuild schema --built-in --write schemas/recipe.schema.json
	$(BIN)/onnxbuild schema --built-in --reference docs/recipe.md
	$(BIN)/python -m tools.output_schemas
	$(BIN)/python docs/rooms.py

# The same bytes for the same commit: docs/install.md.
dist: $(INSTALLED)
	$(BIN)/python tools/make_dist.py

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist *.egg-info

# compat: a plain path instead of an import hook, which would cost every start 12 ms.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt \
		--config-settings editable_mode=compat --editable '.[examples,dev]'
	touch $@
