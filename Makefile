# Everything a contributor or CI runs. `make` alone prints what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

# CI must build exactly what the lock file says.
LOCKED := $(if $(CI),--locked)
PYTHON ?= python3
# Arguments of `make run` and `make bench`.
ARGS ?=
# Seconds that `make fuzz` spends on each target.
FUZZ_SECONDS ?= 60

# Where `make bench-headline` writes its JSON lines.
OUT ?= target/rivals/headline.jsonl

# Where cargo builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)

VENV_PYTHON := .venv/bin/python
# Where `make python` installs the package.
PACKAGE_VENV := .venv-python
# Where the tests find the package, with the library that cargo has built.
PACKAGE_PATH := target/python
PACKAGE_LIBRARY := libtersecades_python.$(if $(filter Darwin,$(shell uname)),dylib,so)

RIVALS_PYTHON := target/rivals/venv/bin/python
RIVALS_DATA := target/rivals/data
FLINK_PYTHON := target/rivals/flink/bin/python
FLINK_JARS := target/rivals/jars
# Millions of rows that the front ends are compared on.
FRONT_END_MILLIONS ?= 50

step = @printf '\n==> %s\n' '$(1)'
skip = printf '\n*** SKIPPED: %s\n' '$(1)'

# What measures ours beside others.
RIVAL_BENCHES := bench-headline bench-scans bench-narrow bench-cardinality bench-stream-engines \
  bench-streams bench-store bench-frontends bench-lossy bench-partitions bench-choice

.PHONY: $(RIVAL_BENCHES)
.PHONY: help run build test python bench bench-record bench-render bench-record-all rivals rivals-flink fuzz fuzz-short crash fmt clean venv
.PHONY: check-format check-lints check-docs check-tidy check-tables check-dependencies
.PHONY: test-workspace test-oracle test-python test-portable

help: ## print this list
	@awk -F '## ' '/^[a-z-]+:/ { split($$1, name, ":") } \
	  /^[a-z -]+[:a-z -]*## / { printf "  make %-14s %s\n", name[1], $$2 }' Makefile

run: ## build and run the demo: a generated stream through the paper's two queries
	cargo run --release $(LOCKED) -p tersecades-cli --no-default-features -- demo $(ARGS)

# The linker keeps one of equal functions, where it can.
build: ## build the command line with everything in it, small
	@mkdir -p $(TARGET)/release
	@fold='-C link-arg=-Wl,--icf=all'; \
	echo 'fn main() {}' | rustc --crate-name probe $$fold -o $(TARGET)/probe - 2>/dev/null || fold=; \
	set -x; cargo rustc --profile dist $(LOCKED) -p tersecades-cli --bin tersecades --features editor -- $$fold
	cp $(TARGET)/dist/tersecades $(TARGET)/release/tersecades
	@strip $(TARGET)/release/tersecades || $(call skip,no strip: the program keeps its symbols)

test: check-format check-lints check-docs check-tidy check-dependencies venv test-workspace \
  test-python test-portable check-tables fuzz-short ## everything that CI runs
	@printf '\nAll steps passed.\n'

check-format:
	$(call step,format)
	cargo fmt --all --check

check-lints:
	$(call step,lints)
	cargo clippy --workspace --all-targets $(LOCKED) -- -D warnings
	cargo clippy --workspace --exclude tersecades-python --exclude tersecades-sql --no-default-features $(LOCKED) -- -D warnings

# After the lints: both read the same metadata of the dependencies.
check-docs:
	$(call step,documentation builds without warnings)
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet $(LOCKED)

check-tidy:
	$(call step,style)
	cargo xtask tidy

check-dependencies:
	$(call step,dependencies: licences and bans and sources)
	@if cargo deny --version >/dev/null 2>&1; then \
	  cargo deny check bans licenses sources; \
	else \
	  $(call skip,cargo-deny is not installed (cargo install cargo-deny)); \
	fi

test-workspace:
	$(call step,tests: units and suites and documentation examples)
	@python="$${TERSECADES_PYTHON:-}"; \
	if [ -z "$$python" ] && [ -x $(VENV_PYTHON) ]; then python="$$PWD/$(VENV_PYTHON)"; fi; \
	if [ -n "$$python" ]; then export TERSECADES_PYTHON="$$python"; fi; \
	cargo test --workspace $(LOCKED)
	cargo test --workspace $(LOCKED) --features tersecades-store/shuttle --test interleaving

