"""Training on four processes against one: every tensor put together from the ranks, without a hint.

Real processes on gloo, with plain collectives (shards_train.py); what plumb makes of it is held against how the
script cut the tensors."""

import re
import sys
import unittest
from pathlib import Path
from typing import Dict

sys.path.insert(0, str(Path(__file__).parent))
from shards_case import Compared, Trainings  # noqa: E402

TRAININGS = Trainings(Path(__file__).with_name("shards_train.py"))
trained, compared = TRAININGS.trained, TRAININGS.compared


def tearDownModule() -> None:
    TRAININGS.cleanup()


def layout(row: Dict[str, str]) -> str:
    """How a row was put together, without where that comes from."""
    return re.sub(r" \((inferred|recorded|given).*", "", row.get("Layout", ""))


class ShardsTest(unittest.TestCase):
    def check_sound(self, found: Compared, unmatched: str = "") -> None:
        """All that both runs have is compared, agrees, and is determined by the data."""
        bad = [row["API Name"] for row in found.rows
               if row["Result"] != "PASS" and not (unmatched and unmatched in row["API Name"])]
        self.assertEqual([], bad)
        self.assertNotIn("ambiguous", found.said)
        self.assertNotIn("by shapes alone", found.said)
        self.assertNotIn("without a layout", found.said)
        self.assertNotIn("suspicious layout", found.said)
        self.assertGreater(len(found.rows), 600)

    def layouts(self, found: Compared) -> Dict[str, str]:
        return {row["API Name"]: layout(row) for row in found.rows}

    def test_tensor_parallel(self) -> None:
        for step in range(2):
            found = compared(trained("tp"), trained("one", 1), step)
            self.check_sound(found)
        ranks, of = "over ranks 0,1,2,3", self.layouts(found)
        for layer in range(4):
            path = f"Module.layers.{layer}"
            self.assertEqual(f"interleaved 1:1:1 axis 0 {ranks}",
                             of[f"{path}.attention.qkv.Linear.parameters_grad.0.weight"])
            self.assertEqual(f"interleaved 1:1:1 axis 2 {ranks}", of[f"{path}.attention.qkv.Linear.forward.0.output.0"])
            self.assertEqual(f"concat axis 1 {ranks}", of[f"{path}.attention.proj.Linear.parameters_grad.0.weight"])
            self.assertEqual("sum of 4: ranks 0+1+2+3", of[f"{path}.attention.proj.Linear.forward.0.output.0"])
            self.assertEqual(f"concat axis 0 {ranks}", of[f"{path}.mlp.up.Linear.parameters_grad.0.weight"])
            self.assertEqual("replica of 4: ranks 0|1|2|3", of[f"{path}.mlp.Mlp.forward.0.output.0"])
            self.assertEqual("sum of 4: ranks 0+1+2+3", of[f"{path}.mlp.up.Linear.backward.0.output.0"])
        self.assertIn("tensors of collectives that the other run does not make", found.said)

    def test_data_parallel(self) -> None:
        found = compared(trained("dp"), trained("one", 1), 1)
        self.check_sound(found)
        of = self.layouts(found)
        self.assertEqual("concat axis 0 over ranks 0,1,2,3", of["Module.head.Linear.forward.0.output.0"])
        self.assertEqual("concat axis 0 over ranks 0,1,2,3, each 4 times too large",
                         of["Module.head.Linear.backward.0.output.0"])
        self.assertEqual("mean of 4: ranks 0+1+2+3", of["Module.head.Linear.parameters_grad.0.weight"])
        self.assertEqual("replica of 4: ranks 0|1|2|3", of["Functional.layer_norm.0.forward.input.2"])

    def test_context_parallel(self) -> None:
        found = compared(trained("cp"), trained("one", 1))
        self.check_sound(found, "__setitem__")  # of the code that gathers
        of = self.layouts(found)
        self.assertEqual("zigzag axis 1 over ranks 0,1,2,3", of["Module.layers.0.mlp.Mlp.forward.0.output.0"])
        self.assertEqual("zigzag in 4 blocks axis 0 over ranks 0,1,2,3", of["Functional.cross_entropy.0.forward.input.0"])
        self.assertEqual("mean of 4: ranks 0+1+2+3", of["Module.norm.LayerNorm.parameters_grad.0.bias"])

    def test_pipeline(self) -> None:
        """Layers that every rank counts from 0."""
        found = compared(trained("pp"), trained("one", 1))
        self.check_sound(found)
        self.assertIn("4 pipeline stages", found.said)
        self.assertIn("Module.layers.3.mlp.Mlp.forward.0.output.0", self.layouts(found))

    def test_both_in_parts(self) -> None:
        """Tensor parallel against data parallel."""
        found = compared(trained("tp"), trained("dp"))
        bad = [row["API Name"] for row in found.rows if row["Result"] != "PASS"]
        self.assertEqual([], bad)
        self.assertIn("golden, 4 ranks", found.said)
        self.assertNotIn("suspicious layout", found.said)

    def test_fault_in_a_part(self) -> None:
        """A weight of rank 2 is wrong: the first failing row says so, and nothing before it is blamed."""
        found = compared(trained("tp", fault="2"), trained("one", 1))
        failed = [row for row in found.rows if row["Result"] != "PASS"]
        self.assertIn("mlp.up", " ".join(row["API Name"] for row in found.rows if "rank 2" in row["Layout"]))
        self.assertIn("the error is in the part of rank 2", failed[0]["Layout"])
        for other in "013":
            self.assertFalse([row for row in found.rows if f"part of rank {other}" in row["Layout"]])
        self.assertNotIn("without a layout", found.said)
        before = [row for row in found.rows if "layers.1." in row["API Name"] and "forward" in row["API Name"]]
        self.assertTrue(before)
        self.assertEqual({"PASS"}, {row["Result"] for row in before})

    def test_odd_replica(self) -> None:
        """A weight that all ranks should have alike."""
        found = compared(trained("dp", fault="1"), trained("one", 1))
        odd = [row for row in found.rows if "rank 1 differs from its replicas" in row.get("Layout", "")]
        self.assertTrue(odd)
        self.assertIn("replicas differ in", found.said)
        self.assertIn("the first on rank 1: Functional.layer_norm.4.forward", found.said)
        self.assertTrue([row for row in found.rows if row["API Name"].endswith(" (rank 1)")])
        self.assertIn("the error is in the part of rank 1", found.said)
        for other in "023":
            self.assertEqual([], [row["API Name"] for row in found.rows if f"rank {other} differs" in row["Layout"]])


if __name__ == "__main__":
    unittest.main()
