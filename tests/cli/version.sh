plumb --version
plumb --version --verbose
PLUMB_CPU_MASK=0 plumb --version --verbose | grep SIMD
