"""The online precision check on PyTorch: every rule of it, with planted faults."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import gpt_model
import plumb
from plumb import guard
from plumb._guard import check, clean_worker

NAN, INF = float("nan"), float("inf")


class OnlineCheck(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="plumb-guard-")
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.finish)
        self.log = Path(self.folder.name) / "precision.log"
        self.said = ""

    def enable(self, **settings: Any) -> None:
        plumb.enable_precision_check(**{"path": self.log, **settings})

    def finish(self) -> Dict[str, Dict[str, Any]]:
        """Ends the check; the table by operator."""
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            table = plumb.disable_precision_check()
        self.said = stderr.getvalue()
        if table is None:
            return {}
        return {row[0]: dict(zip(table.columns, row)) for row in table}

    def lines(self) -> List[str]:
        return self.log.read_text().splitlines()

    def verdict(self, name: str, kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
        """What the log says of one call of a kernel: "" when nothing."""
        before = len(self.lines())
        plumb.checked(kernel, name)(*args, **kwargs)
        added = self.lines()[before:]
        self.assertLessEqual(len(added), 1)
        return added[0] if added else ""


@contextlib.contextmanager
def registered(**kernels: Callable[..., Any]) -> Iterator[None]:
    """Kernels in the place of PyTorch's own on the CPU; "add__Tensor" is add.Tensor."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kernel in kernels.items():
            library.impl(re.sub("__(?=[A-Za-z])", ".", name), kernel, "CPU")
    try:
        yield
    finally:
        if hasattr(library, "_destroy"):
            library._destroy()
        library.m = None