# The tests of the workspace run a quarter as many, 20,600.
test-oracle: ## compare 82,400 random queries over random streams with the naive engine
	$(call step,random queries over messy streams beside the naive engine)
	@TERSECADES_ORACLE_TIMES=4 cargo test --workspace $(LOCKED) --test engine -- --nocapture \
	  $(addsuffix ::,oracle joins rows partitions updates restarts in_order shared_panes) \
	  | grep -E 'cases|FAILED|panicked' | tee target/oracle.txt
	@awk -F ': ' '/ cases / { cases += $$2 } END { print cases " cases in all" }' target/oracle.txt

# The library of the development profile, so that nothing is built twice.
test-python: venv ## test the Python package: answers and types and documentation
	$(call step,tests of the Python package)
	@python="$${TERSECADES_PYTHON:-$$PWD/$(VENV_PYTHON)}"; \
	if ! "$$python" -c 'import hypothesis, mypy, pandas, polars, pyarrow, pytest' 2>/dev/null; then \
	  $(call skip,no Python with what tests/requirements.txt names: the package is not tested); \
	else \
	  cargo build --workspace --lib --bins --tests $(LOCKED); \
	  rm -rf $(PACKAGE_PATH); \
	  mkdir -p $(PACKAGE_PATH); \
	  cp -R crates/tersecades-python/python/tersecades $(PACKAGE_PATH)/; \
	  ln -s ../../debug/$(PACKAGE_LIBRARY) $(PACKAGE_PATH)/tersecades/_native.abi3.so; \
	  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$$PWD/$(PACKAGE_PATH)" "$$python" -m pytest -q $(ARGS); \
	fi

# What CPUs without AVX2 run; every other CPU would never execute it otherwise.
test-portable:
	$(call step,tests on the portable kernels)
	TERSECADES_KERNELS=portable cargo test --workspace --exclude tersecades-python $(LOCKED) --lib --test conformance --test wire -- --skip cascades_conform

# After the tests, which build what the generator needs.
check-tables:
	$(call step,generated tables in the documentation)
	cargo xtask docs --check

