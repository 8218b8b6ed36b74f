"""Mixtures of experts and quantisation of torch_npu, against formulas in PyTorch."""

from typing import Any, Iterator

import torch

from ops.cases_fused import statistic
from ops.harness import Case, case, fixed, ints, randn, uniform


def permute(tokens: torch.Tensor, indices: torch.Tensor, num_out_tokens: Any = None, padded_mode: bool = False) -> Any:
    per_token = indices.shape[1] if indices.dim() > 1 else 1
    order = torch.sort(indices.reshape(-1), stable=True)[1]
    where = torch.argsort(order).int()
    return tokens.index_select(0, (order[:num_out_tokens] if num_out_tokens else order) // per_token), where


def unpermute(tokens: torch.Tensor, where: torch.Tensor, probs: Any = None) -> torch.Tensor:
    rows = torch.cat([tokens, torch.zeros(where.numel(), tokens.shape[1], dtype=tokens.dtype)]).index_select(0, where)
    if probs is None:
        return rows
    return (rows.reshape(*probs.shape, -1) * probs.unsqueeze(-1)).sum(1)


def tokens() -> Iterator[Case]:
    for indices in (ints(0, 4, 5, 2), ints(0, 4, 5), ints(0, 2, 5, 3, dtype=torch.int32)):
        yield case("NPU.npu_moe_token_permute", randn(5, 3), indices, ref=permute)
        yield case("NPU.npu_moe_token_permute", randn(5, 3), indices, num_out_tokens=4, ref=permute)
        n = indices.numel()
        where = torch.randperm(n, generator=torch.Generator().manual_seed(1)).int()
        yield case("NPU.npu_moe_token_unpermute", randn(n, 3), where, ref=unpermute)
        yield case("NPU.npu_moe_token_unpermute", randn(n, 3), where, uniform(0, 1, 5, n // 5), ref=unpermute)
        yield case("NPU.npu_moe_token_unpermute", randn(n - 2, 3), where, uniform(0, 1, 5, n // 5), ref=unpermute)
    yield case("NPU.npu_moe_token_permute", randn(5, 3), ints(0, 4, 4, 2), refused=True)
    yield case("NPU.npu_moe_token_permute", randn(5, 3), ints(0, 4, 5, 2), padded_mode=True, refused=True)
    yield case("NPU.npu_moe_token_unpermute", randn(6, 3), ints(0, 6, 6), randn(4, 2), refused=True)
    yield case("NPU.npu_moe_token_unpermute", randn(6, 3), ints(-3, -1, 6), refused=True)


def init_routing(x: torch.Tensor, row: torch.Tensor, expert: torch.Tensor, active: int) -> Any:
    n, k = expert.shape
    sorted_, order = torch.sort(expert.reshape(-1), stable=True)
    source = row.reshape(-1)[order].long()
    to = torch.zeros(n * k, dtype=torch.int32)
    to[source] = torch.arange(n * k, dtype=torch.int32)
    return x[source % n][:min(active, n) * k], to, sorted_.int()


def finalize(rows: torch.Tensor, skip1: Any, skip2: Any, bias: Any, scales: Any, to: torch.Tensor, expert: Any,
             drop_pad_mode: int = 0) -> torch.Tensor:
    n, k = scales.shape
    out = torch.zeros(n, rows.shape[1], dtype=rows.dtype)
    for i in range(n):
        total = sum(scales[i, j] * (rows[to[j * n + i]] + (0 if bias is None else bias[expert[i, j]]))
                    for j in range(k))
        out = torch.cat([out[:i], total[None], out[i + 1:]])
    return out + (0 if skip1 is None else skip1) + (0 if skip2 is None else skip2)


def routing() -> Iterator[Case]:
    n, k = 4, 3
    row = torch.arange(n * k, dtype=torch.int32).reshape(k, n).t().contiguous()
    expert = ints(0, 5, n, k, dtype=torch.int32)
    for active in (4, 2, 9, 0):
        yield case("NPU.npu_moe_init_routing", randn(n, 5), row, expert, active, ref=init_routing)
    yield case("NPU.npu_moe_init_routing", randn(n, 5), row + 20, expert, 4, refused=True)
    yield case("NPU.npu_moe_init_routing", randn(n + 1, 5), row, expert, 4, refused=True)
    yield case("NPU.npu_moe_compute_expert_tokens", fixed([0, 0, 1, 3, 3], torch.int32), 5,
               ref=lambda s, e: torch.tensor([int((s <= i).sum()) for i in range(e)], dtype=torch.int32))
    to = torch.randperm(n * k, generator=torch.Generator().manual_seed(2)).int()
    args = randn(n * k, 5), randn(n, 5), randn(n, 5), randn(5, 5), randn(n, k), to, expert
    yield case("NPU.npu_moe_finalize_routing", *args, ref=finalize)
    yield case("NPU.npu_moe_finalize_routing", args[0], args[1], None, None, args[4], to, None, ref=finalize)
    yield case("NPU.npu_moe_finalize_routing", *args, 1, refused=True)
    yield case("NPU.npu_moe_finalize_routing", args[0][:5], *args[1:], refused=True)


def grouped(x: Any, weight: Any, bias: Any = None, group_list: Any = None, group_list_type: int = 0, **_: Any) -> Any:
    if group_list is None:
        return [a @ w + (0 if bias is None else bias[i]) for i, (a, w) in enumerate(zip(x, weight))]
    ends = torch.as_tensor(group_list)
    ends = ends.cumsum(0) if group_list_type else ends
    matrices = weight[0] if len(weight) == 1 else weight
    vectors = None if bias is None else bias[0] if len(bias) == 1 else bias
    starts = [0] + ends.tolist()[:-1]
    return [torch.cat([x[0][a:b] @ matrices[i] + (0 if vectors is None else vectors[i])
                       for i, (a, b) in enumerate(zip(starts, ends.tolist()))])]


def products() -> Iterator[Case]:
    name = "NPU.npu_grouped_matmul"
    yield case(name, [randn(3, 4), randn(2, 5)], [randn(4, 6), randn(5, 2)], ref=grouped)
    yield case(name, [randn(3, 4), randn(2, 5)], [randn(4, 6), randn(5, 2)], bias=[randn(6), randn(2)], ref=grouped)
    for ends in ([2, 2, 7], torch.tensor([1, 4, 7])):
        yield case(name, [randn(7, 4)], [randn(3, 4, 5)], group_list=ends, split_item=3, group_type=0, ref=grouped)
    yield case(name, [randn(7, 4)], [randn(4, 5), randn(4, 5)], bias=[randn(5), randn(5)], group_list=[3, 7],
               split_item=2, group_type=0, ref=grouped)
    yield case(name, [randn(7, 4)], [randn(3, 4, 5)], bias=[randn(3, 5)], group_list=torch.tensor([2, 0, 5]),
               group_list_type=1, split_item=3, group_type=0, ref=grouped)
    for kwargs in ({"group_list": [2, 8]}, {"group_list": [5, 3]}, {"group_list": [2, 5]},
                   {"group_list": [3, 7], "group_type": 2}, {"group_list": [3, 7], "scale": [randn(5)]}):
        yield case(name, [randn(7, 4)], [randn(2, 4, 5)], split_item=3, refused=True, **kwargs)
    yield case(name, [randn(7, 4)], [randn(4, 5), randn(4, 5)], refused=True)
    for v2 in (False, True):
        yield case("NPU.npu_gmm_v2" if v2 else "MindSpeed.gmm.npu_gmm", randn(7, 4), randn(3, 4, 5),
                   group_list=torch.tensor([2, 0, 5] if v2 else [2, 2, 7]),
                   ref=lambda x, w, group_list, f=v2: grouped([x], [w], None, group_list, int(f))[0])


def quantised(x: torch.Tensor, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.clamp(torch.round(x), low, high).to(dtype)


def dynamic(x: torch.Tensor, smooth_scales: Any = None) -> Any:
    x = x if smooth_scales is None else x * smooth_scales
    scale = x.abs().amax(-1, keepdim=True) / 127
    return quantised(x / scale, -128, 127, torch.int8), statistic(scale.squeeze(-1))


def asymmetric(x: torch.Tensor, smooth_scales: Any = None) -> Any:
    x = x if smooth_scales is None else x * smooth_scales
    high, low = x.amax(-1, keepdim=True), x.amin(-1, keepdim=True)
    scale = (high - low) / 255
    offset = 127 - high / scale
    return (quantised(x / scale + offset, -128, 127, torch.int8), statistic(scale.squeeze(-1)),
            statistic(offset.squeeze(-1)))


def quantise(x: torch.Tensor, scales: Any, zeros: Any, dtype: torch.dtype, axis: int = 1, div_mode: bool = True) -> Any:
    shape = [-1 if d == axis % x.dim() else 1 for d in range(x.dim())] if scales.numel() > 1 else []
    y = x / scales.reshape(shape) if div_mode else x * scales.reshape(shape)
    y = y if zeros is None else y + zeros.reshape(shape)
    info = torch.iinfo(dtype)
    return quantised(y, info.min, info.max, dtype)


def quantisation() -> Iterator[Case]:
    x = randn(3, 8).detach()
    for ref, name in ((dynamic, "npu_dynamic_quant"), (asymmetric, "npu_dynamic_quant_asymmetric")):
        yield case(f"NPU.{name}", x, ref=ref)
        yield case(f"NPU.{name}", randn(2, 3, 8).detach(), smooth_scales=uniform(0.5, 2, 8).detach(), ref=ref)
        yield case(f"NPU.{name}", x, group_index=ints(0, 3, 2), refused=True)
    for dtype in (torch.int8, torch.uint8, torch.int32):
        for div in (True, False):
            yield case("NPU.npu_quantize", x * 50, fixed([0.7]), fixed([3.0]), dtype, -1, div, ref=quantise)
            yield case("NPU.npu_quantize", x * 50, uniform(0.3, 2, 8).detach(), None, dtype, -1, div, ref=quantise)
            yield case("NPU.npu_quantize", x * 50, uniform(0.3, 2, 3).detach(), randn(3).detach(), dtype, 0, div,
                       ref=quantise)
    yield case("NPU.npu_quantize", x, uniform(0.3, 2, 3).detach(), None, torch.int8, refused=True)
    yield case("NPU.npu_quantize", x, fixed([0.7]), None, torch.float32, refused=True)
    w = ints(-128, 128, 4, 6, dtype=torch.int8)
    for offset in (None, randn(6).detach()):
        yield case("NPU.npu_anti_quant", w, uniform(0.1, 1, 6).detach(), offset=offset, dst_dtype=torch.float32,
                   ref=lambda x, s, offset, dst_dtype: ((x + (0 if offset is None else offset)) * s).to(dst_dtype))
        for bias in (None, randn(6).detach()):
            yield case("NPU.npu_weight_quant_batchmatmul", randn(3, 4).detach(), w, uniform(0.1, 1, 6).detach(),
                       offset, bias=bias, ref=lambda x, q, s, o, bias: x @ ((q + (0 if o is None else o)) * s).to(
                           x.dtype) + (0 if bias is None else bias))
    yield case("NPU.npu_anti_quant", x, fixed([1.0]), refused=True)
    yield case("NPU.npu_weight_quant_batchmatmul", randn(3, 4), w, randn(6), antiquant_group_size=2, refused=True)


def cases() -> Iterator[Case]:
    for part in (tokens, routing, products, quantisation):
        yield from part()