class Rules(OnlineCheck):
    def test_result_is_the_kernels_own_object(self) -> None:  # rule 1
        self.enable()
        wrong = torch.tensor([5.0, NAN])
        given = plumb.checked(lambda x: wrong, "aten::neg")(torch.ones(2))
        self.assertIs(given, wrong)
        self.assertEqual(len(self.lines()), 1)

    def test_failure_inside_the_check_is_counted_and_told(self) -> None:  # rule 1
        self.enable()
        broken = check.own_reference
        check.own_reference = lambda *_: 1 / 0
        try:
            with plumb.precision_check():
                y = torch.ones(3) + 1
        finally:
            check.own_reference = broken
        self.assertEqual(y.tolist(), [2, 2, 2])
        self.finish()
        self.assertIn("1 check went wrong inside plumb; the first: add.Tensor: ZeroDivisionError",
                      self.said)

    def test_kernel_exceptions_pass(self) -> None:  # rule 1
        self.enable()
        with plumb.precision_check(), self.assertRaisesRegex(RuntimeError, "must match"):
            torch.ones(2) + torch.ones(3)

    def test_large_inputs_are_skipped(self) -> None:  # rule 2
        self.enable()
        zeros = lambda x: torch.zeros_like(x)
        self.assertEqual(self.verdict("aten::exp", zeros, torch.ones(1 << 20, 1)[:, :0]), "")
        self.assertEqual(self.verdict("aten::exp", zeros, torch.ones((1 << 20) + 1)), "")
        self.assertIn("FAIL", self.verdict("aten::exp", zeros, torch.ones(1 << 20)))

    def test_half_types_get_tolerance(self) -> None:  # rule 3
        self.enable(log_once=False)
        off = lambda x: -x * 1.005
        for dtype in (torch.float16, torch.bfloat16):
            self.assertEqual(self.verdict("aten::neg", off, torch.ones(4, dtype=dtype)), "")
        self.assertIn("rtol=0.0001, atol=1e-05", self.verdict("aten::neg", off, torch.ones(4)))
        far = self.verdict("aten::neg", lambda x: -x * 1.05, torch.ones(4, dtype=torch.float16))
        self.assertTrue(far.endswith("rtol=0.01, atol=0.01"), far)
        # The first floating input decides, not the largest type.
        mixed = self.verdict("aten::mul.Tensor", lambda a, b: a * b * 1.005,
                             torch.ones(4, dtype=torch.float16), torch.ones(4))
        self.assertEqual(mixed, "")

    def test_half_overflow_is_no_fault(self) -> None:
        self.enable()
        x = torch.full((3,), 60000.0, dtype=torch.float16)
        self.assertEqual(self.verdict("aten::add.Tensor", lambda a, b: a + b, x, x), "")

    def test_never_checked(self) -> None:  # rule 4
        self.enable()
        with plumb.precision_check():
            x = torch.zeros(4, 4)
            x.view(16).clone().copy_(torch.ones(16)).uniform_()
            torch.sort(x), torch.topk(x, 2), x.t().contiguous(), x.masked_fill_(x > 2, 1)
            torch.add(x, x, out=torch.empty(4, 4))
            x[0].expand(2, 4).unbind(), torch.randperm(5), torch.full((2,), 3.0), x.float().half()
            torch.rand(3), torch.nn.functional.rrelu(x, training=True)
        self.assertEqual(set(self.finish()), {"gt.Scalar"})

    def test_schemas_tell_what_names_do_not(self) -> None:  # rule 4
        aten = torch.ops.aten
        for func, why in ((aten.bernoulli.default, "random"),
                          (aten.native_dropout.default, None),  # its arguments say
                          (aten.mm.out, "writes into a given tensor"),
                          (aten.diagonal.default, "a view or a layout"), (aten.mm.default, None),
                          (aten.add_.Tensor, None), (aten._foreach_add_.Scalar, None)):
            self.assertEqual(check.why_unfit(func), why)

    def test_random_state_is_left_alone(self) -> None:
        def draw() -> torch.Tensor:
            torch.manual_seed(1)
            x = torch.nn.functional.dropout(torch.ones(50), 0.5)
            return torch.cat([x.exp(), torch.rand(5)])
        plain = draw()
        self.enable()
        with plumb.precision_check():
            watched = draw()
        self.assertTrue(torch.equal(plain, watched))

    def test_in_place_operators_are_compared_with_the_state_before(self) -> None:  # rule 5
        self.enable(log_once=False)
        for _ in range(3):
            x = torch.ones(4)
            with plumb.precision_check():
                x.add_(2)
                x.mul_(x)  # the same tensor twice
            self.assertEqual(x.tolist(), [9] * 4)
        self.assertEqual(self.lines(), [])

        def twice(x: torch.Tensor, y: torch.Tensor, alpha: float = 1) -> torch.Tensor:
            x.copy_(x + 2 * y)
            return x
        self.assertIn("max_abs: 1.000000e+00",
                      self.verdict("aten::add_.Tensor", twice, torch.ones(3), torch.ones(3)))
        table = self.finish()
        self.assertEqual(table["add_.Tensor"]["Failed"], 1)
        self.assertEqual(table["mul_.Tensor"]["Checked"], 3)

    def test_operators_that_return_nothing(self) -> None:
        self.enable()

        def half_done(xs: List[torch.Tensor], value: float) -> None:
            xs[0].add_(value)
        line = self.verdict("aten::_foreach_add_.Scalar", half_done,
                            [torch.ones(2), torch.ones(2)], 1.0)
        self.assertIn("| output 1 | max_abs: 1.000000e+00", line)

    def test_log_once_and_max_checks(self) -> None:
        bad = lambda x: x * 2
        for once, most, wanted in ((True, 10, 1), (False, 3, 3), (False, 0, 0)):
            self.log.unlink(missing_ok=True)
            self.enable(log_once=once, max_checks=most)
            kernel = plumb.checked(bad, "aten::neg")
            for _ in range(6):
                kernel(torch.ones(2))
            self.assertEqual(len(self.lines()), wanted)
        self.enable(max_checks=4)
        with plumb.precision_check():
            for _ in range(9):
                torch.ones(2).neg()
        row = self.finish()["neg"]
        self.assertEqual((row["Calls"], row["Checked"]), (9, 4))

    def test_disabled_wraps_nothing(self) -> None:  # rule 8
        with plumb.precision_check():
            self.assertEqual(_get_current_dispatch_mode_stack(), [])
        calls: List[Any] = []

        class Library:
            def impl(self, *args: Any) -> None:
                calls.append(args)
        kernel = lambda x: -x
        plumb.PrecisionCheckRegister([("neg", kernel)], lib=Library(), dispatch_key="CPU")
        self.assertEqual(calls, [("neg", kernel, "CPU")])


