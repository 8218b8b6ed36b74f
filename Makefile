# A thin front of meson; everything real is in meson.build and the scripts named here.

BUILD := build

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	scripts/setup build
	meson setup $(BUILD)

demo: all
	examples/demo.sh

# Everything again under AddressSanitizer and UBSan, with the fuzz corpora, in a folder of its own.
build-asan/build.ninja:
	meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dop_avx2=false

test: all
	scripts/setup test
	$(MAKE) build-asan/build.ninja
	ninja -C build-asan
	tests/run.py

bench: all
	scripts/setup test
	bench/run

fuzz:
	scripts/setup test
	fuzz/run

lint: all
	scripts/setup lint
	scripts/lint

install: all
	meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) build-asan build-fuzz

.PHONY: all demo test bench fuzz lint install clean
