"""plumb.inductor_check: a wrong pass is named with its stage, node and verdict; right ones and PyTorch's own are not
blamed; compilation goes on as without it."""

import logging
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, List, Tuple

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "py")]
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes for graphs this small

import python_case  # noqa: E402  (puts the package under test into the path)
from compile_case import (FAULTS, RIGHT, Attention, Conv, Mlp, aten, made, relu_to_sigmoid,  # noqa: E402
                          transformers_models)

import torch  # noqa: E402
from torch import fx, nn  # noqa: E402
from torch._inductor import config  # noqa: E402

import plumb  # noqa: E402

logging.getLogger("plumb.inductor_check").setLevel(logging.CRITICAL)


def run(model: nn.Module, x: Any, backward: bool = True, **options: Any) -> List[torch.Tensor]:
    """One step, compiled anew: the results and gradients."""
    torch._dynamo.reset()
    torch.manual_seed(1)
    compiled = torch.compile(model, **options)
    with torch.set_grad_enabled(backward):
        result = compiled(**x) if isinstance(x, dict) else compiled(x)
        found = [one for one in (result if isinstance(result, (list, tuple)) else [result]) if torch.is_tensor(one)]
        if backward:
            sum(one.square().sum() for one in found).backward()
    grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return [one.detach() for one in found] + grads


class Faults(unittest.TestCase):
    def test_every_wrong_pass_is_named(self) -> None:
        for fault in FAULTS:
            with self.subTest(slot=fault.slot, change=fault.change.__name__):
                model, x = made(Mlp)
                with config.patch({fault.slot: fault.change}), plumb.inductor_check() as report:
                    run(model, x)
                self.assertFalse(report, report)
                self.assertEqual((fault.stage, fault.change.__name__, "fault"),
                                 (report.stage, report.pass_name, report.verdict), report)
                self.assertIsNotNone(report.node, report)
                self.assertEqual([], report.problems)
                name = str(report.node)
                self.assertTrue(fault.node in name or self.is_there(fault, name), f"{fault.node}: {report}")
                blamed = {one.pass_name for one in report.faults}
                self.assertEqual({fault.change.__name__}, blamed, report)
                page = str(report)
                for word in ("FAULT", fault.stage, fault.change.__name__, name):
                    self.assertIn(word, page)

    def is_there(self, fault: Any, name: str) -> bool:
        """Before AOT, nodes are named for variables of the script."""
        return fault.stage == "pre-grad pass" and not name.startswith("l_")

    def test_in_bfloat16_too(self) -> None:
        for slot in ("joint_custom_pre_pass", "post_grad_custom_post_pass"):
            with self.subTest(slot):
                model, x = made(Mlp, torch.bfloat16)
                with config.patch({slot: relu_to_sigmoid}), plumb.inductor_check() as report:
                    run(model, x)
                self.assertEqual(("relu_to_sigmoid", "relu"), (report.pass_name, report.node), report)

    def test_in_inference(self) -> None:
        model, x = made(Mlp, train=False)
        with config.patch(post_grad_custom_pre_pass=relu_to_sigmoid), plumb.inductor_check() as report:
            run(model, x, backward=False)
        self.assertEqual(("post-grad pass", "relu_to_sigmoid", "relu"), (report.stage, report.pass_name, report.node))

    def test_with_dropout(self) -> None:
        """Draws are the same on both sides, so that the rest is judged."""
        model, x = made(lambda: Mlp(0.3))
        x = torch.randn(8, 16)
        with config.patch(pre_grad_custom_pass=relu_to_sigmoid), plumb.inductor_check() as report:
            run(model, x)
        self.assertEqual(("pre-grad pass", "relu_to_sigmoid"), (report.stage, report.pass_name), report)
        self.assertIn("replace_random_passes", [one.pass_name for one in report.checked])

    def test_a_pattern_that_replaces_wrongly(self) -> None:
        """Of the pattern matcher: the pattern is named too."""
        from torch._inductor.pattern_matcher import (CallFunction, KeywordArg, PatternMatcherPass,
                                                     register_graph_pattern)
        patterns = PatternMatcherPass(pass_name="my_patterns")

        @register_graph_pattern(CallFunction(aten.relu.default, KeywordArg("x")), pass_dict=patterns)
        def relu_becomes_tanh(match: Any, x: fx.Node) -> None:
            node = match.output_node()
            new = match.graph.call_function(aten.tanh.default, (x,))
            new.meta.update(node.meta)
            node.replace_all_uses_with(new)
            match.graph.erase_node(node)

        model, x = made(Mlp)
        with config.patch(post_grad_custom_pre_pass=patterns.apply), plumb.inductor_check() as report:
            run(model, x)
        self.assertEqual("post-grad pass", report.stage, report)
        self.assertEqual("my_patterns", report.pass_name)
        self.assertIn("tanh", str(report.node))
        assert report.first is not None
        self.assertIn("relu_becomes_tanh at relu", report.first.patterns)
        self.assertIn("relu", report.first.was)

    def test_what_pytorchs_own_check_cannot_find(self) -> None:
        """fx_passes_numeric_check compares a graph with itself."""
        model, x = made(Mlp)
        numeric = {"pre_grad": True, "precision": 1e-4, "num_iterations": 1, "requires_optimizer": True}
        with config.patch(pre_grad_custom_pass=relu_to_sigmoid, fx_passes_numeric_check=numeric):
            with self.assertLogs("torch._inductor.fx_passes.numeric_utils", "INFO") as told:
                run(model, x)
        self.assertFalse([line for line in told.output if "Numerical result : False" in line])
        with config.patch(pre_grad_custom_pass=relu_to_sigmoid), plumb.inductor_check() as report:
            run(model, x)
        self.assertEqual("relu_to_sigmoid", report.pass_name)


