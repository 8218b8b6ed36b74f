"""The online precision check as people use it: blocks inside blocks, odd kernels, odd settings."""

import os
import re
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from typing import Any, Iterator, List, Tuple

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import plumb
from plumb import guard
from test_online_check import OnlineCheck, registered


class Far(torch.Tensor):
    """Says it is on another device; holds its values in `held`. mm of halves is off by one, and
    relu changes what it is given."""
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "Far":
        far = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype,
                                                  device=torch.device("xla"))
        far.held = inner
        return far

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = [x.held if isinstance(x, Far) else x for x in args]
        kwargs = {k: v for k, v in (kwargs or {}).items() if k != "device"}
        if func is torch.ops.aten.mm.default and args[0].dtype is torch.float16:
            return Far((args[0].float() @ args[1].float() + 1).half())
        if func is torch.ops.aten.relu.default:
            return Far(args[0].clamp_(min=0).clone())
        result = func(*args, **kwargs)
        return result if func._schema.name in ("aten::_to_copy", "aten::to") else Far(result)


class Blocks(OnlineCheck):
    def test_of_nested_blocks_the_innermost_decides(self) -> None:
        self.enable(max_checks=4)
        x = torch.ones(2)
        with plumb.precision_check():
            with plumb.precision_check(exclude=["neg"]):
                for _ in range(3):
                    x.neg(), x.exp()
            x.neg(), x.exp()
        table = self.finish()
        self.assertEqual({name: (row["Calls"], row["Checked"]) for name, row in table.items()},
                         {"neg": (1, 1), "exp": (4, 4)})

    def test_disabling_inside_a_block_ends_it(self) -> None:
        self.enable(log_once=False)
        with registered(neg=lambda x: x + 1), plumb.precision_check():
            torch.ones(2).neg()
            first = guard.current()
            self.finish()
            torch.ones(2).neg()
            self.assertEqual(_get_current_dispatch_mode_stack(), [])
            torch.ones(2).neg()
        self.assertEqual(len(self.lines()), 1)
        self.assertIsNone(first.worker.process)
        self.enable()  # ends one, begins another
        with plumb.precision_check():
            self.enable()
            torch.ones(2).neg()
        self.assertEqual(self.finish(), {})

    def test_generators_end_in_any_order(self) -> None:
        def steps() -> Iterator[None]:
            with plumb.precision_check():
                yield
                yield
        self.enable()
        a, b = steps(), steps()
        next(a), next(b), a.close()
        torch.ones(2).neg()
        b.close()
        self.assertEqual(_get_current_dispatch_mode_stack(), [])
        torch.ones(2).exp()
        self.assertEqual(set(self.finish()), {"neg"})

    def test_other_modes_do_not_see_the_check(self) -> None:
        seen: List[str] = []

        class Other(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))
        self.enable()
        x, far = torch.ones(2), Far(torch.ones(2))
        with Other():
            with plumb.precision_check():
                x.add_(1), far.erf()
            self.assertEqual(len(_get_current_dispatch_mode_stack()), 1)
        self.assertEqual(seen, ["aten.add_.Tensor", "aten.erf.default"])
        self.assertEqual(set(self.finish()), {"add_.Tensor", "erf"})

    def test_only_the_thread_of_the_block(self) -> None:
        self.enable()
        x = torch.ones(2, requires_grad=True)
        with plumb.precision_check():
            y = (x * x).sum()
            for work in (torch.ones(2).neg, y.backward):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            with torch.no_grad():
                x.exp()
        self.assertEqual(set(self.finish()), {"mul.Tensor", "sum", "exp"})
        self.assertEqual(x.grad.tolist(), [2, 2])


