"""The online check with other people's libraries and processes: registrars, workers, forks."""

import contextlib
import io
import multiprocessing
import os
import sys
import types
import unittest
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))

import torch

import plumb
from plumb._guard import register
from python_case import run_script
from test_online_check import OnlineCheck, registered


def bad(x: torch.Tensor) -> torch.Tensor:
    return x + 1


class Library:
    """Notes what is registered; refuses what is called so."""

    def __init__(self, *refused: str) -> None:
        self.calls: List[Tuple[str, str]] = []
        self.refused = refused

    def impl(self, key: str, kernel: Any, dispatch_key: str) -> None:
        if key in self.refused:
            raise RuntimeError(f"{key}: no such thing\nand more")
        self.calls.append((key, dispatch_key))


class Registrars(OnlineCheck):
    def register(self, config: List[Any], library: Library, **more: Any) -> Any:
        return plumb.PrecisionCheckRegister(config, lib=library,
                                            **{"dispatch_key": "CUDA", **more})

    def test_more_dispatch_keys(self) -> None:
        for enabled in (False, True):
            if enabled:
                self.enable()
            library = Library()
            self.register([("neg", bad, None, ("AutogradCUDA", "CUDA")), ("exp", bad, lambda: True, ()),
                           ("sin", bad, lambda: False, ("CPU",)), ("cos", bad, None, "Meta")], library)
            self.assertEqual(library.calls, [("neg", "CUDA"), ("neg", "AutogradCUDA"),
                                             ("exp", "CUDA"), ("cos", "CUDA"), ("cos", "Meta")])

    def test_a_kernel_that_cannot_be_registered(self) -> None:
        for enabled in (False, True):
            if enabled:
                self.enable()
            library = Library("exp")
            def broken() -> bool:
                raise KeyError("version")
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                register = self.register([("neg", bad), ("exp", bad), ("sin", bad, broken),
                                          ("tan",), ("cos", bad)], library)
            self.assertEqual(register.get_all_keys(), ["neg", "cos"])
            self.assertEqual(set(register.refused), {"exp", "sin", "tan"})
            self.assertEqual([str(each.message) for each in told][:2],
                             ["plumb: exp is not registered: RuntimeError: exp: no such thing",
                              "plumb: sin is not registered: KeyError: 'version'"])
        self.finish()
        self.assertIn("its kernel could not be registered: exp, sin, tan", self.said)

    def test_a_real_library_refuses_one(self) -> None:
        self.enable()
        library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            register = plumb.PrecisionCheckRegister(
                [("neg", bad), ("neg(", bad), ("sinh", bad)], lib=library, dispatch_key="CPU")
        torch.sinh(torch.ones(2))
        library.m = None
        self.assertEqual(register.get_all_keys(), ["neg", "sinh"])
        self.assertIn("neg( is not registered", "".join(str(each.message) for each in told))
        self.assertEqual(self.finish()["sinh"]["Failed"], 1)

    def test_names_that_match_nothing(self) -> None:
        config = [("neg", bad), ("exp", bad)]
        for arguments, text in (({"user_include_ops": ["nge"]}, "nge; nothing is registered"),
                                ({"user_include_ops_list": ["neg", "xep"]}, "included: xep$")):
            with self.assertWarnsRegex(UserWarning, text):
                self.register(config, Library(), **arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.register(config, Library(), user_include_ops=["neg"])
            self.register(config, Library(), user_include_ops=["bad"])  # the kernel's name
            full = self.register([], Library(), user_include_ops=["bad"],
                                 full_config_by_func={"bad": [("neg", bad), ("exp", bad)]})
        self.assertEqual(full.get_all_keys(), ["neg", "exp"])
        self.enable()
        with self.assertWarnsRegex(UserWarning, "no operator that ran is called mmm"):
            with plumb.precision_check(include=["mmm"]):
                torch.ones(2) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with plumb.precision_check(include=["mmm", "add"]):
                torch.ones(2) + 1
            with plumb.precision_check(include=["neg"]):
                with plumb.precision_check():
                    torch.ones(2).neg()
            with self.assertRaises(KeyError), plumb.precision_check(include=["neg"]):
                raise KeyError

    def test_what_the_vendor_excludes(self) -> None:
        config = [("neg", bad), ("exp", self.kernel_of("gems_of_a_test"))]
        register = self.register(config, Library(), vendor_unused_ops=["neg"])
        self.assertEqual(register.get_all_keys(), ["exp"])
        asked: List[str] = []

        def unused(vendor: str) -> List[str]:
            asked.append(vendor)
            return ["exp"]
        package = {"gems_of_a_test": types.ModuleType("gems_of_a_test"),
                   "gems_of_a_test.runtime": types.SimpleNamespace(
                       device=types.SimpleNamespace(vendor_name="acme")),
                   "gems_of_a_test.runtime.backend": types.SimpleNamespace(get_unused_ops=unused)}
        sys.modules.update(package)
        try:
            register = self.register(config, Library())
            self.assertEqual((register.get_all_keys(), asked), (["neg"], ["acme"]))
            self.assertEqual(register.get_unused_ops(), ["exp"])
            wanted = self.register(config, Library(), user_include_ops=["exp"])
            self.assertEqual(wanted.get_all_keys(), ["exp"])  # asked for by name
        finally:
            for name in package:
                del sys.modules[name]

    @staticmethod
    def kernel_of(package: str) -> Any:
        def kernel(x: torch.Tensor) -> torch.Tensor:
            return x
        kernel.__module__ = f"{package}.ops.kernel"
        return kernel

    def test_where_kernels_belong(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.only_device(backend="acme"):
                self.assertEqual(register.default_dispatch_key(), "PrivateUse1")
            with self.only_device(kernel=True):
                self.assertEqual(register.default_dispatch_key(), "PrivateUse1")
        with self.only_device(backend="privateuseone"), self.assertWarnsRegex(UserWarning, "CPU"):
            self.assertEqual(register.default_dispatch_key(), "CPU")

    @contextlib.contextmanager
    def only_device(self, backend: str = "", kernel: bool = False) -> Iterator[None]:
        """No CUDA; a private back end that has that name, or that kernel."""
        changes: Dict[Tuple[Any, str], Any] = {
            (torch.cuda, "is_available"): lambda: False,
            (torch._C, "_dispatch_has_kernel_for_dispatch_key"): lambda *_: kernel}
        if backend:
            changes[(torch._C, "_get_privateuse1_backend_name")] = lambda: backend
        missing = object()
        before = {place: getattr(*place, missing) for place in changes}
        for place, value in changes.items():
            setattr(*place, value)
        try:
            yield
        finally:
            for place, value in before.items():
                delattr(*place) if value is missing else setattr(*place, value)

    def test_block_and_registrar_count_once(self) -> None:
        library = torch.library.Library("aten", "IMPL")
        self.enable(log_once=False, max_checks=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plumb.PrecisionCheckRegister([("sinh", bad), ("erf", torch.special.erfc)], lib=library,
                                         dispatch_key="CPU")
        x = torch.ones(2)
        try:
            with plumb.precision_check():
                torch.sinh(x), torch.sinh(x)
            torch.sinh(x)
            with plumb.precision_check(exclude=["erf"]):
                torch.erf(x)  # not the block's, but still the registrar's
            with plumb.precision_check():
                for _ in range(5):
                    torch.sinh(x)
        finally:
            library.m = None
        table = self.finish()
        self.assertEqual({name: (row["Calls"], row["Checked"], row["Failed"])
                          for name, row in table.items()}, {"sinh": (8, 4, 4), "erf": (1, 1, 1)})


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, k: int) -> torch.Tensor:
        return torch.full((2,), float(k)).sinh()


class Processes(OnlineCheck):
    def test_workers_of_a_data_loader(self) -> None:
        self.enable(log_once=False)
        with registered(sinh=bad), plumb.precision_check():
            torch.ones(2).sinh()
            loader = torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="fork")
            self.assertEqual(len(list(loader)), 4)
        row = self.finish()["sinh"]
        self.assertEqual((row["Calls"], row["Checked"], row["Failed"]), (5, 5, 5))
        self.assertEqual(len(self.lines()), 5)
        self.assertIn("5 failed", self.said)

    def test_failures_of_workers_only(self) -> None:
        self.enable()
        with registered(sinh=bad), plumb.precision_check():
            list(torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="fork"))
        row = self.finish()["sinh"]
        self.assertEqual((row["Checked"], row["Failed"]), (1, 1))
        self.assertIn("__getitem__", row["First failed at"])
        self.assertIn("sinh failed: ", self.said)
        self.assertRegex(self.said, r"plumb replay \S+sinh\.0")

    def test_a_child_that_is_killed(self) -> None:
        self.enable(log_once=False)

        def work() -> None:
            with plumb.precision_check():
                torch.ones(2).sinh(), torch.ones(2).exp()
            os._exit(3)
        with registered(sinh=bad):
            child = multiprocessing.get_context("fork").Process(target=work)
            child.start()
            child.join()
        self.assertEqual(child.exitcode, 3)
        table = self.finish()
        self.assertEqual((table["sinh"]["Failed"], table["exp"]["Checked"]), (1, 1))

    def test_a_child_tells_nothing_itself(self) -> None:
        done = run_script(
            "import os, sys, torch, plumb\n"
            "plumb.enable_precision_check(path=sys.argv[1])\n"
            "with plumb.precision_check(): torch.ones(2).exp()\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    with plumb.precision_check(): torch.ones(2).exp()\n"
            "    sys.exit(0)\n"
            "os.waitpid(pid, 0)\n", str(self.log))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("checked"), 1, done.stderr)
        self.assertIn("2 calls of 1 operator checked, none failed", done.stderr)

    def test_a_check_that_a_child_enables_is_its_own(self) -> None:
        done = run_script(
            "import os, sys, torch, plumb\n"
            "plumb.enable_precision_check(path=sys.argv[1])\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    plumb.enable_precision_check(path=sys.argv[1])\n"
            "    with plumb.precision_check(): torch.ones(2).exp()\n"
            "    sys.exit(0)\n"
            "os.waitpid(pid, 0)\n", str(self.log))
        self.assertIn("1 call of 1 operator checked", done.stderr)
        self.assertIn("0 calls of 0 operators checked", done.stderr)


if __name__ == "__main__":
    unittest.main()