python: ## build the Python package and install it into .venv-python
	$(call step,Python package)
	@[ -x $(PACKAGE_VENV)/bin/python ] || $(PYTHON) -m venv $(PACKAGE_VENV)
	$(PACKAGE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --only-binary :all: 'maturin>=1.9,<2'
	rm -rf target/wheels
	$(PACKAGE_VENV)/bin/maturin build --release $(LOCKED) --out target/wheels
	$(PACKAGE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --force-reinstall --no-deps target/wheels/tersecades-*.whl
	@$(PACKAGE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --only-binary :all: pyarrow polars || \
	  $(call skip,no pyarrow and no Polars: results stay in tables of the package)

venv: ## Python with what answers and bytes are compared with, in .venv
	$(call step,Python environment of the comparison)
	@if [ -n "$${TERSECADES_PYTHON:-}" ]; then \
	  echo "TERSECADES_PYTHON=$$TERSECADES_PYTHON"; \
	elif [ .venv/installed -nt tests/requirements.txt ]; then \
	  echo '.venv is up to date'; \
	elif rm -rf .venv && $(PYTHON) -m venv .venv && $(VENV_PYTHON) -m pip install --quiet \
	    --disable-pip-version-check --only-binary :all: -r tests/requirements.txt; then \
	  touch .venv/installed; \
	else \
	  rm -rf .venv; \
	  $(call skip,no Python environment: answers and bytes are not compared with others); \
	fi

bench: ## run the benchmarks (ARGS=...)
	cargo run --release $(LOCKED) --manifest-path bench/Cargo.toml -- $(ARGS)
	@printf '\nBeside others: make %s\n' '$(RIVAL_BENCHES)'

# What `make bench-record` runs when ARGS name nothing else.
RECORDED ?= limits lines add search sum encode kernels bitpack waist execution widths pays selectivity cardinality designs
HISTORY ?= bench/history.jsonl

bench-record: ## run the benches of docs/benchmarks.md and append them to its history (ARGS=...)
	cargo run --release $(LOCKED) -p tersecades-bench -- $(or $(ARGS),$(RECORDED)) --record $(HISTORY)

# Everything that docs/benchmarks.md shows, in parts for quiet stretches; see `PART`. Flink and
# Bytewax take as long as all others together: they are recorded where they are asked for.
PART ?= 1 2
STREAMS_RECORDED := --rows 1000000 --rows-compared 100000 --rounds 1 --repetitions 1 --limit 30
part = $(if $(filter $(1),$(PART)),+@printf '\n==> %(%T)T %s\n' -1 '$(2) $(3)'; $(MAKE) --no-print-directory $(2) ARGS='$(3)' || $(call skip,not recorded: $(2) $(3)))
bench-record-all: ## record docs/benchmarks.md (PART=1: ours, 2: beside engines of tables, 3: of streams)
	$(call part,1,bench-record,$(RECORDED))
	$(call part,1,bench-record,queries --data $(RIVALS_DATA))
	$(call part,1,bench-record,apart --data $(RIVALS_DATA) --threads 2)
	$(call part,1,bench-record,layout continuous standing --data $(RIVALS_DATA))
	$(call part,1,bench-lossy,--record $(HISTORY))
	$(call part,2,bench-headline,--record $(HISTORY) --rounds 2)
	$(call part,2,bench-headline,--record $(HISTORY) --threads 2 --rounds 2 --repetitions 4)
	$(call part,2,bench-headline,--record $(HISTORY) --suite parquet --rounds 2 --repetitions 4)
	$(call part,2,bench-headline,--record $(HISTORY) --suite parquet --threads 2 --rounds 2 --repetitions 4)
	$(call part,2,bench-scans,--record $(HISTORY) --rounds 2)
	$(call part,2,bench-narrow,--record $(HISTORY))
	$(call part,3,bench-stream-engines,--record $(HISTORY) --rounds 1 --repetitions 1)
	$(call part,3,bench-stream-engines,--record $(HISTORY) --rounds 1 --repetitions 1 --threads 2)
	$(call part,3,bench-streams,--record $(HISTORY) $(STREAMS_RECORDED))
	$(call part,3,bench-streams,--record $(HISTORY) $(STREAMS_RECORDED) --threads 2)
	$(MAKE) --no-print-directory bench-render

bench-render: ## write docs/benchmarks.md and docs/plots from the history
	cargo run --release $(LOCKED) -p tersecades-bench -- render --record $(HISTORY)

bench-headline: rivals ## measure the queries against their rivals (OUT=FILE)
	cargo build --release $(LOCKED) -p tersecades-bench
	@mkdir -p '$(dir $(OUT))'
	$(RIVALS_PYTHON) -B bench/rivals/headline.py --data $(RIVALS_DATA) --out '$(OUT)' \
	  --bench 'cargo run --release --quiet $(LOCKED) -p tersecades-bench --' $(ARGS)

# Flink is left out where `make rivals-flink` has not put it.
bench-stream-engines: rivals $(RIVALS_DATA)/pingmesh_1m.json $(RIVALS_DATA)/pingmesh_5m.json
bench-stream-engines: ## measure the queries beside Flink and Bytewax (OUT=FILE)
	cargo build --release $(LOCKED) -p tersecades-bench
	@mkdir -p '$(dir $(OUT))'
	@[ -x $(FLINK_PYTHON) ] || $(call skip,no Flink: make rivals-flink installs it)
	for suite in bytewax $(if $(wildcard $(FLINK_PYTHON)),flink); do \
	  $(RIVALS_PYTHON) -B bench/rivals/headline.py --suite $$suite --data $(RIVALS_DATA) \
	    --flink $(FLINK_PYTHON) --jars $(FLINK_JARS) --out '$(OUT)' \
	    --bench 'cargo run --release --quiet $(LOCKED) -p tersecades-bench --' $(ARGS); \
	done

bench-narrow: rivals ## measure what an eighth of the data buys a peer
	$(RIVALS_PYTHON) -B bench/rivals/narrow_where.py \
	  --bench 'cargo run --release --quiet $(LOCKED) -p tersecades-bench --' $(ARGS)

bench-cardinality: rivals ## measure grouping by integers beside DuckDB and Polars
	cargo build --release $(LOCKED) -p tersecades-bench
	$(RIVALS_PYTHON) -B bench/rivals/cardinality.py \
	  --bench 'cargo run --release --quiet $(LOCKED) -p tersecades-bench --' $(ARGS)

# Real columns where TERSECADES_DATA names them.
bench-partitions: ## measure reads in the middle of compressed units beside zlib, which decodes from the start
	cargo build --release $(LOCKED) -p tersecades-bench
	$(PYTHON) -B bench/rivals/partitions.py --bench $(TARGET)/release/tersecades-bench

bench-lossy: target/rivals/installed ## measure bounded loss beside Parquet, pco and the zfp library
	cargo build --release $(LOCKED) -p tersecades-bench
	$(RIVALS_PYTHON) -B bench/rivals/lossy.py target/rivals/lossy \
	  --bench 'cargo run --release --quiet $(LOCKED) -p tersecades-bench --' $(ARGS)

bench-choice: target/rivals/installed ## measure sizes of real data sets beside Parquet, Vortex and pco
	@mkdir -p target/rivals/choice
	cargo run --release $(LOCKED) -p tersecades-bench -- choice --export target/rivals/choice \
	  -o target/rivals/choice/ours.jsonl >target/rivals/choice/columns.txt
	$(RIVALS_PYTHON) -B bench/rivals/choice.py target/rivals/choice --ours target/rivals/choice/ours.jsonl

bench-scans: rivals ## measure scans of single columns against a rival's (OUT=FILE)
	cargo build --release $(LOCKED) -p tersecades-bench
	@mkdir -p '$(dir $(OUT))'
	$(RIVALS_PYTHON) -B bench/rivals/headline.py --suite scans --data $(RIVALS_DATA) --out '$(OUT)' \
	  --bench 'cargo run --release --quiet $(LOCKED) -p tersecades-bench --' $(ARGS)

# The streaming classics; with Flink where `make rivals-flink` has put it.
FLINK_ARTEFACTS := org.apache.flink:flink-sql-parquet:2.3.0 org.apache.hadoop:hadoop-client-api:3.3.6 \
  org.apache.hadoop:hadoop-client-runtime:3.3.6 com.github.luben:zstd-jni:1.5.6-6

bench-streams: target/rivals/installed
bench-streams: ## measure Yahoo's benchmark and Nexmark beside Flink and DuckDB (OUT=FILE)
	cargo build --release $(LOCKED) -p tersecades-cli -p tersecades-bench
	@mkdir -p '$(dir $(OUT))' $(RIVALS_DATA)
	@[ -x $(FLINK_PYTHON) ] || $(call skip,no Flink: make rivals-flink installs it)
	$(RIVALS_PYTHON) -B bench/rivals/streams.py --program $(TARGET)/release/tersecades \
	  --bench $(TARGET)/release/tersecades-bench --data $(RIVALS_DATA) --out '$(OUT)' \
	  $(if $(wildcard $(FLINK_PYTHON)),--flink $(FLINK_PYTHON) --jars $(FLINK_JARS)) $(ARGS)

bench-store: target/rivals/installed
bench-store: ## measure the store, fjall and RocksDB on the same rows (ARGS: options of the RocksDB script)
	cargo run --release $(LOCKED) -p tersecades-bench --features fjall -- lsm --queries history,ingest,rival
	$(RIVALS_PYTHON) -B bench/rivals/rocksdb_rows.py $(or $(ARGS),--codecs zstd)

rivals-flink: ## install Flink for the streaming classics (needs Java 17 and Maven)
	$(PYTHON) -m venv target/rivals/flink
	$(FLINK_PYTHON) -m pip install --quiet --disable-pip-version-check 'setuptools<80' wheel \
	  -r bench/rivals/requirements-flink.txt
	for artefact in $(FLINK_ARTEFACTS); do \
	  mvn -q dependency:copy -Dartifact=$$artefact -DoutputDirectory=$(FLINK_JARS); \
	done

bench-frontends: $(RIVALS_DATA)/pingmesh_$(FRONT_END_MILLIONS)m.json
bench-frontends: python rivals ## measure what Python and SQL add to Rust's builder (OUT=FILE)
	cargo build --release $(LOCKED) -p tersecades-bench
	$(RIVALS_PYTHON) -m pip install --quiet --disable-pip-version-check \
	  --force-reinstall --no-deps target/wheels/tersecades-*.whl
	@mkdir -p '$(dir $(OUT))'
	$(RIVALS_PYTHON) -B bench/rivals/front_ends.py --out '$(OUT)' --python $(RIVALS_PYTHON) \
	  --data $(RIVALS_DATA)/pingmesh_$(FRONT_END_MILLIONS)m.arrow \
	  --bench 'cargo run --release --quiet $(LOCKED) -p tersecades-bench --' $(ARGS)

rivals: $(RIVALS_DATA)/pingmesh_10m.json $(RIVALS_DATA)/integers.arrow

$(RIVALS_DATA)/integers.arrow: bench/rivals/gen_integers.py target/rivals/installed
	$(RIVALS_PYTHON) -B bench/rivals/gen_integers.py --out $(RIVALS_DATA)
	rm -f $(RIVALS_DATA)/scan_D*.vortex

# The generator writes this file last.
$(RIVALS_DATA)/pingmesh_%m.json: bench/rivals/gen_pingmesh.py target/rivals/installed
	$(RIVALS_PYTHON) -B bench/rivals/gen_pingmesh.py --rows $*000000 --out $(RIVALS_DATA)
	rm -f $(RIVALS_DATA)/pingmesh_$*m.vortex

target/rivals/installed: bench/rivals/requirements.txt
	rm -rf target/rivals/venv
	$(PYTHON) -m venv target/rivals/venv
	$(RIVALS_PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	  -r bench/rivals/requirements.txt
	touch target/rivals/installed

fuzz: ## fuzz each target for FUZZ_SECONDS, without cargo-fuzz by the small fuzzer of the tests
	$(call step,fuzz targets: $(FUZZ_SECONDS) s each)
	@if cargo +nightly fuzz --version >/dev/null 2>&1; then \
	  for target in $$(cargo +nightly fuzz list --fuzz-dir fuzz/libfuzzer); do \
	    echo "-- $$target"; \
	    cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer "$$target" -- \
	      -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1; \
	  done; \
	else \
	  echo 'without nightly and cargo-fuzz (cargo install cargo-fuzz): mutations without coverage'; \
	  TERSECADES_FUZZ_RUNS=1000000000 TERSECADES_FUZZ_SECONDS=$(FUZZ_SECONDS) \
	    cargo test --release $(LOCKED) -p tersecades-fuzz --test short; \
	fi

# The workspace's tests run the small fuzzer; here only what they cannot.
fuzz-short: ## ten seconds of each target under cargo-fuzz, where it is installed
	@if cargo +nightly fuzz --version >/dev/null 2>&1; then \
	  $(MAKE) --no-print-directory fuzz FUZZ_SECONDS=10; \
	else \
	  $(call skip,no nightly toolchain with cargo-fuzz: the tests ran the targets without coverage); \
	fi

# Long forms of the store's crash tests: all kinds of loss with several seeds, every bit, many operations, kills and power cuts.
CRASH_SEEDS ?= 4
MODEL_OPS ?= 100000000
KILLS ?= 1000
POWER_CUTS ?= 500
crash: ## kills and power cuts and damage of the store, the long form
	$(call step,crash tests of the store)
	TERSECADES_CRASH_SEEDS=$(CRASH_SEEDS) TERSECADES_MODEL_OPS=$(MODEL_OPS) \
	  TERSECADES_KILLS=$(KILLS) TERSECADES_POWER_CUTS=$(POWER_CUTS) \
	  cargo test --release $(LOCKED) -p tersecades-store --test crash

fmt: ## format the sources and regenerate the tables
	cargo fmt --all
	cargo xtask docs

clean: ## remove everything that was built
	cargo clean
	rm -rf .venv .venv-python fuzz/libfuzzer/target
