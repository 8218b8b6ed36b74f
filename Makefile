# A thin front of meson; everything real is in meson.build and the scripts named here. Each target
# installs what it needs when it is root on a Debian system, and builds only what it uses.

BUILD := build
# Warnings are errors for whoever changes plumb (make test WERROR=true; .ci/run says so too), never
# for whoever builds it.
WERROR := false
ASAN := -Dtests=true -Dwerror=$(WERROR) -Db_sanitize=address,undefined -Db_lundef=false \
  -Doptimization=1 -Dop_avx2=false

all:
	scripts/configure build $(BUILD)
	ninja -C $(BUILD)

demo:
	scripts/configure demo $(BUILD)
	ninja -C $(BUILD) demo
	examples/demo.sh

# Everything again under AddressSanitizer and UBSan, with the fuzz corpora, in a folder of its own.
test: test-programs
	tests/run.py

# The C side alone: what needs no PyTorch.
test-c:
	scripts/configure test-c $(BUILD) -Dtests=true
	ninja -C $(BUILD) all tests
	scripts/configure test-c build-asan $(ASAN)
	ninja -C build-asan all tests
	tests/run.py 'unit ' 'asan ' 'cli ' header

# The Python side with PyTorch 2, on Debian 13 and sid; needs root.
test-torch2:
	scripts/test-torch2

# The same tests under other conditions and on other systems, and the packages in use.
test-long:
	scripts/test-long

# Faults planted into right results of many operators: what is missed, what is blamed wrongly.
verdicts:
	scripts/configure test $(BUILD) -Dtests=true
	ninja -C $(BUILD)
	PYTHONPATH=$(BUILD)/python /usr/bin/python3 tests/verdicts/run.py --list

test-programs:
	scripts/configure test $(BUILD) -Dtests=true
	ninja -C $(BUILD) all tests
	scripts/configure test build-asan $(ASAN)
	ninja -C build-asan all tests

bench:
	scripts/configure bench $(BUILD) -Dtests=true
	ninja -C $(BUILD) all tests
	bench/run

fuzz:
	scripts/setup fuzz
	fuzz/run

lint:
	scripts/configure lint $(BUILD) -Dtests=true
	ninja -C $(BUILD)
	scripts/lint

# What people install: Debian packages and a wheel, in dist/.
deb:
	scripts/setup package
	scripts/deb

wheel:
	scripts/setup package
	scripts/wheel

install: all
	meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) build-asan build-fuzz build-arm64 build-compilers build-long build-torch2 dist

.PHONY: all demo test test-c test-torch2 test-long verdicts test-programs bench fuzz lint deb wheel install clean
