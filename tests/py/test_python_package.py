"""The Python package as it is installed: what is in it, and that it works where it lands."""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from typing import Dict

from rights import copy_tree

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PLUMB_BUILD", ROOT / "build"))
MODULES = sorted(path.relative_to(ROOT / "python").as_posix()
                 for path in (ROOT / "python/plumb").rglob("*.py") if "__pycache__" not in path.parts)


def install_plan() -> Dict[str, str]:
    """Where each file of the source tree, or target, goes."""
    plan = json.loads((BUILD / "meson-info/intro-install_plan.json").read_text())
    return {source: entry["destination"] for part in plan.values() for source, entry in part.items()}


class TestPackage(unittest.TestCase):
    def test_every_module_is_installed(self) -> None:
        plan = install_plan()
        for name in MODULES:
            with self.subTest(name=name):
                destination = plan.get(str(ROOT / "python" / name), "is in no meson.build")
                self.assertTrue(destination.endswith("/" + name), destination)
                self.assertTrue((BUILD / "python" / name).is_file())
        self.assertTrue(any(place.endswith("plumb/_core.abi3.so") for place in plan.values()))

    def test_installed_tree_works(self) -> None:
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as build:
            # meson keeps a log beside its plan, and the build folder may be somebody else's.
            for path in BUILD.iterdir():
                if path.name not in ("meson-private", "meson-logs"):
                    os.symlink(path.resolve(), Path(build) / path.name)
            copy_tree(BUILD / "meson-private", Path(build) / "meson-private")
            os.mkdir(Path(build) / "meson-logs")
            done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet",
                                   "--destdir", root], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            [package] = Path(root).rglob("plumb/__init__.py")
            [program] = Path(root).rglob("bin/plumb")
            [worker] = Path(root).rglob("share/plumb/worker.py")
            scripts = {path.name for path in (ROOT / "python/plumb/_worker").glob("*.py")}
            self.assertLessEqual(scripts, {path.name for path in worker.parent.iterdir()})
            script = ("import plumb, array, sys\n"
                      "from plumb import _core\n"
                      "x = array.array('f', [1, 2, 4])\n"
                      "tensor = _core.Tensor(x.buffer_info()[0], 'float32', [3], owner=x)\n"
                      "writer = _core.Writer()\n"
                      "file = writer.open_h5(sys.argv[1])\n"
                      "writer.add_h5(file, 'x', 0, tensor)\n"
                      "writer.close()\n"
                      "print(plumb.__file__, plumb.__version__, writer.errors())\n")
            done = subprocess.run(
                [sys.executable, "-c", script, f"{root}/x.h5"], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, env={"PYTHONPATH": str(package.parents[1]), "PATH": "/"})
            version = self.version()
            self.assertEqual(done.stdout, f"{package} {version} []\n")
            done = subprocess.run([program, "summary", f"{root}/x.h5"], text=True,
                                  stdout=subprocess.PIPE, env={})
            self.assertIn("| x ", done.stdout)

    def version(self) -> str:
        return json.loads((BUILD / "meson-info/intro-projectinfo.json").read_text())["version"]

    def test_without_torch(self) -> None:
        """Everything that needs no PyTorch works, the rest says what is missing."""
        script = ("import sys; sys.modules['torch'] = None; import plumb\n"
                  "assert plumb.compare([1.0], [1.0])\n"
                  "try:\n"
                  "    plumb.PrecisionDebugger\n"
                  "except ImportError as error:\n"
                  "    print(error)\n")
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, check=True)
        self.assertIn("plumb.PrecisionDebugger needs PyTorch", done.stdout)

    def test_metadata(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        self.assertEqual(project["build-system"]["build-backend"], "mesonpy")
        self.assertEqual(project["project"]["name"], "plumb")
        self.assertEqual(project["project"]["dynamic"], ["version"])
        self.assertTrue((ROOT / project["project"]["readme"]).is_file())
        # The options that the wheel is built with are options that there are.
        known = {option["name"]: option["value"] for option in
                 json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())}
        for setting in project["tool"]["meson-python"]["args"]["setup"]:
            self.assertIn(setting[2:].split("=")[0], known)


if __name__ == "__main__":
    unittest.main()
