plumb compare "$DATA/xray/xpu.h5" "$DATA/xray/gpu.h5"