class SilentPasses(OnlineCheck):
    """What the origin lets through."""

    def test_special_values(self) -> None:
        self.enable(log_once=False)
        pairs = ((INF, -INF, "inf instead of -inf"), (NAN, INF, "nan instead of inf"),
                 (-INF, NAN, "-inf instead of nan"), (NAN, 1.0, "nan instead of 1.0"),
                 (1.0, INF, "1.0 instead of inf"))
        for got, right, text in pairs:
            line = self.verdict("aten::neg", lambda x: torch.tensor([0.0, got]),
                                torch.tensor([0.0, -right]))
            self.assertIn(f"special_value_mismatch: {text} at [1]", line)
        same = torch.tensor([NAN, INF, -INF])
        self.assertEqual(self.verdict("aten::neg", lambda x: -x, same), "")

    def test_missing_and_uncounted_outputs(self) -> None:
        self.enable(log_once=False)
        x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
        line = self.verdict("aten::max.dim", lambda x, d: (torch.tensor([3.0, 5.0]),), x, 0)
        self.assertIn("output_count_mismatch: 1 outputs instead of 2", line)
        line = self.verdict("aten::max.dim", lambda x, d: (torch.tensor([3.0, 5.0]), None), x, 0)
        self.assertIn("output 1 | missing_output: None instead of (2,):torch.int64", line)
        line = self.verdict("aten::max.dim",
                            lambda x, d: (torch.tensor([3.0, 5.0]), torch.tensor([1, 1])), x, 0)
        self.assertIn("output 1 | max_abs: 1.000000e+00", line)

    def test_shapes_and_types(self) -> None:
        self.enable(log_once=False)
        self.assertIn("shape_mismatch: (1, 2) instead of (2,)",
                      self.verdict("aten::neg", lambda x: -x[None], torch.ones(2)))
        self.assertIn("dtype_mismatch: torch.int64 instead of",
                      self.verdict("aten::neg", lambda x: -x.long(), torch.ones(2)))

    def test_integers_beyond_floats(self) -> None:
        self.enable(log_once=False)
        for big in ((1 << 24) + 1, (1 << 53) + 1):
            x = torch.tensor([big])
            self.assertEqual(self.verdict("aten::neg", lambda x: -x, x), "")
            line = self.verdict("aten::neg", lambda x: -x + 1, x)
            self.assertIn("max_abs: 1.000000e+00", line)

    def test_imaginary_parts(self) -> None:
        self.enable(log_once=False)
        x = torch.tensor([1 + 2j, 3 - 1j])
        self.assertEqual(self.verdict("aten::mul.Tensor", lambda a, b: a * b, x, x), "")
        line = self.verdict("aten::mul.Tensor", lambda a, b: (a * b).real + 0j, x, x)
        self.assertIn("max_abs: 6.000000e+00", line)