class Faults(OnlineCheck):
    def test_kernels_that_write_into_their_inputs(self) -> None:
        def relu(x: torch.Tensor) -> torch.Tensor:
            return x.clamp_(min=0).clone()

        def neg(x: torch.Tensor) -> torch.Tensor:
            return x.mul_(2).mul(-1)
        self.enable(log_once=False)
        changed = "input_changed: the kernel changed its input tensor 0"
        self.assertIn(changed, self.verdict("aten::relu", relu, torch.tensor([-1.0, 2.0])))
        self.assertEqual(self.verdict("aten::relu", relu, torch.tensor([1.0, float("nan")])), "")
        # Not with what the kernel left there: that would be right.
        self.assertIn("max_abs: 2.0", self.verdict("aten::neg", neg, torch.tensor([-1.0, 2.0])))
        with registered(relu=relu), plumb.precision_check():
            torch.relu(torch.tensor([-1.0, 2.0]))
        self.assertIn(changed, self.lines()[-1])
        with plumb.precision_check():
            torch.relu(Far(torch.tensor([-3.0, 2.0])))
        self.assertEqual(len([line for line in self.lines() if changed in line]), 3)
        # Running statistics are no mistake, though no schema has them.
        mean, one = torch.zeros(3), torch.ones(3)
        self.assertEqual(self.verdict("aten::native_batch_norm", torch.ops.aten.native_batch_norm,
                                      torch.randn(4, 3), one, one, mean, one.clone(), True, 0.1,
                                      1e-5), "")
        self.assertNotEqual(mean.tolist(), [0, 0, 0])

    def test_wider_and_narrower_types(self) -> None:
        self.enable(log_once=False)
        half = torch.ones(2, dtype=torch.float16)
        for kernel, x, text in (
                (lambda x: -x.double(), torch.ones(2), "torch.float64 instead of torch.float32"),
                (lambda x: -x.float(), half, "torch.float32 instead of torch.float16"),
                (lambda x: -x.int(), torch.tensor([1]), "torch.int32 instead of torch.int64")):
            self.assertIn(f"dtype_mismatch: {text}", self.verdict("aten::neg", kernel, x))
        self.assertEqual(self.verdict("aten::neg", lambda x: -x, half), "")
        # Types that follow from the arguments.
        self.assertEqual(self.verdict("aten::sum", lambda x: x.sum(), torch.ones(2).bool()), "")
        line = self.verdict("aten::add.Tensor", lambda a, b: (a + b).half(), half, torch.ones(2))
        self.assertIn("dtype_mismatch", line)

    def test_a_call_without_a_reference_does_not_end_the_operator(self) -> None:
        self.enable()
        x = torch.ones(2)
        with plumb.precision_check():
            torch.sinc(x + 1j)  # plumb's sinc takes no complex numbers
            torch.sinc(x)
        self.assertEqual(self.finish()["sinc"]["Checked"], 1)
        self.assertRegex(self.said, r"not checked, no reference: .*: sinc \(some calls\)")

    def test_operators_that_compute_and_are_not_checked_are_named(self) -> None:
        self.enable()
        x = torch.randn(3, 4)
        with plumb.precision_check():
            torch.sort(x), torch.topk(x, 2), x.clone().masked_fill_(x > 0, 1.0)
            torch.sin(x, out=torch.empty(3, 4))
            x.view(12).clone(), torch.rand(3), torch.zeros(3)
        self.finish()
        for line in (r"not checked, its order is free: sort.*, topk", r"not checked, .*: masked_fill_\.Scalar",
                     r"not checked, writes into a given tensor: sin\.out"):
            self.assertRegex(self.said, line)
        for name in ("view", "clone", "rand", "zeros"):
            self.assertNotRegex(self.said, rf"not checked.*\b{name}\b")
        self.enable()
        with plumb.precision_check(exclude=["sort"]):
            torch.sort(x)
        self.finish()
        self.assertNotIn("sort", self.said)

    def test_what_the_cpu_refuses_is_judged_by_plumb(self) -> None:
        self.enable()
        half, single = Far(torch.ones(2, 2, dtype=torch.float16)), Far(torch.ones(2, 2))
        with plumb.precision_check():
            torch.mm(single, single), torch.mm(half, half)
        row = self.finish()["mm"]
        self.assertEqual((row["Checked"], row["Failed"]), (2, 1))

    def test_a_replaced_cpu_kernel_is_no_reference_for_devices_either(self) -> None:
        self.enable()
        with registered(special_airy_ai=lambda x: x * 0), plumb.precision_check():
            torch.special.airy_ai(Far(torch.ones(3)))
        self.assertEqual(self.finish()["special_airy_ai"]["Failed"], 1)

    def test_libraries_of_ones_own(self) -> None:
        library = torch.library.Library("plumb_test", "DEF")
        library.define("add.Tensor(Tensor a, Tensor b) -> Tensor")
        library.define("touch(Tensor(a!) a) -> ()")
        self.enable()
        library.impl("add.Tensor", plumb.checked(lambda a, b: a + b, "plumb_test::add.Tensor"),
                     "CPU")
        library.impl("touch", lambda a: None, "CPU")
        x = torch.ones(2)
        with plumb.precision_check():
            self.assertEqual(torch.ops.plumb_test.add(x, x).tolist(), [2, 2])
            torch.ops.plumb_test.touch(x)
        self.assertEqual(self.finish(), {})
        self.assertRegex(self.said, r"not checked, .*: .*plumb_test::add.Tensor")
        self.assertNotIn("went wrong", self.said)

    def test_which_kernels_are_registered(self) -> None:
        class Library:
            def impl(self, key: str, kernel: Any, dispatch_key: str) -> None:
                pass

        def twin(x: torch.Tensor) -> torch.Tensor:
            return x
        config = [("neg", lambda x: x), ("exp", twin), ("sin", twin, lambda: True),
                  ("cos", twin, lambda: False), ("tan", lambda x: x)]
        self.enable()
        for arguments, keys in (
                ({}, ["neg", "exp", "sin", "tan"]),
                ({"user_include_ops": ["twin", "tan"]}, ["exp", "sin", "tan"]),
                ({"user_include_ops_list": ["neg"]}, ["neg"]),
                ({"user_include_ops": ["neg", "tan"], "cpp_patched_ops": ["tan"]}, ["neg"]),
                ({"user_include_ops": [], "user_exclude_ops": ["twin"]}, ["neg", "tan"]),
                ({"user_exclude_ops_list": ["neg"]}, ["exp", "sin", "tan"]),
                ({"user_unused_ops_list": ["exp"], "cpp_patched_ops_list": ["neg"],
                  "full_config_by_func": {}}, ["sin", "tan"])):
            register = plumb.PrecisionCheckRegister(config, lib=Library(), **arguments)
            self.assertEqual(register.get_all_keys(), keys, arguments)

    def test_registering_what_this_pytorch_lacks(self) -> None:
        calls: List[Any] = []

        class Library:
            def impl(self, *args: Any) -> None:
                calls.append(args)
        kernel = lambda x: x
        self.enable()
        register = plumb.PrecisionCheckRegister(
            [("no_such_operator", kernel), ("neg.no_such_overload", kernel), ("neg", kernel)],
            lib=Library(), dispatch_key="CPU")
        self.assertEqual(register.get_all_keys()[0], "no_such_operator")
        self.assertEqual([call[1] is kernel for call in calls], [True, True, False])
        self.finish()
        self.assertIn("no such operator: no_such_operator, neg.no_such_overload", self.said)


