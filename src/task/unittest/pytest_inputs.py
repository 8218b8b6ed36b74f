# -- Inputs ------------------------------------------------------------------------------------


def generator(seed: int, name: str, place: str, device: torch.device) -> torch.Generator:
    """The same numbers for the same seed, test and argument, whatever else runs."""
    digest = hashlib.sha256(("%d/%s/%s" % (seed, name, place)).encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def limits(spec: Spec) -> Tuple[Any, Any]:
    """A range to draw from, where the recorded one is missing or not finite."""
    low, high = spec.low, spec.high
    good = [isinstance(x, (bool, int, float)) and math.isfinite(x) for x in (low, high)]
    if not good[0]:
        low = high - 1 if good[1] else -1
    if not good[1]:
        high = low + 1 if good[0] else 1
    return min(low, high), max(low, high)


def draw(spec: Spec, count: int, dtype: torch.dtype, random: torch.Generator) -> torch.Tensor:
    """count numbers within the recorded range; both ends are among them when there is room."""
    low, high = limits(spec)
    place = {"device": random.device}
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = int(low), min(int(high), 2**63 - 2)
        values = torch.randint(low, high + 1, (count,), generator=random, **place)
    else:
        values = torch.rand(count, generator=random, dtype=torch.float64, **place)
        values = (values * (high - low) + low).clamp(low, high)
        if dtype.is_complex:  # the range is that of the sizes
            angles = torch.rand(count, generator=random, dtype=torch.float64, **place)
            return torch.polar(values, angles * (2 * math.pi)).to(dtype)
    if count > 1:
        values[0], values[-1] = low, high
    if isinstance(spec.low, float) and spec.low == -math.inf:  # a mask: half of it
        chosen = torch.rand(count, generator=random, dtype=torch.float64, **place) < 0.5
        chosen[:1], chosen[1:][-1:] = True, False
        values = values.masked_fill(chosen, -math.inf)
    return values.to(dtype)


def find_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name.rpartition(".")[2], None)
    if not isinstance(dtype, torch.dtype):
        raise Refused("this PyTorch has no %s" % name)
    return dtype


class Maker:
    """Makes the arguments of one call, twice when asked twice."""

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.values: Dict[str, torch.Tensor] = {}  # on the CPU

    def load(self, spec: Spec) -> Optional[torch.Tensor]:
        if FACTORY != "load" or not spec.file:
            return None
        path = os.path.join(DATA, os.path.basename(spec.file))
        if not os.path.exists(path):
            self.session.missing += 1
            return None
        value = read_tensor(path)
        if list(value.shape) != list(spec.shape) or value.dtype != find_dtype(spec.dtype):
            raise Refused("%s holds another tensor than the recorded one" % path)
        return value

    def tensor(self, spec: Spec, place: str) -> torch.Tensor:
        if place not in self.values:
            value = self.load(spec)
            if value is None:
                device = torch.device("cpu") if CPU_INIT else self.session.device
                try:
                    random = generator(self.session.seed, self.name, place, device)
                except RuntimeError:
                    random = generator(self.session.seed, self.name, place, torch.device("cpu"))
                count = math.prod(spec.shape)
                value = draw(spec, count, find_dtype(spec.dtype), random).reshape(
                    tuple(spec.shape)).cpu()
            self.values[place] = value
        return self.values[place]

    def checksum(self) -> str:
        """Of all tensors that the call gets: two devices are compared on the same ones only."""
        crc = 0
        for place, value in sorted(self.values.items()):
            value = value.contiguous()
            crc = zlib.crc32(("%s %s %s" % (place, value.dtype, list(value.shape))).encode(), crc)
            if value.numel():
                size = value.numel() * value.element_size()
                crc = zlib.crc32(ctypes.string_at(value.data_ptr(), size), crc)
        return "%08x" % crc

    def make(self, item: Any, place: str, device: torch.device) -> Any:
        if isinstance(item, Spec):
            value = self.tensor(item, place).to(device)
            if value is self.values[place]:
                value = value.clone()  # operators may write to their arguments
            return with_stride(value, item.stride)
        if isinstance(item, Word):
            value = getattr(torch, item.name.rpartition(".")[2], None)
            if not isinstance(value, item.kind):
                raise Refused("this PyTorch has no %s" % item.name)
            return value
        if item is DEVICE:
            return device
        if isinstance(item, (list, tuple)):
            return [self.make(x, "%s.%d" % (place, i), device) for i, x in enumerate(item)]
        if isinstance(item, dict):
            return {k: self.make(x, "%s.%s" % (place, k), device) for k, x in item.items()}
        return item