class Kernels(OnlineCheck):
    def test_planted_fault_in_a_registered_kernel(self) -> None:
        def good(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(__import__("numpy").tanh(x.detach().numpy()))

        def bad(x: torch.Tensor) -> torch.Tensor:
            y = good(x)
            y.view(-1)[-1] += 0.01
            return y
        self.enable()
        x = torch.randn(5, 7)
        with registered(tanh=good), plumb.precision_check():
            torch.tanh(x)
        self.assertEqual(self.lines(), [])
        with registered(tanh=bad), plumb.precision_check():
            wrong = torch.tanh(x)
        self.assertAlmostEqual(float(wrong[-1, -1]), float(good(x)[-1, -1]) + 0.01, 5)
        self.assertRegex(
            self.lines()[0], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[WARNING\] Op: tanh \| FAIL \| "
            r"in: \[\(5, 7\):torch.float32\] \| out: \(5, 7\):torch.float32 \| "
            r"max_abs: (?:1\.0|9\.99)\d+e-0[23] \| max_rel: \S+ \| rtol=0.0001, atol=1e-05$")
        row = self.finish()["tanh"]
        self.assertEqual((row["Checked"], row["Failed"]), (2, 1))
        self.assertIn("test_online_check.py", row["First failed at"])
        self.assertIn("in test_planted_fault_in_a_registered_kernel", self.said)

    def test_replaced_cpu_kernels_are_judged_by_a_clean_process(self) -> None:
        self.enable()
        x = torch.ones(4)
        with registered(special_airy_ai=lambda x: x * 1), plumb.precision_check():
            torch.special.airy_ai(x)
        self.assertEqual(self.finish()["special_airy_ai"]["Failed"], 1)

    def test_native_kernels_without_another_reference_are_not_judged_by_themselves(self) -> None:
        self.enable()
        with plumb.precision_check():
            torch.special.airy_ai(torch.ones(4))
        self.assertEqual(self.finish(), {})
        self.assertIn("the native kernel itself ran", self.said)

    def test_registrar(self) -> None:
        self.enable()
        library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            register = plumb.PrecisionCheckRegister(
                (("sinh", lambda x: x * 2), ("cosh", lambda x: torch.exp(x) / 2), ("tan", None)),
                user_unused_ops_list=["tan"], lib=library, dispatch_key="CPU")
            register.register_impl("asinh", lambda x: torch.log(x + torch.sqrt(x * x + 1)))
        x = torch.ones(3)
        torch.sinh(x), torch.asinh(x), torch.cosh(x), torch.exp(x)
        library.m = None
        self.assertEqual(register.get_all_keys(), ["sinh", "cosh", "asinh"])
        table = self.finish()
        self.assertEqual({name: row["Failed"] for name, row in table.items()},
                         {"sinh": 1, "cosh": 1, "asinh": 0})

    def test_operators_plumb_lacks_are_run_by_a_clean_process(self) -> None:
        self.enable(log_once=False)
        x = torch.ones(4)
        name = "aten::special_airy_ai"
        self.assertFalse(plumb._core.has_op("Aten", "special_airy_ai"))
        self.assertEqual(self.verdict(name, torch.ops.aten.special_airy_ai, x), "")
        self.assertIn("FAIL", self.verdict(name, lambda x: x, x))
        worker = guard.current().worker
        os.kill(worker.process.pid, signal.SIGILL)  # it is started again
        self.assertEqual(self.verdict(name, torch.ops.aten.special_airy_ai, x), "")
        self.assertIn("FAIL", self.verdict(name, lambda x: x, x))
        os.kill(worker.process.pid, signal.SIGSTOP)
        seconds, clean_worker.CALL_SECONDS = clean_worker.CALL_SECONDS, 0.5
        try:
            self.assertEqual(self.verdict(name, lambda x: x, x), "")
        finally:
            clean_worker.CALL_SECONDS = seconds
        table = self.finish()
        row = table["special_airy_ai"]
        self.assertEqual((row["Checked"], row["Failed"]), (3, 2))
        self.assertIn("2 checks went wrong inside plumb; the first: special_airy_ai: WorkerError",
                      self.said)
        self.assertIn("it was ended by SIGILL (an instruction that this machine does not have; in a "
                      "virtual machine set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)", self.said)

    def test_tensors_of_another_device_are_judged_by_the_native_operator(self) -> None:
        class Far(torch.Tensor):
            """Says it is on another device; holds its values in `held`."""
            __torch_function__ = torch._C._disabled_torch_function_impl

            @staticmethod
            def __new__(cls, inner: torch.Tensor) -> "Far":
                far = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype,
                                                          device=torch.device("xla"))
                far.held = inner
                return far

            @classmethod
            def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
                held = lambda x: x.held if isinstance(x, Far) else x
                kwargs = {k: v for k, v in (kwargs or {}).items() if k != "device"}
                result = func(*[held(x) for x in args], **kwargs)
                if func._schema.name in ("aten::_to_copy", "aten::to"):
                    return result
                if func is torch.ops.aten.sigmoid.default:
                    result = result + 0.5
                return Far(result)
        self.enable()
        x = Far(torch.ones(3))
        with plumb.precision_check():
            torch.erf(x)
            torch.special.airy_ai(x)  # nothing that plumb has
            y = torch.sigmoid(x)
        self.assertIsInstance(y, Far)
        table = self.finish()
        self.assertEqual({name: row["Failed"] for name, row in table.items()},
                         {"sigmoid": 1, "erf": 0, "special_airy_ai": 0})
        self.assertEqual(table["erf"]["MaxAbsErr"], 0)  # the very same operator
        self.enable(reference="float64")
        with plumb.precision_check():
            torch.erf(x)
            torch.special.airy_ai(x)
        table = self.finish()
        self.assertGreater(table["erf"]["MaxAbsErr"], 0)  # float64 tells the rounding
        self.assertEqual(table["special_airy_ai"]["MaxAbsErr"], 0)  # plumb has none


