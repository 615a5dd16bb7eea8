# Two commands do everything on a fresh machine: `make demo` and `make test`. The rest are their parts.
SHELL := /bin/bash
PRESET ?= release
PYTHON ?= python3
export PYTHON
VENV := .venv/bin

.PHONY: demo test test-full bench install build venv prerequisites gen gen-check asan tsan clean

demo: install            ## builds, installs, runs real models on plugged-in chips, and split over two
	@$(VENV)/python examples/python/demo.py

test: install            ## every test; the last line is a summary
	@$(VENV)/python scripts/run_tests.py

test-full: install       ## also what is long (fuzzers with 100,000 cases)
	@$(VENV)/python scripts/run_tests.py --full

bench: install           ## ratios against PyTorch's CPU in the same process, to build/reports/bench.json
	@$(VENV)/python bench/run.py

install: build           ## wheels from what was built, into .venv
	@$(VENV)/python scripts/wheels.py --install

build: venv
	@scripts/build.sh $(PRESET)

venv: prerequisites
	@scripts/venv.sh

prerequisites:
	@scripts/prerequisites.sh $(PACKAGES)

gen: build               ## writes the generated files again
	@cmake --build build/$(PRESET) --target gen

gen-check: build         ## fails when a generated file is stale
	@cmake --build build/$(PRESET) --target gen-check

asan tsan: prerequisites ## the C++ tests under AddressSanitizer with UBSan, and under ThreadSanitizer
	@scripts/build.sh $@ sanitized && ctest --test-dir build/$@ -L sanitized --output-on-failure -j2

clean:
	rm -rf build dist
