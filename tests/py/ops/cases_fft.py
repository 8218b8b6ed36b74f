"""The fft family, lengths of all kinds; short-time transforms."""

from typing import Iterator

import torch

from ops.harness import Case, case, crandn, randn


def lines() -> Iterator[Case]:
    for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 30, 31, 37, 49, 64, 74, 100, 127):
        yield case("Torch.fft.fft", crandn(n), differences=n < 10)
        yield case("Torch.fft.ifft", crandn(n), differences=n < 10)
        yield case("Torch.fft.rfft", randn(n), differences=n < 10)
        yield case("Torch.fft.ihfft", randn(n), differences=n < 10)
        yield case("Torch.fft.irfft", crandn(n // 2 + 1), n, differences=n < 10)
        yield case("Torch.fft.hfft", crandn(n // 2 + 1), n, differences=n < 10)
    for norm in ("backward", "ortho", "forward"):
        yield case("Torch.fft.fft", crandn(3, 6), norm=norm)
        yield case("Torch.fft.ifft", crandn(3, 6), dim=0, norm=norm)
        yield case("Torch.fft.rfft", randn(3, 6), norm=norm)
        yield case("Torch.fft.irfft", crandn(3, 6), norm=norm)
        yield case("Torch.fft.hfft", crandn(3, 6), norm=norm)
        yield case("Torch.fft.ihfft", randn(3, 6), norm=norm)
    yield case("Torch.fft.fft", randn(4))
    yield case("Torch.fft.fft", crandn(2, 5, 3), 8, 1)
    yield case("Torch.fft.fft", crandn(2, 5, 3), 3, 1)
    yield case("Torch.fft.rfft", randn(2, 5, 3), 4, 1)
    yield case("Torch.fft.rfft", randn(2, 5), 9)
    yield case("Torch.fft.irfft", crandn(2, 5), 5)
    yield case("Torch.fft.irfft", crandn(2, 5), 12)
    yield case("Torch.fft.irfft", randn(5))
    yield case("Torch.fft.fft", crandn(3), 0, refused=True)
    yield case("Torch.fft.fft", crandn(3), dim=1, refused=True)
    yield case("Torch.fft.fft", crandn(3), norm="root", refused=True)
    yield case("Torch.fft.rfft", crandn(3), refused=True)


def planes() -> Iterator[Case]:
    for name in ("fft2", "ifft2", "fftn", "ifftn"):
        yield case(f"Torch.fft.{name}", crandn(2, 3, 4))
        yield case(f"Torch.fft.{name}", crandn(2, 3, 4), (4, 3), (0, 1), norm="ortho")
    yield case("Torch.fft.fftn", crandn(2, 3, 4), (5, 2))
    yield case("Torch.fft.fftn", randn(2, 3, 4), dim=(1,))
    for name in ("rfft2", "rfftn", "ihfft2", "ihfftn"):
        yield case(f"Torch.fft.{name}", randn(2, 3, 4))
        yield case(f"Torch.fft.{name}", randn(2, 3, 5), (4, 3), (0, 1), norm="ortho")
    for name in ("irfft2", "irfftn", "hfft2", "hfftn"):
        yield case(f"Torch.fft.{name}", crandn(2, 3, 4))
        yield case(f"Torch.fft.{name}", crandn(2, 3, 4), (4, 5), (0, 1), norm="ortho")


def others() -> Iterator[Case]:
    for by in (0, 1, 2):
        yield case("Aten._fft_c2c", crandn(3, 4), [0, 1], by, True)
        yield case("Aten._fft_c2c", crandn(3, 4), [1], by, False)
        yield case("Aten._fft_r2c", randn(3, 4), [1], by, True)
        yield case("Aten._fft_r2c", randn(3, 4), [0, 1], by, False)
        yield case("Aten._fft_c2r", crandn(3, 4), [1], by, 6)
        yield case("Aten._fft_c2r", crandn(3, 4), [0, 1], by, 7)
    for n in (4, 5):
        yield case("Torch.fft.fftshift", randn(n, 3))
        yield case("Torch.fft.ifftshift", crandn(n, 3))
        yield case("Torch.fft.fftshift", crandn(n, 3), 0)
        yield case("Torch.fft.fftfreq", n, dtype=torch.float32)
        yield case("Torch.fft.rfftfreq", n, 0.5, dtype=torch.float32)
    yield case("Torch.fft.fftfreq", 6, d=2.0, dtype=torch.float64)


def frames() -> Iterator[Case]:
    window = torch.hann_window(16)
    yield case("Torch.stft", randn(60), 16, return_complex=True)
    yield case("Torch.stft", randn(2, 60), 16, 4, 12, torch.hann_window(12), return_complex=True)
    yield case("Torch.stft", randn(2, 60), 16, window=window, center=False, normalized=True, return_complex=True)
    yield case("Torch.stft", randn(2, 60), 16, window=window, onesided=False, pad_mode="constant", return_complex=True)
    yield case("Torch.stft", crandn(2, 60), 15, 5, return_complex=True, onesided=False)
    yield case("Torch.stft", randn(10), 16, center=False, return_complex=True, refused=True)
    yield case("Torch.istft", crandn(9, 14), 16, window=window)
    yield case("Torch.istft", crandn(2, 9, 14), 16, 4, 16, window, normalized=True, length=50)
    yield case("Torch.istft", crandn(2, 16, 14), 16, window=window, onesided=False)


def cases() -> Iterator[Case]:
    for group in (lines, planes, others, frames):
        yield from group()