class Modes(OnlineCheck):
    def test_names(self) -> None:
        def run(**names: Any) -> set:
            self.enable()
            with plumb.precision_check(**names):
                x = torch.ones(2, 2)
                torch.mm(x, x), x + x, x + 1, x * x, x.add_(x)
            return set(self.finish())
        self.assertEqual(run(), {"mm", "add.Tensor", "mul.Tensor", "add_.Tensor"})
        self.assertEqual(run(include=["mm", "add"]), {"mm", "add.Tensor"})
        self.assertEqual(run(include=["add.Tensor"]), {"add.Tensor"})
        self.assertEqual(run(include=["aten::mul.Tensor", "clone"]), {"mul.Tensor"})
        self.assertEqual(run(exclude=["add", "aten::mm"]), {"mul.Tensor", "add_.Tensor"})
        self.assertEqual(run(include=[]), set())
        with self.assertRaises(TypeError):
            plumb.precision_check(include="mm")

    def test_training_gives_the_same_bits(self) -> None:
        def run(watch: bool, cast: bool) -> List[torch.Tensor]:
            model, ids = gpt_model.make(gpt_model.Config(dropout=0.1), seed=3)
            optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
            values = []
            self.enable()
            with plumb.precision_check() if watch else contextlib.nullcontext():
                for _ in range(3):
                    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
                        values.append(gpt_model.train(model, ids, optimiser))
                with torch.no_grad():
                    values.append(model(ids))
                with torch.inference_mode():
                    values.append(model(ids).clone())
            values += [p.grad for p in model.parameters()] + [p.data for p in model.parameters()]
            self.table = self.finish()
            return values
        for cast in (False, True):
            plain, watched = run(False, cast), run(True, cast)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(plain, watched)))
            self.assertGreater(len(self.table), 15)
            self.assertIn("native_layer_norm_backward", self.table)  # backward is seen too
            failed = {name for name, row in self.table.items() if row["Failed"]}
            # PyTorch 1.13 adds up in bfloat16 here: a finding, not a fault of the check.
            self.assertLessEqual(failed, {"bmm"} if cast else set(), self.said)
            self.assertNotIn("went wrong", self.said)

    def test_leaves_by_itself_after_a_whole_pass(self) -> None:
        class Other(TorchDispatchMode):
            seen = 0

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
                Other.seen += 1
                return func(*args, **(kwargs or {}))
        self.enable(max_checks=2)
        x = torch.ones(3)
        with Other():
            with plumb.precision_check():
                with Other():
                    for _ in range(400):
                        y = torch.neg(x)
                    stack = _get_current_dispatch_mode_stack()
                    self.assertEqual([type(mode) for mode in stack], [Other, Other])
                self.assertEqual(len(_get_current_dispatch_mode_stack()), 1)
                before = Other.seen
                torch.neg(x)
                self.assertEqual(Other.seen, before + 1)
            self.assertEqual(len(_get_current_dispatch_mode_stack()), 1)
        self.assertEqual(_get_current_dispatch_mode_stack(), [])
        self.assertIsNone(sys.getprofile())
        row = self.finish()["neg"]
        self.assertEqual(row["Checked"], 2)
        self.assertLess(row["Calls"], 400)

    def test_leaves_during_a_backward_and_after_an_exception(self) -> None:
        self.enable(max_checks=1)
        with self.assertRaises(KeyError), plumb.precision_check():
            x = torch.ones(2, requires_grad=True)
            y = x
            for _ in range(150):
                y = y * 1.0
            for _ in range(4):  # quiet in the middle of the second
                torch.autograd.grad(y.sum(), x, retain_graph=True)
            y.sum().backward()
            self.assertEqual(_get_current_dispatch_mode_stack(), [])
            raise KeyError
        self.assertEqual(_get_current_dispatch_mode_stack(), [])
        self.assertEqual(x.grad.tolist(), [1, 1])

    def test_somebody_elses_profiler_stays(self) -> None:
        self.enable(max_checks=1)
        hook = lambda *_: None
        sys.setprofile(hook)
        try:
            with plumb.precision_check():
                for _ in range(600):
                    torch.ones(1).neg()
                self.assertIs(sys.getprofile(), hook)
        finally:
            sys.setprofile(None)
        self.assertEqual(_get_current_dispatch_mode_stack(), [])

    def test_threads(self) -> None:
        self.enable(max_checks=50)
        problems: List[BaseException] = []

        def work() -> None:
            try:
                with plumb.precision_check():
                    for _ in range(100):
                        x = torch.randn(8, 8, requires_grad=True)
                        (x @ x).tanh().sum().backward()
            except BaseException as error:
                problems.append(error)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        table = self.finish()
        self.assertEqual(table["tanh"]["Checked"], 50)
        self.assertGreaterEqual(table["tanh"]["Calls"], 50)
        self.assertNotIn("went wrong", self.said)

    def test_checks_own_calls_are_not_checked(self) -> None:
        self.enable(log_once=False)
        # The check itself calls clone, for the state before an in-place operator.
        with registered(clone=plumb.checked(lambda x, **_: x * 1, "aten::neg")):
            plumb.checked(lambda x: x.mul_(-1), "aten::neg_")(torch.ones(2))
        self.assertEqual(set(self.finish()), {"neg_"})


