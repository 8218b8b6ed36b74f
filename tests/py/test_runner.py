"""tests/run.py itself: a test that dies, hangs or cannot begin hides nothing."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path
from typing import List, Tuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import run  # noqa: E402
import web_tests  # noqa: E402

BUILD = Path(os.environ["PLUMB_BUILD"])

SAMPLE = '''
import os, sys, time, unittest

class Dies(unittest.TestCase):
    def test_a(self): pass
    def test_b(self):
        print("last words", flush=True)
        os.abort()
    def test_c(self): sys.exit(3)
    def test_d(self): os._exit(0)
    def test_e(self): os.close(1)

class Fails(unittest.TestCase):
    def test_part(self):
        for k in range(3):
            with self.subTest(k=k):
                self.assertNotEqual(k, 1)
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    @unittest.skip("no reason")
    def test_skipped(self): pass

class NoSetup(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError("no class")
    def test_a(self): pass
    def test_b(self): pass

class NoTeardown(unittest.TestCase):
    @classmethod
    def tearDownClass(cls): raise ValueError("no end")
    def test_a(self): pass

class SkippedSetup(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no class to test")
    def test_a(self): pass

class Waits(unittest.TestCase):
    def test_a(self): time.sleep(1000)
    def test_b(self): pass
'''


def verdicts(results: List[run.Result]) -> List[Tuple[str, str]]:
    return [(result.name.partition(": ")[2], "skipped" if result.skipped else "passed" if result.passed else "failed")
            for result in results]


class Runner(unittest.TestCase):
    maxDiff = None

    def results(self, text: str) -> List[run.Result]:
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "TIMEOUT", 10):
            path = Path(folder, "test_sample.py")
            path.write_text(text, "utf-8")
            return run.python_job(path, BUILD).run()

    def test_python(self) -> None:
        results = self.results(SAMPLE)
        self.assertEqual(verdicts(results), [
            ("Dies.test_a", "passed"), ("Dies.test_b", "failed"), ("Dies.test_c", "failed"),
            ("Dies.test_d", "failed"), ("Dies.test_e", "passed"),
            ("Fails.test_expected", "passed"), ("Fails.test_part", "failed"), ("Fails.test_skipped", "skipped"),
            ("Fails.test_unexpected", "failed"),
            ("NoSetup.test_a", "failed"), ("NoSetup.test_b", "failed"), ("NoTeardown.test_a", "passed"),
            ("SkippedSetup.test_a", "skipped"), ("Waits.test_a", "failed"), ("Waits.test_b", "passed"),
            ("tearDownClass (test_sample.NoTeardown)", "failed")])
        said = {result.name.partition(": ")[2]: result.output for result in results}
        self.assertIn("last words", said["Dies.test_b"])
        self.assertIn("was ended by SIGABRT", said["Dies.test_b"])
        self.assertIn("ended with exit code 0", said["Dies.test_d"])
        self.assertIn("no class", said["NoSetup.test_b"])
        self.assertIn("took longer than 10 s", said["Waits.test_a"])
        self.assertNotIn("last words", said["Waits.test_a"])

    def test_python_without_import(self) -> None:
        for start in ("import no_such_module", "import os; os.abort()", "this is no Python"):
            results = self.results(f"{start}\n{SAMPLE}")
            self.assertTrue(results and not any(result.passed for result in results), results)
        self.assertEqual(len(self.results(f"import os; os.abort()\n{SAMPLE}")), 15)

    def test_unit(self) -> None:
        test = {"name": "dies", "cmd": [str(BUILD / "tests" / "dies")], "env": {}}
        results = run.program_job("unit", test, BUILD).run()
        self.assertEqual(verdicts(results), [("passes", "passed"), ("aborts", "failed"), ("fails", "failed"),
                                             ("skips", "skipped"), ("leaves", "failed"), ("passes", "passed")])
        self.assertIn("was ended by SIGABRT", results[1].output)

    def web(self, node: str = "", npm: str = "", chromium: str = "") -> List[run.Result]:
        """The results of two tests in a system that has these programs, each a line of shell."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            (folder / "bin").mkdir()
            for program, line in {"node": node, "npm": npm, "chromium": chromium}.items():
                if line:
                    (folder / "bin" / program).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
                    (folder / "bin" / program).chmod(0o755)
            path = folder / "sample.test.mjs"
            path.write_text('test("a", () => 1);\ntest("b (c)", () => 2);\n', "utf-8")
            env = {"PATH": str(folder / "bin")}
            with mock.patch.object(run, "environment", lambda build: dict(env)):
                return run.web_job(path, folder / "build").run()

    NODE = 'if [ "$1" = --version ]; then echo v18.19.0; exit; fi; '

    def test_web_without_its_programs(self) -> None:
        for given, reason in (({}, "node is not installed"), ({"node": self.NODE}, "npm is not installed"),
                              ({"node": "echo v16.2.0", "npm": "exit"}, "Node v16.2.0 is older than 18"),
                              ({"node": self.NODE, "npm": "exit"}, "chromium is not installed"),
                              ({"node": self.NODE, "chromium": "exit", "npm": "echo npm ERR! code EAI_AGAIN >&2; exit 1"},
                               "the npm registry cannot be reached (npm ERR! code EAI_AGAIN)")):
            with self.subTest(reason):
                results = self.web(**given)
                self.assertEqual(verdicts(results), [("a", "skipped"), ("b (c)", "skipped")])
                self.assertEqual({result.skipped for result in results}, {f"tests/web: {reason}"})

    def test_web_results(self) -> None:
        def said(tap: str, npm: str = "exit 0") -> List[Tuple[str, str]]:
            return verdicts(self.web(f"{self.NODE}{tap}", npm, "exit"))
        self.assertEqual(said("printf 'ok 1 - a\\nok 2 - b (c)\\n'"), [("a", "passed"), ("b (c)", "passed")])
        self.assertEqual(said("printf 'not ok 1 - a\\nok 2 - b (c) # SKIP why\\n'; exit 1"),
                         [("a", "failed"), ("b (c)", "skipped")])
        self.assertEqual(said("echo ok 1 - a; kill -9 $$"), [("a", "passed"), ("b (c)", "failed")])
        self.assertEqual(said("printf 'ok 1 - a\\nok 2 - b (c)\\n'; exit 1"),
                         [("a", "passed"), ("b (c)", "passed"), ("end", "failed")])
        # What is wrong with the lock file is no lack of a network.
        self.assertEqual(said("exit 0", "echo npm ERR! code EUSAGE >&2; exit 1"), [("a", "failed"), ("b (c)", "failed")])

    def test_web_tests_are_found(self) -> None:
        for path in (web_tests.WEB).glob("*.test.mjs"):
            found = web_tests.written_tests(path)
            self.assertEqual(len(found), path.read_text("utf-8").count("\ntest("), path)

    def test_a_job_that_fails_itself(self) -> None:
        def broken() -> List[run.Result]:
            raise ValueError("a fault of the runner")
        good = [run.Result("b", True), run.Result("c", True, skipped="why")]
        jobs = [run.Job("a", broken), run.Job("b", lambda: good)]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = run.report(jobs, Namespace(jobs=2, verbose=False))
        self.assertEqual(code, 1)
        self.assertIn("FAILED a\n", out.getvalue())
        self.assertTrue(out.getvalue().endswith("SKIPPED: why\n  c\n1 passed, 1 failed, 1 skipped\n"), out.getvalue())

    def test_files_for_this_pytorch(self) -> None:
        for found, folders in (("1.13.0a0+gitunknown", {"py"}), ("", {"py"}), ("2.6.0+debian", {"py", "torch2"})):
            with self.subTest(version=found), mock.patch.object(run, "version", lambda _: found):
                self.assertEqual({path.parent.name for path in run.python_files()}, folders)
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    run.print_versions()
                self.assertIn(f"PyTorch {found or '-'}, ", out.getvalue())
                self.assertEqual("tests/torch2 need PyTorch 2" in out.getvalue(), folders == {"py"})

    def test_environment(self) -> None:
        given = {"PLUMB_GOLDEN": "g", "PLUMB_CPU_MASK": "0", "PLUMB_H5": "x", "COLUMNS": "30", "TZ": "Asia/Tokyo",
                 "PYTHONPATH": "x", "RANK": "1", "PATH": "/bin", "ATEN_CPU_CAPABILITY": "default"}
        with mock.patch.dict(os.environ, given, clear=True):
            env = run.environment(BUILD)
        for name in ("PLUMB_GOLDEN", "PLUMB_CPU_MASK", "TZ", "ATEN_CPU_CAPABILITY"):
            self.assertEqual(env[name], given[name])
        for name in ("PLUMB_H5", "COLUMNS", "PYTHONPATH", "RANK", "HOME"):
            self.assertNotIn(name, env)
        self.assertTrue(env["PATH"].startswith(f"{BUILD}:") and env["PATH"].endswith(":/bin"))
        self.assertEqual(env["ONEDNN_MAX_CPU_ISA"], "AVX512_CORE_BF16")
        with mock.patch.dict(os.environ, {"ONEDNN_MAX_CPU_ISA": "SSE41"}, clear=True):
            self.assertEqual(run.environment(BUILD)["ONEDNN_MAX_CPU_ISA"], "SSE41")


if __name__ == "__main__":
    unittest.main()