class Right(unittest.TestCase):
    def healthy(self, model: nn.Module, x: Any, backward: bool) -> Any:
        with plumb.inductor_check() as report:
            run(model, x, backward)
        self.assertTrue(report, report)
        self.assertEqual([], report.faults)
        self.assertEqual([], report.not_judged, report)
        self.assertEqual([], report.problems)
        return report

    def test_small_models(self) -> None:
        for kind in (Mlp, Conv, Attention):
            for dtype in (torch.float32, torch.bfloat16):
                for train in (True, False):
                    with self.subTest(kind=kind.__name__, dtype=dtype, train=train):
                        report = self.healthy(*made(kind, dtype, train), train)
                        self.assertGreater(len(report.checked), 30)

    def test_transformers(self) -> None:
        for name, (model, asked) in transformers_models().items():
            for train in (True, False):
                with self.subTest(name=name, train=train):
                    self.healthy(model.train(train), asked, train)

    def test_branches(self) -> None:
        """Those of a cond are graphs of their own, and not each other before and after a pass."""
        def branching(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
        with plumb.inductor_check() as report:
            torch.compile(branching)(torch.ones(4, 4))
        self.assertTrue(report, report)
        self.assertEqual(([], []), (report.not_judged, report.problems))

    def test_right_passes(self) -> None:
        for slot, change in RIGHT:
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(slot=slot, change=change.__name__, dtype=dtype):
                    model, x = made(Mlp, dtype)
                    with config.patch({slot: change}), plumb.inductor_check() as report:
                        run(model, x)
                    self.assertTrue(report, report)
                    mine = {one.verdict for one in report.checked if one.pass_name == change.__name__}
                    self.assertTrue(mine & {"same", "rounding"}, report)
                    self.assertLessEqual(mine, {"same", "rounding", "unchanged"}, report)

    def test_dropout_and_dynamic_shapes(self) -> None:
        model, _ = made(lambda: Mlp(0.3))
        with plumb.inductor_check() as report:
            run(model, torch.randn(8, 16), dynamic=True)
        self.assertTrue(report, report)
        # PyTorch 2.6 refuses to run this operator of the compiler's own outside of compiled code.
        self.assertEqual([], [one for one in report.not_judged if "inductor_lookup_seed" not in one.why])

    def test_patterns_that_become_code(self) -> None:
        """A node that a pattern turned into a lowering is run as what it was."""
        model, x = made(Attention)
        report = self.healthy(model, x, True)
        patterns = [name for one in report.checked for name in one.patterns]
        self.assertTrue(patterns)

    def test_nothing_is_changed(self) -> None:
        """Neither the numbers, nor inductor afterwards, nor generators."""
        import torch._inductor.compile_fx as compile_fx
        before = [getattr(compile_fx, name) for name in ("pre_grad_passes", "joint_graph_passes", "post_grad_passes")]
        plain = run(*made(lambda: Mlp(0.3))[:1], torch.ones(8, 16))
        torch.manual_seed(5)
        state = torch.get_rng_state()
        with plumb.inductor_check() as report:
            torch.set_rng_state(state)
            checked = run(*made(lambda: Mlp(0.3))[:1], torch.ones(8, 16))
        self.assertTrue(report)
        self.assertEqual(len(plain), len(checked))
        for one, other in zip(plain, checked):
            self.assertTrue(torch.equal(one, other))
        after = [getattr(compile_fx, name) for name in ("pre_grad_passes", "joint_graph_passes", "post_grad_passes")]
        self.assertEqual(before, after)

    def test_a_pass_that_raises(self) -> None:
        def raises(graph: fx.Graph) -> None:
            raise RuntimeError("of the pass")
        model, x = made(Mlp)
        with config.patch(post_grad_custom_pre_pass=raises), plumb.inductor_check() as report:
            with self.assertRaisesRegex(Exception, "of the pass"):
                run(model, x)
        self.assertEqual([], report.faults)
        with plumb.inductor_check() as report:
            run(model, x)
        self.assertTrue(report, report)

    def test_nothing_compiled(self) -> None:
        with plumb.inductor_check() as report:
            torch.relu(torch.ones(2))
        self.assertFalse(report)
        self.assertIn("nothing was compiled", str(report))
        self.assertEqual((None, None, None, "not judged"), (report.stage, report.pass_name, report.node,
                                                            report.verdict))


SCRIPT = """
import torch, plumb
from torch._inductor import config
def my_pass(graph):
    for node in graph.nodes:
        if node.target is torch.ops.aten.relu.default:
            node.target = torch.ops.aten.sigmoid.default
config.post_grad_custom_pre_pass = my_pass
print(torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(3)).tolist())
"""


class Environment(unittest.TestCase):
    def script(self, value: str) -> Tuple[str, str]:
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True,
                              env={**os.environ, "PLUMB_INDUCTOR_CHECK": value,
                                   "PYTHONPATH": str(python_case.BUILD / "python")})
        return done.stdout, done.stderr

    def test_a_whole_script(self) -> None:
        printed, told = self.script("1")
        self.assertEqual("[1.7310585975646973, 1.7310585975646973, 1.7310585975646973]\n", printed)
        self.assertIn("plumb: inductor_check: FAULT", told)
        self.assertIn("my_pass (post_grad_custom_pre_pass)", told)
        self.assertIn("node relu", told)

    def test_off(self) -> None:
        self.assertNotIn("plumb", self.script("0")[1])


if __name__ == "__main__":
    unittest.main()