class Logs(OnlineCheck):
    def bad_call(self) -> None:
        plumb.checked(lambda x: x + 1, "aten::neg")(torch.zeros(2, 3))

    def test_json_lines(self) -> None:
        self.enable(log_format="jsonl", save_failures=False)
        self.bad_call()
        line = json.loads(self.lines()[0])
        self.assertRegex(line.pop("timestamp"), r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
        self.assertGreater(line.pop("max_ulp"), 1e6)
        self.assertEqual(line, {"op": "neg", "status": "FAIL", "inputs": ["(2, 3):torch.float32"],
                                "output": "(2, 3):torch.float32", "rtol": 1e-4, "atol": 1e-5,
                                "max_abs_diff": 1.0, "max_rel_diff": 1e12})

    def test_default_path(self) -> None:
        code = ("import plumb, torch; plumb.enable_precision_check(); "
                "plumb.checked(lambda x: x + 1, 'neg')(torch.zeros(2))")
        done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "HOME": self.folder.name,
                                   "PYTHONPATH": str(BUILD / "python")})
        self.assertEqual(done.returncode, 0, done.stderr)
        log = Path(self.folder.name) / ".plumb" / "precision.log"
        self.assertIn("Op: neg | FAIL", log.read_text())
        self.assertTrue((log.parent / "precision.failures" / "neg.0" / "dump.json").exists())
        self.assertIn("1 failed, of 1 operator", done.stderr)  # told at the end of the program

    def test_unwritable_path(self) -> None:
        with self.assertWarnsRegex(UserWarning, "cannot be written.*go to stderr"):
            self.enable(path="/dev/null/precision.log")
        with plumb.precision_check():
            self.assertEqual((torch.ones(2) + 1).tolist(), [2, 2])
        self.assertEqual(self.finish()["add.Tensor"]["Checked"], 1)

    def test_wrong_settings(self) -> None:
        for wrong in ({"log_format": "xml"}, {"rtol": -1.0}, {"reference": "maybe"}):
            with self.assertRaises((plumb.Error, ValueError)):
                self.enable(**wrong)
        self.assertIsNone(guard.current())

    def test_replay(self) -> None:
        self.enable()
        self.bad_call()
        self.finish()
        folder = self.log.with_suffix(".failures") / "neg.0"
        self.assertIn(f"plumb replay {folder}", self.said)
        test = Path(self.folder.name) / "test_neg.py"
        for path in (folder, folder / "dump.json"):
            done = subprocess.run([BUILD / "plumb", "replay", path, "--pytest", test], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2 if test.exists() and path != folder else 1,
                             done.stderr)
            self.assertRegex(done.stdout, r"saved kernel output +FAIL +max_abs 1\.0+e\+00")
            self.assertRegex(done.stdout, r"cpu +pass")
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        self.assertEqual(subprocess.run([sys.executable, test], env=environment,
                                        stderr=subprocess.DEVNULL).returncode, 0)
        self.assertNotIn(self.folder.name, test.read_text())
        deeper = Path(self.folder.name) / "tests" / "kernels" / "test_neg.py"
        deeper.parent.mkdir(parents=True)
        subprocess.run([BUILD / "plumb", "replay", folder, "--pytest", deeper],
                       stdout=subprocess.DEVNULL)
        other = "/var/tmp" if self.folder.name.startswith("/dev/") else "/dev/shm"
        far = Path(other) / f"plumb_test_neg_{os.getpid()}.py"
        self.addCleanup(far.unlink)
        subprocess.run([BUILD / "plumb", "replay", folder, "--pytest", far],
                       stdout=subprocess.DEVNULL)
        self.assertIn(f"FAILURE = '{os.path.realpath(folder)}'\n", far.read_text())
        # Test and failure are found where they are moved together.
        moved = tempfile.TemporaryDirectory()
        self.addCleanup(moved.cleanup)
        shutil.copytree(self.folder.name, moved.name, dirs_exist_ok=True)
        folder.rename(folder.with_name("elsewhere"))
        for name in ("test_neg.py", "tests/kernels/test_neg.py"):
            done = subprocess.run([sys.executable, Path(moved.name) / name], env=environment,
                                  text=True, cwd="/", stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(subprocess.run([sys.executable, test], env=environment,
                                           stderr=subprocess.DEVNULL).returncode, 0)
        folder.with_name("elsewhere").rename(folder)
        verdict = guard.replay(folder)
        self.assertTrue(verdict["passed"])
        with registered(neg=lambda x: x + 1):
            self.assertEqual(guard.replay(folder)["error"], "not_close")
        subprocess.run([BUILD / "plumb", "acc_check", folder / "dump.json", "-o", self.folder.name],
                       stdout=subprocess.DEVNULL, check=True)
        (result,) = Path(self.folder.name).glob("accuracy_checking_result*")
        self.assertRegex(result.read_text(), r"Aten\.neg\.0,pass")


if __name__ == "__main__":
    unittest.main()
