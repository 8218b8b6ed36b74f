"""Convolutions, transposed convolutions, unfold and fold."""

from typing import Iterator

from ops.harness import Case, case, ints, randn


def forward() -> Iterator[Case]:
    one = [((2, 3, 9), (4, 3, 3), {}), ((2, 3, 9), (4, 3, 3), {"stride": 2, "padding": 1}),
           ((3, 9), (4, 3, 3), {"dilation": 2}), ((2, 4, 9), (6, 2, 3), {"groups": 2, "padding": 2}),
           ((2, 4, 9), (4, 1, 3), {"groups": 4}), ((2, 3, 9), (4, 3, 1), {}), ((2, 3, 9), (4, 3, 1), {"stride": 3}),
           ((0, 3, 9), (4, 3, 3), {}), ((2, 3, 9), (4, 3, 4), {"padding": "same"}),
           ((2, 3, 9), (4, 3, 4), {"padding": "same", "dilation": 3}), ((2, 3, 9), (4, 3, 4), {"padding": "valid"}),
           ((1, 1, 1), (1, 1, 1), {"padding": 5}), ((2, 3, 300), (4, 3, 7), {"stride": [3], "padding": [4]})]
    for x, w, kwargs in one:
        yield case("Functional.conv1d", randn(*x), randn(*w), randn(w[0]), bfloat16=True, **kwargs)
        yield case("Torch.conv1d", randn(*x), randn(*w), **kwargs)
    two = [((2, 3, 7, 6), (4, 3, 3, 2), {}), ((2, 3, 7, 6), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0)}),
           ((3, 7, 6), (4, 3, 3, 3), {"padding": 1, "dilation": (1, 2)}),
           ((2, 4, 5, 5), (8, 1, 3, 3), {"groups": 4, "padding": 1}), ((2, 3, 5, 5), (4, 3, 1, 1), {}),
           ((2, 6, 5, 5), (4, 3, 1, 1), {"groups": 2}), ((2, 3, 5, 5), (4, 3, 1, 1), {"padding": 1}),
           ((2, 3, 5, 6), (4, 3, 2, 3), {"padding": "same"}), ((1, 8, 20, 30), (16, 8, 5, 5), {"padding": 2})]
    for x, w, kwargs in two:
        yield case("Functional.conv2d", randn(*x), randn(*w), randn(w[0]), bfloat16=x[1] < 8, **kwargs)
    three = [((2, 3, 4, 5, 6), (4, 3, 2, 3, 2), {}), ((3, 4, 5, 6), (2, 3, 2, 2, 2), {"stride": 2, "padding": 1}),
             ((1, 2, 4, 5, 6), (4, 1, 2, 2, 2), {"groups": 2, "dilation": (1, 2, 1), "padding": (1, 0, 1)})]
    for x, w, kwargs in three:
        yield case("Functional.conv3d", randn(*x), randn(*w), randn(w[0]), **kwargs)
    yield case("Functional.conv2d", randn(2, 6, 7, 3).transpose(1, 3), randn(4, 3, 3, 3))
    yield case("Functional.conv2d", randn(2, 3, 7, 6), randn(4, 3, 3, 2), None, 1, 0, 1, 1)
    yield case("Functional.conv2d", randn(2, 3, 7, 6), randn(4, 2, 3, 2), refused=True)
    yield case("Functional.conv2d", randn(2, 3, 2, 2), randn(4, 3, 3, 3), refused=True)
    yield case("Functional.conv2d", randn(2, 3, 5, 5), randn(4, 3, 3, 3), stride=0, refused=True)
    yield case("Functional.conv2d", randn(2, 3, 5, 5), randn(4, 3, 3, 3), padding=-1, refused=True)
    yield case("Functional.conv2d", randn(2, 3, 5, 5), randn(4, 3, 3, 3), stride=2, padding="same", refused=True)
    yield case("Functional.conv2d", randn(2, 3, 5, 5), randn(4, 3, 3, 3), randn(5), refused=True)
    yield case("Functional.conv2d", randn(2, 3, 5, 5), randn(4, 3, 3, 3), groups=2, refused=True)
    yield case("Functional.conv2d", randn(2, 3, 5), randn(4, 3, 3), refused=True)
    yield case("Functional.conv2d", randn(1, 1, 2, 2), randn(1, 1, 1, 1), padding=2**31 - 1, refused=True)
    yield case("Functional.conv1d", ints(0, 5, 1, 1, 4), ints(0, 5, 1, 1, 2), refused=True)


