# make run: install into .venv and build recipes/bert.yaml; make test: the whole suite.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test check bench format golden clean

run: $(INSTALLED)
	$(BIN)/onnxbuild run recipes/bert.yaml

test: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/onnxbuild lint recipes/*.yaml
	$(BIN)/python -m pytest -q tests/test_docs.py tests/recipe/test_schema.py

bench: $(INSTALLED)
	$(BIN)/python benchmarks/uptodate.py
	$(BIN)/python benchmarks/one_leaf.py
	$(BIN)/python benchmarks/cold.py

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The generated files: the schema and the reference page.
golden: $(INSTALLED)
	$(BIN)/onnxbuild schema --write schemas/recipe.schema.json
	$(BIN)/onnxbuild schema --reference docs/recipe.md

clean:
	rm -rf $(VENV) build dist *.egg-info

# compat: a plain path instead of an import hook, which would cost every start 12 ms.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt \
		--config-settings editable_mode=compat --editable '.[examples,dev]'
	touch $@
