"""Functions that are recorded wherever a script has them: operators, torch.ops, and those that were taken before
recording began; and that everything is as it was afterwards."""

import functools
import sys
import types
import unittest
from pathlib import Path
from typing import Any, Callable, List

sys.path.insert(0, str(Path(__file__).parent))
import torch  # noqa: E402
from capture_case import CaptureTest  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.functional import linear as imported  # noqa: E402

TABLE = {"gelu": F.gelu, "deep": {"silu": [F.silu]}}
LIST = [torch.sigmoid]
FIXED = (torch.sin,)
PARTIAL = functools.partial(F.softplus, beta=2.0)


def enclosing() -> Callable[[torch.Tensor], torch.Tensor]:
    function = F.mish
    return lambda x: function(x)


CLOSURE = enclosing()


def with_defaults(x: torch.Tensor, f: Any = F.hardswish, *, g: Any = torch.tanh) -> torch.Tensor:
    return g(f(x))


class Static:
    act = staticmethod(F.relu6)
    erf = torch.erf


class Settings:
    def __init__(self) -> None:
        self.act = F.celu


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = F.gelu
        self.partial = functools.partial(F.leaky_relu, negative_slope=0.2)
        self.settings = Settings()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.settings.act(self.partial(self.act(x)))


class Lazy(types.ModuleType):
    """Like those of libraries that load their parts when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was looked at")


LAZY = Lazy("lazy")


class HeldTest(CaptureTest):
    def names(self, run: Callable[[], Any], model: Any = None, **settings: Any) -> List[str]:
        with self.capture(model, **settings):
            run()
        return [name.rpartition(".")[0] for name in self.dump().data if name.endswith("forward")]

    def test_operators_of_python(self) -> None:
        x = torch.randn(3, 3)

        def run() -> None:
            y = -x
            y /= 2
            1 / y
            abs(y)
            ~(y > 0)
            torch.ones(3) @ y
        self.assertEqual(["Tensor.__neg__.0", "Tensor.__itruediv__.0", "Tensor.__rtruediv__.0", "Tensor.__abs__.0",
                          "Tensor.__gt__.0", "Tensor.__invert__.0", "Tensor.__matmul__.0"], self.names(run, risk_level="FOCUS"))

    def test_torch_ops(self) -> None:
        x = torch.randn(3)

        def run() -> None:
            torch.ops.aten.relu(x)
            torch.ops.aten.mul.Tensor(x, x)
            torch.ops.aten.detach(x)
            torch.special.expit(x)
        self.assertEqual(["Aten.relu.0", "Aten.mul.0", "Torch.special.expit.0"], self.names(run))

    def test_what_was_taken_before(self) -> None:
        x = torch.randn(3, 3)
        model = Model()

        def run() -> None:
            imported(x, x)
            TABLE["gelu"](x)
            TABLE["deep"]["silu"][0](x)
            LIST[0](x)
            PARTIAL(x)
            CLOSURE(x)
            with_defaults(x)
            Static.act(x)
            Static.erf(x)
            model(x)
        wanted = ["Functional.linear.0", "Functional.gelu.0", "Functional.silu.0", "Torch.sigmoid.0",
                  "Functional.softplus.0", "Functional.mish.0", "Functional.hardswish.0", "Torch.tanh.0",
                  "Functional.relu6.0", "Torch.erf.0", "Functional.gelu.1", "Functional.leaky_relu.0", "Functional.celu.0"]
        for _ in range(2):  # also the second time
            self.assertEqual(wanted, self.names(run, model))
            self.assertIs(F.gelu, model.act)
            self.assertIs(F.gelu, TABLE["gelu"])
            self.assertIs(F.softplus, PARTIAL.func)
            self.assertIs(F.hardswish, with_defaults.__defaults__[0])
            self.assertIs(imported, F.linear)
            self.assertNotEqual("Wrapped", type(F.gelu).__name__)

    def test_what_cannot_be_replaced_is_listed(self) -> None:
        local = torch.cos
        names = self.names(lambda: (FIXED[0](torch.ones(2)), local(torch.ones(2))))
        listed = (self.dump().folder / "not_recorded.txt").read_text()
        self.assertIn("Torch.sin in the tuple", listed)
        if "Torch.cos.0" not in names:  # a variable that a lambda uses is a closure
            self.assertIn("Torch.cos in the variable local", listed)

    def test_what_the_script_puts_there_stays(self) -> None:
        x, model = torch.randn(3), Model()
        debugger = self.debugger()
        debugger.start(model)
        model.act = torch.sigmoid
        debugger.stop()
        debugger.step()
        self.assertTrue(torch.equal(torch.sigmoid(x), model.act(x)))

    def test_a_function_of_the_scripts_own_is_recorded_as_it_is(self) -> None:
        x, right = torch.randn(3), F.gelu
        self.names(lambda: F.gelu(x))
        self.addCleanup(setattr, F, "gelu", right)
        F.gelu = lambda value: right(value) * 2
        with self.capture(task="tensor"):
            result = F.gelu(x)
        self.assertTrue(torch.equal(right(x) * 2, result))
        dump = self.dump()
        self.assertTrue(torch.equal(result, dump.tensor(dump.data["Functional.gelu.0.forward"]["output"][0])))

    def test_lazy_modules_stay_unloaded(self) -> None:
        sys.modules["plumb_test_lazy"] = LAZY
        self.addCleanup(sys.modules.pop, "plumb_test_lazy")
        self.assertEqual(["Torch.exp.0"], self.names(lambda: torch.exp(torch.ones(2))))

    def test_two_captures_at_once(self) -> None:
        model = Model()
        first = self.debugger()
        path = self.path
        second = self.debugger()
        first.start(model)
        second.start(model)
        model(torch.ones(2))
        first.stop()
        model(torch.ones(2))
        second.stop()
        self.assertIs(F.gelu, model.act)
        self.assertIn("Functional.gelu.1.forward", self.dump().data)
        self.path = path
        self.assertNotIn("Functional.gelu.1.forward", self.dump().data)
        first.step()
        second.step()


if __name__ == "__main__":
    unittest.main()