def transposed() -> Iterator[Case]:
    one = [((2, 3, 5), (3, 4, 3), {}), ((2, 3, 5), (3, 4, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
           ((3, 5), (3, 4, 3), {"dilation": 2}), ((2, 4, 5), (4, 3, 3), {"groups": 2}), ((2, 3, 5), (3, 4, 1), {}),
           ((0, 3, 5), (3, 4, 3), {})]
    for x, w, kwargs in one:
        yield case("Functional.conv_transpose1d", randn(*x), randn(*w), randn(w[1] * kwargs.get("groups", 1)), **kwargs)
        yield case("Torch.conv_transpose1d", randn(*x), randn(*w), **kwargs)
    two = [((2, 3, 4, 5), (3, 4, 3, 2), {}), ((2, 3, 4, 5), (3, 4, 3, 2), {"stride": (2, 3), "padding": (1, 0),
                                                                            "output_padding": (1, 2)}),
           ((4, 4, 5), (4, 2, 3, 3), {"groups": 2, "padding": 1, "dilation": 2})]
    for x, w, kwargs in two:
        yield case("Functional.conv_transpose2d", randn(*x), randn(*w), randn(w[1] * kwargs.get("groups", 1)), **kwargs)
    yield case("Functional.conv_transpose3d", randn(2, 3, 2, 3, 4), randn(3, 2, 2, 2, 3), randn(2), stride=2, padding=1)
    yield case("Functional.conv_transpose3d", randn(2, 2, 3, 4), randn(2, 1, 2, 2, 3), None, 2, 0, (1, 0, 1), 2)
    yield case("Functional.conv_transpose2d", randn(2, 3, 4, 5), randn(3, 4, 3, 2), output_padding=1, refused=True)
    yield case("Functional.conv_transpose2d", randn(2, 3, 1, 1), randn(3, 4, 3, 3), padding=2, refused=True)


def general() -> Iterator[Case]:
    yield case("Torch.convolution", randn(2, 3, 7, 6), randn(4, 3, 3, 2), randn(4), [1], [0], [1], False, [0], 1)
    yield case("Aten.convolution", randn(2, 3, 7), randn(3, 4, 3), None, [2], [1], [1], True, [1], 1)
    yield case("Torch._convolution", randn(2, 3, 7), randn(4, 3, 3), randn(4), [2], [1], [1], False, [0], 1, False,
               False, True, True)
    yield case("Torch.conv_tbc", randn(7, 2, 3), randn(3, 3, 4), randn(4), 1)
    yield case("Functional.conv_tbc", randn(7, 2, 3), randn(3, 3, 4), randn(4))


def backwards() -> Iterator[Case]:
    x, w = randn(2, 4, 7, 6).detach(), randn(6, 2, 3, 2).detach()
    for mask in ([True, True, True], [True, False, False], [False, True, False]):
        yield case("Aten.convolution_backward", randn(2, 6, 4, 5).detach(), x, w, [6], [2, 1], [1, 0], [1, 1], False,
                   [0, 0], 2, mask)
    yield case("Aten.convolution_backward", randn(2, 4, 13, 7).detach(), x, randn(4, 2, 3, 2).detach(), [4], [2, 1],
               [1, 0], [1, 1], True, [0, 0], 2, [True, True, True])
    yield case("Aten.convolution_backward", randn(2, 6, 4, 4).detach(), x, w, [6], [2, 1], [1, 0], [1, 1], False,
               [0, 0], 2, [True, True, True], refused=True)


def windows() -> Iterator[Case]:
    yield case("Functional.unfold", randn(2, 3, 5, 6), (2, 3))
    yield case("Functional.unfold", randn(2, 3, 5, 6), 2, dilation=2, padding=1, stride=(2, 1))
    yield case("Functional.unfold", randn(3, 5, 6), 3)
    yield case("Functional.fold", randn(2, 12, 20), (5, 6), 2)
    yield case("Functional.fold", randn(2, 18, 12), output_size=(6, 6), kernel_size=3, padding=(0, 1), stride=(1, 2))
    yield case("Functional.fold", randn(12, 20), (5, 6), (2, 2))
    yield case("Functional.fold", randn(2, 12, 21), (5, 6), 2, refused=True)
    yield case("Functional.unfold", randn(2, 3, 5, 6), 7, refused=True)


def cases() -> Iterator[Case]:
    yield from forward()
    yield from transposed()
    yield from general()
    yield from backwards()
    yield from windows()
