"""No room uses what its floor does not allow, and the check would see it."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Tuple

from rights import make_folder

ROOT = Path(__file__).resolve().parents[2]

TABLE = """
| floor | room | headers | owns | may also use |
| --- | --- | --- | --- | --- |
| 3 | `src/task/one` | `one.h` | a job | |
| 3 | `src/task/two` | | another | |
| 2 | `src/left` | | | `right` |
| 2 | `src/right` | | | |
| 1 | `src/base` | `error.h` | what all use | |
"""


def floors(*words: str) -> Tuple[int, str]:
    done = subprocess.run([sys.executable, str(ROOT / "scripts/floors"), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600)
    return done.returncode, done.stdout


class House(unittest.TestCase):
    def test_this_one(self) -> None:
        code, text = floors(os.environ["PLUMB_BUILD"])
        self.assertEqual((code, text), (0, "floors: 0 violation(s)\n"))


class Planted(unittest.TestCase):
    def setUp(self) -> None:
        self.root = make_folder("plumb-floors-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.write("docs/ARCHITECTURE.md", TABLE)
        self.write("python/core/core.c", "")
        self.write("include/plumb/one.h", '#include "plumb/error.h"\n')
        self.write("include/plumb/error.h", "")
        self.write("src/base/error.c", '#include "plumb/error.h"\n#include <stdio.h>\n')
        self.write("src/task/one/one.c", '#include "plumb/one.h"\n#include "left/left.h"\n')
        self.write("src/left/left.c", '#include "right/right.h"\n#include "base/base.h"\n')
        (self.root / "python/core/core.c").unlink()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def refused(self, name: str, text: str, words: str) -> None:
        self.write(name, text)
        code, said = floors("--root", str(self.root))
        self.assertEqual(code, 1)
        self.assertIn(words, said)
        self.assertIn("floors: 1 violation(s)\n", said)

    def test_a_right_house(self) -> None:
        self.assertEqual(floors("--root", str(self.root), "--counts"),
                         (0, "5 rooms, 4 edges\nfloors: 0 violation(s)\n"))

    def test_a_floor_above(self) -> None:
        self.refused("src/base/bad.c", '#include "left/left.h"\n',
                     "src/base/bad.c includes left/left.h: base (floor 1) must not use left (floor 2)")

    def test_a_public_header_above(self) -> None:
        self.refused("src/right/bad.h", '  #  include "plumb/one.h"\n', "must not use task/one (floor 3)")

    def test_a_peer(self) -> None:
        self.refused("src/right/bad.c", '#include "left/left.h"\n', "right (floor 2) must not use left")

    def test_another_task(self) -> None:
        self.refused("src/task/two/two.c", '#include "task/one/one.h"\n', "must not use task/one")

    def test_a_file_without_a_room(self) -> None:
        self.refused("src/attic/old.c", "", "src/attic/old.c: the table has no room for it")

    def test_symbols(self) -> None:
        """A declaration of one's own is no way round the includes."""
        self.write("src/right/deed.c", "int deed(void);\nint deed(void) { return 1; }\n")
        self.write("src/base/bad.c", "int deed(void);\nint bad(void);\nint bad(void) { return deed(); }\n")
        entries = []
        for name in ("right/deed", "base/bad"):
            output = name.replace("/", "_") + ".o"
            subprocess.run(["cc", "-c", f"src/{name}.c", "-o", output], cwd=self.root, check=True)
            entries.append(f'{{"directory": "{self.root}", "file": "src/{name}.c", "output": "{output}"}}')
        self.write("compile_commands.json", f"[{', '.join(entries)}]")
        self.assertEqual(floors("--root", str(self.root))[0], 0)
        code, said = floors("--root", str(self.root), str(self.root))
        self.assertEqual(code, 1)
        self.assertIn("base_bad.o uses deed: base (floor 1) must not use right (floor 2)", said)


if __name__ == "__main__":
    unittest.main()
