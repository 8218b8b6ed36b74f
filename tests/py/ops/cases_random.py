"""What is drawn at random is known, and refused with the reason."""

from typing import Iterator

from ops.harness import Case, case, ints, uniform


def cases() -> Iterator[Case]:
    p = uniform(0.1, 0.9, 4, 3)
    for name in ("bernoulli", "binomial", "multinomial", "normal", "poisson"):
        yield case(f"Torch.{name}", p, refused=True)
    for name in ("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "uniform_",
                 "random_"):
        yield case(f"Tensor.{name}", p, refused=True)
    yield case("Torch.rand", 3, 4, refused=True)
    yield case("Aten.randint.low", 3, 4, [2], refused=True)
    yield case("Torch.randperm", 5, refused=True)
    yield case("Functional.gumbel_softmax", p, refused=True)
    yield case("Functional.fractional_max_pool2d", p, 2, refused=True)
    yield case("Aten._fused_dropout", p, 0.5, refused=True)
    yield case("NPU.npu_dropout_add_layer_norm", p, p, refused=True)
    yield case("NPU.npu_random_choice_with_mask", ints(0, 2, 4, 3), refused=True)
    yield case("NPU.npu_sub_sample", ints(0, 2, 4), 2, 0.5, refused=True)
    yield case("NPU.npu_top_k_top_p_sample", p, refused=True)
