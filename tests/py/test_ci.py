"""What counts the results of several runs: scripts/sum-results, scripts/test-torch2 and .ci/run, with rooms that
only pretend."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Tuple

ROOT = Path(__file__).resolve().parents[2]

# Instead of scripts/clean-room: $FAKE/SUITE has the exit code in its first line, and then what is printed.
ROOM = """#!/bin/bash
suite=bookworm
while [[ $1 != -- ]]; do [[ $1 != --suite ]] || suite=$2; shift; done
echo "$suite: ${*:2}" >>"$FAKE/called"
tail -n +2 "$FAKE/$suite"
exit "$(head -n 1 "$FAKE/$suite")"
"""
# Instead of make, where no room can be made.
MAKE = '#!/bin/sh\n[ "$1" = demo ] || tail -n +2 "$FAKE/here"\nexit "$(head -n 1 "$FAKE/here")"\n'
VERSIONS = "Python 3.14.1, PyTorch 2.14.1, Transformers 5.12.0, NumPy 2.3.5\n"


class Counting(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="plumb-ci-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name, "plumb")
        for name in (".ci/run", "scripts/test-torch2", "scripts/sum-results", "scripts/in-debian"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.script("scripts/clean-room", ROOM)
        self.script("bin/make", MAKE)

    def script(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(0o755)

    def run_in(self, *command: str) -> Tuple[int, str]:
        env = {**os.environ, "FAKE": str(self.root), "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        env.pop("PLUMB_GOLDEN", None)
        done = subprocess.run([str(self.root / command[0]), *command[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=env, encoding="utf-8")
        return done.returncode, done.stdout

    def room(self, suite: str, code: int, text: str) -> None:
        (self.root / suite).write_text(f"{code}\n{text}", "utf-8")

    def rooms(self, **said: Tuple[int, str]) -> None:
        for suite, (code, text) in said.items():
            self.room(suite, code, text)

    def test_sum(self) -> None:
        cases = [
            ([(0, "3 passed, 0 failed\n"), (0, "4 passed, 0 failed\n")], 0, "7 passed, 0 failed\n"),
            ([(0, "3 passed, 0 failed, 2 skipped\nclean-room: exit code 0\n"), (1, "4 passed, 5 failed, 1 skipped\n")],
             1, "7 passed, 5 failed, 3 skipped\n"),
            ([(2, "ninja: build stopped\n"), (0, "4 passed, 0 failed\n")], 1, "4 passed, 1 failed\n"),
            ([(2, "4 passed, 0 failed\nmake: *** [test] Killed\n")], 1, "4 passed, 1 failed\n"),
            ([(0, "")], 1, "0 passed, 1 failed\n"),
            ([(0, "1 passed, 1 failed, says a test\n2 passed, 0 failed\n")], 0, "2 passed, 0 failed\n"),
            ([(0, "0 passed, 0 failed\n")], 1, "0 passed, 0 failed\n"),
        ]
        for runs, code, text in cases:
            words = []
            for number, (ended, said) in enumerate(runs):
                (self.root / str(number)).write_text(said, "utf-8")
                words += [str(ended), str(self.root / str(number))]
            with self.subTest(runs=runs):
                self.assertEqual(self.run_in("scripts/sum-results", *words), (code, text))

    def test_torch2(self) -> None:
        good = (0, VERSIONS + "10 passed, 0 failed\n")
        gone = (125, "clean-room: could not prepare it\n")
        for sid, trixie, code, closing in (
                (good, good, 0, "20 passed, 0 failed"), (gone, good, 0, "10 passed, 0 failed"),
                (gone, gone, 125, "0 passed, 0 failed"),
                (good, (1, VERSIONS + "7 passed, 3 failed\n"), 1, "17 passed, 3 failed"),
                ((1, "error: no such type\n"), good, 1, "10 passed, 1 failed")):
            self.rooms(sid=sid, trixie=trixie)
            with self.subTest(sid=sid, trixie=trixie):
                got, text = self.run_in("scripts/test-torch2")
                self.assertEqual((got, text.splitlines()[-1]), (code, closing), text)
                for suite, said in (("sid", sid), ("trixie", trixie)):
                    if said == gone:
                        self.assertIn(f"{suite}: not run: clean-room: could not prepare it\n", text)
                    elif said == good:
                        self.assertIn(f"{suite}: {VERSIONS.strip()}: 10 passed, 0 failed\n", text)

    def test_torch2_of_one_release(self) -> None:
        self.rooms(sid=(0, "1 passed, 0 failed\n"))
        self.assertEqual(self.run_in("scripts/test-torch2", "sid")[0], 0)
        self.assertEqual(self.run_in("scripts/test-torch2", "--fast", "sid")[0], 0)
        whole, fast = (self.root / "called").read_text("utf-8").splitlines()
        self.assertTrue(whole.endswith("test-torch2 --here"), whole)
        self.assertIn("test-torch2 --here ", fast)

    def test_ci(self) -> None:
        cases = [  # bookworm, here, sid, trixie: the code, the last line, and what is said before it
            ((0, "5 passed, 0 failed\n"), None, (0, "6 passed, 0 failed, 1 skipped\n"), (0, "7 passed, 0 failed\n"),
             0, "18 passed, 0 failed, 1 skipped", ""),
            ((0, "5 passed, 0 failed\n"), None, (1, "5 passed, 1 failed\n"), (0, "7 passed, 0 failed\n"),
             1, "17 passed, 1 failed", ""),
            ((2, "5 passed, 2 failed\n"), None, (0, "6 passed, 0 failed\n"), (0, "7 passed, 0 failed\n"),
             1, "18 passed, 2 failed", ""),
            ((2, "demo failed\n"), None, (125, "clean-room: x\n"), (0, "7 passed, 0 failed\n"),
             1, "7 passed, 1 failed", "sid: not run: clean-room: x\n"),
            ((125, "clean-room: needs root\n"), (0, "5 passed, 0 failed\n"), (125, "clean-room: needs root\n"),
             (125, "clean-room: needs root\n"), 0, "5 passed, 0 failed",
             "clean room not used: clean-room: needs root\nsid: not run: clean-room: needs root\n"),
            ((125, "clean-room: needs root\n"), (1, "5 passed, 1 failed\n"), (125, "clean-room: needs root\n"),
             (125, "clean-room: needs root\n"), 1, "0 passed, 1 failed", ""),  # make demo is what failed
        ]
        for bookworm, here, sid, trixie, code, closing, said in cases:
            self.rooms(bookworm=bookworm, here=here or (0, ""), sid=sid, trixie=trixie)
            with self.subTest(bookworm=bookworm, here=here, sid=sid, trixie=trixie):
                got, text = self.run_in(".ci/run")
                self.assertEqual((got, text.splitlines()[-1]), (code, closing), text)
                self.assertIn(said, text)


if __name__ == "__main__":
    unittest.main()
