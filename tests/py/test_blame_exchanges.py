"""Exchanges between ranks, as dumps that this test writes: right ones in every order of summation and type, and wrong ones."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import numpy as np

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
TYPES = {"float32": "torch.float32", "float16": "torch.float16", "float64": "torch.float64", "int32": "torch.int32",
         "int64": "torch.int64", "complex64": "torch.complex64"}
World = List[Dict[str, Any]]  # of each rank: name of a call to its entry


class Writer:
    """A step of several ranks."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.folder, self.world = folder, [{} for _ in range(ranks)]  # type: Path, World

    def leaf(self, rank: int, value: Any, place: str) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.leaf(rank, item, f"{place}.{i}") for i, item in enumerate(value)]
        if isinstance(value, dict):
            return {**value, **({"tensor": self.leaf(rank, value["tensor"], f"{place}.tensor")} if "tensor" in value else {})}
        if isinstance(value, np.ndarray):
            data = self.folder / f"rank{rank}" / "dump_tensor_data"
            data.mkdir(parents=True, exist_ok=True)
            np.save(data / f"{place}.npy", value)
            real = value.real.astype(np.float64)
            return {"type": "torch.Tensor", "dtype": TYPES[value.dtype.name], "shape": list(value.shape),
                    "Max": float(real.max()), "Min": float(real.min()), "Mean": float(real.mean()), "Norm": None,
                    "requires_grad": False, "data_name": f"{place}.npy"}
        return value if value is None else {"type": type(value).__name__, "value": value}

    def call(self, rank: int, name: str, args: List[Any], output: List[Any], group: Optional[List[int]] = None, **kwargs: Any) -> None:
        title = f"Distributed.{name}.forward"
        entry = {"input_args": [self.leaf(rank, value, f"{title}.input.{i}") for i, value in enumerate(args)],
                 "input_kwargs": {key: self.leaf(rank, value, f"{title}.kwargs.{key}") for key, value in kwargs.items()},
                 "output": [self.leaf(rank, value, f"{title}.output.{i}") for i, value in enumerate(output)]}
        if group is not None:
            entry["exchange"] = {"order": len(self.world[rank]), "group_ranks": group}
        self.world[rank][title] = entry

    def module(self, rank: int, path: str, parameters: Dict[str, np.ndarray]) -> None:
        title = f"Module.{path}.Linear.forward.0"
        self.world[rank][title] = {"input_args": [], "input_kwargs": {}, "output": [], "parameters": {
            key: self.leaf(rank, value, f"{title}.parameters.{key}") for key, value in parameters.items()}}

    def write(self) -> None:
        for rank, data in enumerate(self.world):
            folder = self.folder / f"rank{rank}"
            (folder / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
            (folder / "dump.json").write_text(json.dumps({"task": "tensor", "level": "L1", "framework": "pytorch",
                                                          "dump_data_dir": "x", "data": data}))


def blame(folder: Path) -> Dict[str, Any]:
    done = subprocess.run([str(PLUMB), "blame", str(folder), "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout, done.stderr.decode()
    return json.loads(done.stdout)


def ring(terms: List[np.ndarray], first: int) -> np.ndarray:
    """Added up in the type itself, from rank `first` on."""
    total = terms[first].copy()
    for k in range(1, len(terms)):
        total = total + terms[(first + k) % len(terms)]
    return total.astype(terms[0].dtype)


class ExchangesTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root, self.made = Path(place.name), 0
        self.random = np.random.default_rng(7)

    def writer(self, ranks: int) -> Writer:
        self.made += 1
        return Writer(self.root / f"step{self.made}", ranks)

    def tensors(self, n: int, shape: Any = (6, 5), dtype: str = "float32") -> List[np.ndarray]:
        if dtype.startswith("int"):
            return [self.random.integers(-1000, 1000, shape).astype(dtype) for _ in range(n)]
        return [(3 * self.random.standard_normal(shape) + (1j if dtype == "complex64" else 0)).astype(dtype) for _ in range(n)]

    def expect(self, writer: Writer, wrong: List[int], calls: Optional[int] = None) -> Dict[str, Any]:
        """Exactly these ranks have a fault, and everything was judged."""
        writer.write()
        answer = blame(writer.folder)
        self.assertEqual(sorted(fault["rank"] for fault in answer["faults"]), wrong, answer)
        if calls is None:
            self.assertEqual(answer["not_judged"], [])
        return answer

    def spoil(self, x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x.reshape(-1)[3] += 1
        return x

    def both(self, ranks: int, make: Callable[[Writer, Callable[[int, np.ndarray], np.ndarray]], None], bad: int = 1) -> None:
        """Right as it is; and with one element of what rank `bad` got changed."""
        for wrong in ([], [bad]):
            writer = self.writer(ranks)
            make(writer, lambda rank, x: self.spoil(x) if rank in wrong else x)
            self.expect(writer, wrong)

    def test_all_reduce_in_any_order(self) -> None:
        for dtype in TYPES:
            for ranks in (2, 3, 8, 24):
                with self.subTest(dtype=dtype, ranks=ranks):
                    terms = self.tensors(ranks, dtype=dtype)
                    self.both(ranks, lambda w, got: [w.call(r, "all_reduce.0", [terms[r]], [got(r, ring(terms, r))], list(range(ranks)))
                                                     for r in range(ranks)])

    def test_other_reductions(self) -> None:
        terms = self.tensors(4)
        for op, result in (("MAX", np.max(terms, axis=0)), ("RedOpType.MIN", np.min(terms, axis=0)),
                           ("ReduceOp.PRODUCT", np.prod(terms, axis=0)), ("avg", np.mean(terms, axis=0, dtype=np.float32))):
            with self.subTest(op):
                self.both(4, lambda w, got: [w.call(r, "all_reduce.0", [terms[r]], [got(r, result), None], [0, 1, 2, 3],
                                                    op={"type": "torch.distributed.ReduceOp", "value": op}) for r in range(4)])
        writer = self.writer(2)
        for r in range(2):
            writer.call(r, "all_reduce.0", [terms[r]], [terms[r]], [0, 1], op={"type": "torch.distributed.ReduceOp", "value": "BXOR"})
        answer = self.expect(writer, [], calls=0)
        self.assertEqual(answer["not_judged"][0]["what"], "plumb does not compute this reduction")

    def test_reduction_recorded_as_an_address(self) -> None:
        """As older captures of PyTorch 1.13 have it: nothing is known of it, and nothing said."""
        terms, dumps = self.tensors(2), []
        for address in ("0x7fdc3f19c4b0", "0x7f9912ab44f0"):
            op = {"type": "torch.distributed.ReduceOp", "value": f"<torch.distributed.distributed_c10d.ReduceOp object at {address}>"}
            dumps.append(writer := self.writer(2))
            for r in range(2):
                writer.call(r, "all_reduce.0", [terms[r]], [terms[0] + terms[1], op], [0, 1], op=op)
            answer = self.expect(writer, [], calls=0)
            self.assertEqual(answer["not_judged"][0]["what"], "of its reduction only an address in memory was recorded")
        steps = [str(writer.folder) for writer in dumps]
        for more in ([], ["-da", "-o", str(self.root / "found")]):
            done = subprocess.run([str(PLUMB), "compare", *steps, *more], stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_gathered_statistics(self) -> None:
        """What ranks put in is recorded after the call, too, and is no result that all have alike."""
        terms, group = self.tensors(4), [0, 1, 2, 3]
        for wrong in ([], [2]):
            writer = self.writer(4)
            for r in range(4):
                got = [self.spoil(x) if r in wrong else x for x in terms]
                writer.call(r, "all_gather.0", [None, terms[r]], [got, terms[r]], group)
                writer.call(r, "all_gather_into_tensor.0", [None, terms[r]], [np.concatenate(got), terms[r]], group)
            writer.write()
            for path in writer.folder.glob("rank*/dump.json"):
                path.write_text(re.sub(r', "data_name": "[^"]*"', "", path.read_text()).replace('"tensor"', '"statistics"', 1))
            answer = blame(writer.folder)
            self.assertEqual([(odd["rank"], odd["tensors"]) for odd in answer["odd"]], [(r, 5) for r in wrong])
            self.assertEqual(answer["replicas"], 5)

    def test_gathered(self) -> None:
        terms, group = self.tensors(3), [0, 1, 2]
        self.both(3, lambda w, got: [w.call(r, "all_gather.0", [None, terms[r]], [[terms[0], got(r, terms[1]), terms[2]], terms[r]], group)
                                     for r in range(3)])
        whole = np.concatenate(terms)
        self.both(3, lambda w, got: [w.call(r, "all_gather_into_tensor.0", [None, terms[r]], [got(r, whole), terms[r]], group)
                                     for r in range(3)])
        self.both(3, lambda w, got: [w.call(r, "functional_all_gather_into_tensor.0", [terms[r], 3], [got(r, whole)], group)
                                     for r in range(3)])

    def test_gather_and_reduce_to_one(self) -> None:
        terms, group = self.tensors(3), [0, 1, 2]
        nothing = np.zeros(2, np.float32)
        for args, kwargs in (([1], {}), ([], {"dst": 1})):
            for wrong in ([], [1]):
                writer = self.writer(3)
                for r in range(3):
                    result = ring(terms, 0) if r == 1 else nothing
                    writer.call(r, "reduce.0", [terms[r], *args], [self.spoil(result) if r in wrong else result], group, **kwargs)
                answer = self.expect(writer, wrong, calls=1)
                self.assertEqual(answer["not_judged"], [{"count": 2, "what": "nothing comes out of it at this rank"}])

    def test_dealt(self) -> None:
        lists, group = [self.tensors(3) for _ in range(3)], [0, 1, 2]
        self.both(3, lambda w, got: [w.call(r, "reduce_scatter.0", [None, lists[r]], [got(r, ring([one[r] for one in lists], r))], group)
                                     for r in range(3)])
        whole = [np.concatenate(one) for one in lists]
        self.both(3, lambda w, got: [w.call(r, "reduce_scatter_tensor.0", [None, whole[r]],
                                            [got(r, ring([one[r] for one in lists], r))], group) for r in range(3)])
        self.both(3, lambda w, got: [w.call(r, "scatter.0", [None, lists[0] if r == 0 else None], [got(r, lists[0][r])], group, src=0)
                                     for r in range(3)])
        self.both(3, lambda w, got: [w.call(r, "broadcast.0", [lists[r][0], 2], [got(r, lists[2][0])], group) for r in range(3)])

    def test_all_to_all(self) -> None:
        lists, group = [self.tensors(3) for _ in range(3)], [0, 1, 2]
        self.both(3, lambda w, got: [w.call(r, "all_to_all.0", [None, lists[r]], [[got(r, one[r]) for one in lists]], group)
                                     for r in range(3)])
        self.both(3, lambda w, got: [w.call(r, "all_to_all_single.0", [None, np.concatenate(lists[r])],
                                            [got(r, np.concatenate([one[r] for one in lists]))], group) for r in range(3)])
        sizes = [[1, 2, 3], [4, 1, 1], [2, 2, 2]]  # rows that rank r sends to each
        sent = [self.tensors(1, (6, 5))[0] for _ in range(3)]
        starts = [np.cumsum([0, *row]) for row in sizes]
        got_by = [np.concatenate([sent[s][starts[s][r]:starts[s][r + 1]] for s in range(3)]) for r in range(3)]
        self.both(3, lambda w, got: [w.call(r, "all_to_all_single.0", [None, sent[r], [row[r] for row in sizes], sizes[r]],
                                            [got(r, got_by[r])], group) for r in range(3)])

    def test_sent(self) -> None:
        x = self.tensors(4)

        def one(w: Writer, got: Callable[[int, np.ndarray], np.ndarray]) -> None:
            w.call(0, "isend.0", [x[0], 1], [x[0]], [0, 1])
            w.call(1, "recv.0", [None, 0], [got(1, x[0])], [0, 1])
        writer = self.writer(2)
        one(writer, lambda rank, y: y)
        self.expect(writer, [], calls=0)
        writer = self.writer(2)
        one(writer, lambda rank, y: self.spoil(y))
        self.expect(writer, [1], calls=0)

        def point(op: str, tensor: np.ndarray, peer: int) -> Dict[str, Any]:
            return {"class_type": "torch.distributed.P2POp", "tensor": tensor, "op": op, "peer": peer, "tag": 0, "group_id": "0"}

        def batch(w: Writer, got: Callable[[int, np.ndarray], np.ndarray]) -> None:
            for r in range(2):
                before = [point("isend", x[r], 1 - r), point("irecv", np.zeros_like(x[0]), 1 - r)]
                after = [point("isend", x[r], 1 - r), point("irecv", got(r, x[1 - r]), 1 - r)]
                w.call(r, "batch_isend_irecv.0", [before], [after], [0, 1])
        self.both(2, batch)

    def test_what_a_wrong_sum_looks_like(self) -> None:
        terms, group = self.tensors(4), [0, 1, 2, 3]
        for what, result in (("what rank 2 put in is missing", terms[0] + terms[1] + terms[3]),
                             ("nothing was exchanged", terms[1]), ("a mean, where a sum was asked for", ring(terms, 0) / 4)):
            writer = self.writer(4)
            for r in range(4):
                writer.call(r, "all_reduce.0", [terms[r]], [result.astype(np.float32) if r == 1 else ring(terms, r)], group)
            self.assertIn(what, self.expect(writer, [1])["faults"][0]["why"])

    def test_not_finite(self) -> None:
        """NaN in, NaN out; an infinity, and a sum that overflows, are right as well."""
        terms, group = self.tensors(3), [0, 1, 2]
        terms[0][0, 0], terms[1][0, 1], terms[2][0, 2] = np.nan, np.inf, 3e38
        terms[0][0, 2] = 3e38
        with np.errstate(all="ignore"):
            self.both(3, lambda w, got: [w.call(r, "all_reduce.0", [terms[r]], [got(r, ring(terms, 0))], group) for r in range(3)])
            lost = ring(terms, 0)
        lost[0, 0] = 0
        writer = self.writer(3)
        for r in range(3):
            writer.call(r, "all_reduce.0", [terms[r]], [lost if r == 2 else ring(terms, 0)], group)
        self.expect(writer, [2])

    def test_group_that_is_not_recorded(self) -> None:
        """All ranks of the dump may not be all there were: then nobody is blamed, unless some rank proves it."""
        terms = self.tensors(3)
        writer = self.writer(2)
        for r in range(2):
            writer.call(r, "all_reduce.0", [terms[r]], [ring(terms, 0)])
        answer = self.expect(writer, [], calls=0)
        self.assertEqual(len(answer["suspicious"]), 2)
        writer = self.writer(3)
        for r in range(3):
            writer.call(r, "all_reduce.0", [terms[r]], [self.spoil(ring(terms, 0)) if r else ring(terms, 0)])
        self.expect(writer, [1, 2])

    def test_groups_beside_each_other(self) -> None:
        """Pairs and all, in an order that differs between ranks where the program lets it; asynchronous ones are over later."""
        terms, more = self.tensors(4), self.tensors(4)
        for wrong in ([], [3]):
            writer = self.writer(4)
            for r in range(4):
                pair = [0, 1] if r < 2 else [2, 3]
                calls = [("all_reduce.0", terms[pair[0]] + terms[pair[1]], terms[r], pair, 0), ("all_reduce.1", ring(more, r), more[r], [0, 1, 2, 3], 1)]
                for name, result, own, group, order in reversed(calls) if r % 2 else calls:
                    writer.call(r, name, [own], [self.spoil(result) if r in wrong and order else result], group)
                    writer.world[r][f"Distributed.{name}.forward"]["exchange"]["order"] = order
            self.expect(writer, wrong)

    def odd(self, ranks: int, parameters: Callable[[int], Dict[str, np.ndarray]], groups: Callable[[int], List[int]],
            reduced: int = 2) -> List[Any]:
        """Who is odd, of ranks with these parameters of a module, that reduce so many elements in groups."""
        writer = self.writer(ranks)
        terms = self.tensors(ranks, (reduced,))
        for r in range(ranks):
            writer.module(r, "up", parameters(r))
            group = groups(r)
            writer.call(r, "all_reduce.0", [terms[r]], [ring([terms[k] for k in group], 0)], group)
        writer.write()
        answer = blame(writer.folder)
        self.assertEqual(answer["faults"], [])
        return [(one["rank"], one["tensor"].split(".")[-1]) for one in answer["odd"]]

    def test_shards_are_not_odd(self) -> None:
        all_of, weights = (lambda r: [0, 1, 2, 3]), self.tensors(8)
        pairs = (lambda r: [r % 2, r % 2 + 2])
        zero, one = np.zeros(5, np.float32), self.tensors(1, (5,))[0]
        near = np.ones(6, np.float32)
        self.assertEqual(self.odd(4, lambda r: {"weight": weights[r]}, all_of), [])
        self.assertEqual(self.odd(4, lambda r: {"weight": weights[r]}, all_of, reduced=1000), [])
        self.assertEqual(self.odd(4, lambda r: {"weight": weights[r % 2]}, pairs, reduced=1000), [])
        # A cut norm, near 1 on both of two ranks.
        cut = [near + 0.01 * noise.reshape(-1)[:6] for noise in weights]
        self.assertEqual(self.odd(2, lambda r: {"weight": cut[r]}, lambda r: [0, 1]), [])
        # Experts: only one of them was used, so that its bias is no longer 0.
        self.assertEqual(self.odd(4, lambda r: {"weight": weights[r], "bias": one if r == 2 else zero}, all_of, reduced=1000), [])
        # Stages of a pipeline that began from one seed, but for the first.
        self.assertEqual(self.odd(4, lambda r: {"weight": weights[r == 0]}, lambda r: [r]), [])

    def test_odd_replicas(self) -> None:
        all_of, weights = (lambda r: [0, 1, 2, 3]), self.tensors(8)
        pairs = (lambda r: [r % 2, r % 2 + 2])
        teams = (lambda r: [r % 2 + 2 * k for k in range(4)])
        last_bit = np.nextafter(weights[0], np.float32(9))
        self.assertEqual(self.odd(4, lambda r: {"weight": last_bit if r == 1 else weights[0]}, all_of), [(1, "weight")])
        # A rank that never got the weights of the others: they reduce gradients with it.
        self.assertEqual(self.odd(4, lambda r: {"weight": weights[r == 3]}, all_of, reduced=1000), [(3, "weight")])
        # Tensor parallel in pairs, data parallel over four: the odd one is odd in its own group.
        self.assertEqual(self.odd(8, lambda r: {"weight": last_bit if r == 6 else weights[r % 2]}, teams), [(6, "weight")])
        self.assertEqual(self.odd(4, lambda r: {"weight": last_bit if r == 2 else weights[r % 2]}, pairs), [(-1, "weight")])
        # All of them drift.
        drift = [(weights[0] * (1 + 1e-4 * noise)).astype(np.float32) for noise in weights]
        self.assertEqual(self.odd(4, lambda r: {"weight": drift[r]}, all_of), [(-1, "weight")])
        ones = np.ones(6, np.float32)
        changed = ones.copy()
        changed[2] = 1.01
        self.assertEqual(self.odd(4, lambda r: {"weight": changed if r == 2 else ones}, all_of), [(2, "weight")])

    def test_damage_costs_its_exchange(self) -> None:
        terms, group = self.tensors(2), [0, 1]
        writer = self.writer(2)
        for r in range(2):
            writer.call(r, "all_reduce.0", [terms[r]], [ring(terms, 0)], group)
            writer.call(r, "all_reduce.1", [terms[r]], [ring(terms, 0)], group)
            writer.call(r, "all_reduce.2", [terms[r][: 5 + r]], [terms[r][: 5 + r]], group)
        writer.write()
        (writer.folder / "rank1" / "dump_tensor_data" / "Distributed.all_reduce.0.forward.input.0.npy").write_bytes(b"damaged")
        answer = blame(writer.folder)
        self.assertEqual(answer["faults"], [])
        self.assertEqual(sum(one["count"] for one in answer["not_judged"]), 4)
        self.assertIn("the sizes of what went in and came out do not fit", [one["what"] for one in answer["not_judged"]])


if __name__ == "__main__":
    unittest.main()