class Script(torch.nn.Module):
    """TorchScript that runs when it is loaded, and writes a file."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    @torch.jit.export
    def __getstate__(self) -> Tuple[str, bool]:
        return self.path, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[str, bool]) -> None:
        self.path = state[0]
        self.training = state[1]
        torch.ops.aten.save("text of somebody else", self.path)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Replays(OnlineCheck):
    def test_failures_of_strangers(self) -> None:
        class Evil:
            def __reduce__(self) -> Any:
                return os.mkdir, (os.path.join(folder, "executed"),)
        folder = self.folder.name
        self.enable(save_failures=folder)
        plumb.checked(lambda x: x + 1, "neg")(torch.zeros(2))
        self.finish()
        saved = Path(folder) / "neg.0"
        self.assertTrue(guard.replay(saved)["passed"])
        dump, tensor = saved / "dump.json", next(saved.glob("dump_tensor_data/input*"))
        text, plain = dump.read_text(), tensor.read_bytes()
        torch.save(torch.zeros(2), Path(folder) / "outside.pt")
        (saved / "dump_tensor_data" / "link.pt").symlink_to("../../outside.pt")
        for name in ("../../outside.pt", "/" + folder + "/outside.pt", "link.pt", "..", ""):
            dump.write_text(text.replace(tensor.name, name))
            with self.assertRaisesRegex(ValueError, "no tensor of this failure"):
                guard.replay(saved)
        for op in ("aten::from_file", "aten::save", "load_library::x", "aten::neg.no_such"):
            dump.write_text(text.replace("aten::neg", op))
            with self.assertRaises((ValueError, AttributeError)):
                guard.replay(saved)
        dump.write_text(text)
        torch.save(Evil(), tensor)
        with self.assertRaises(Exception):
            guard.replay(saved)
        torch.jit.script(Script(os.path.join(folder, "executed"))).save(str(tensor))
        with self.assertRaises(Exception):
            guard.replay(saved)
        self.assertFalse((Path(folder) / "executed").exists())
        torch.save(torch.zeros(1).expand(1 << 40), tensor)  # 4 TiB out of a kilobyte
        with self.assertRaises(plumb.Error):
            guard.replay(saved)
        tensor.write_bytes(plain)
        self.assertTrue(guard.replay(saved)["passed"])


class Settings(OnlineCheck):
    def test_numbers_that_make_no_sense(self) -> None:
        for wrong in ({"max_checks": -1}, {"max_elements": -1}, {"max_checks": 2.5}):
            with self.assertRaises((ValueError, TypeError)):
                self.enable(**wrong)
        self.assertIsNone(guard.current())

    def test_names_that_are_none(self) -> None:
        for wrong in ({"include": "mm"}, {"exclude": "mm"}, {"include": [None]}, {"exclude": [1]}):
            with self.assertRaises(TypeError):
                plumb.precision_check(**wrong)

    def test_folders_are_made(self) -> None:
        deep = Path(self.folder.name) / "a" / "b" / "c"
        self.enable(save_failures=deep, path=Path(self.folder.name) / "d" / "e" / "log")
        plumb.checked(lambda x: x + 1, "neg")(torch.zeros(2))
        self.finish()
        self.assertTrue((deep / "neg.0" / "dump.json").exists())
        self.assertTrue((Path(self.folder.name) / "d" / "e" / "log").exists())

    def test_stderr_as_the_log(self) -> None:
        code = ("import plumb, torch; plumb.enable_precision_check(path='-'); "
                "plumb.checked(lambda x: x + 1, 'neg')(torch.zeros(2))")
        done = self.python(code)
        self.assertRegex(done.stderr, r"(?m)^\d{4}-.* Op: neg \| FAIL")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_user_without_a_home(self) -> None:
        code = ("import os, pwd; os.environ.pop('HOME', None); pwd.getpwuid = {}.__getitem__; "
                "import plumb, torch; plumb.enable_precision_check(); "
                "plumb.checked(lambda x: x + 1, 'neg')(torch.zeros(2))")
        done = self.python(code)
        self.assertIn("1 failed, of 1 operator", done.stderr)
        self.assertTrue((Path(self.folder.name) / ".plumb" / "precision.log").exists())

    def python(self, code: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run([sys.executable, "-c", code], text=True, stderr=subprocess.PIPE,
                              cwd=self.folder.name,
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_four_processes_share_a_log(self) -> None:
        code = ("import plumb, torch; plumb.enable_precision_check(path='log', max_checks=50, "
                "log_once=False); f = plumb.checked(lambda x: x + 1, 'neg')\n"
                "for _ in range(50): f(torch.zeros(2, 3))")
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "OMP_NUM_THREADS": "1"}
        programs = [subprocess.Popen([sys.executable, "-c", code], cwd=self.folder.name,
                                     env=environment, stderr=subprocess.DEVNULL) for _ in range(4)]
        self.assertEqual([program.wait() for program in programs], [0] * 4)
        lines = (Path(self.folder.name) / "log").read_text().splitlines()
        self.assertEqual(len(lines), 200)
        form = re.compile(r"[\d-]{10} [\d:]{8} \[WARNING\] Op: neg \| FAIL \| in: "
                          r"\[\(2, 3\):torch.float32\] \| out: \(2, 3\):torch.float32 \| "
                          r"max_abs: 1.000000e\+00 \| max_rel: 1.000000e\+12 \| "
                          r"rtol=0.0001, atol=1e-05")
        self.assertEqual([line for line in lines if not form.fullmatch(line)], [])
        saved = list(Path(self.folder.name).glob("log.failures/neg.*/dump.json"))
        self.assertEqual(len(saved), 200)


if __name__ == "__main__":
    unittest.main()
