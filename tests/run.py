#!/usr/bin/python3
"""Runs all tests and closes with "N passed, N failed".

What there is:
  unit      every cmocka program of the build folder
  asan      the same programs, and the replay of the fuzz corpora, under ASan and UBSan
  cli       tests/cli/*.sh, each in an empty folder, against the output kept beside it
  py        tests/py/test_*.py, plain unittest
  header    every public header alone, and all together, as C17 and as C++17

A CLI test NAME.sh is compared with NAME.sh.stdout.exact or NAME.sh.stdout.glob (where * stands for
any text in a line and a line "..." for any number of lines), NAME.sh.stderr.* likewise, and
NAME.sh.exit when the exit code is not 0. What has no such file must be empty. --update rewrites the
exact ones.
"""

import argparse
import concurrent.futures
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
TIMEOUT = 300


class Result(NamedTuple):
    name: str
    passed: bool
    output: str = ""


class Job(NamedTuple):
    name: str
    run: Callable[[], List[Result]]


def run(command: List[str], **more) -> Tuple[int, str, str]:
    """Exit code (negative: a signal), stdout, stderr. Too long a run ends like a killed one."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT, **more)
        return done.returncode, text(done.stdout), text(done.stderr)
    except subprocess.TimeoutExpired as late:
        return -9, text(late.stdout), text(late.stderr) + f"took longer than {TIMEOUT} s\n"


def text(data: Optional[bytes]) -> str:
    return (data or b"").decode("utf-8", "replace")


def environment(build: Path) -> dict:
    """The same on every machine, with the programs under test first in PATH."""
    keep = {name: os.environ[name] for name in ("HOME", "PLUMB_GOLDEN") if name in os.environ}
    return {
        **keep,
        "PATH": f"{build}:/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "TZ": "UTC",
        "DATA": str(TESTS / "data"),
        "PLUMB_TEST_DATA": str(TESTS / "data"),
        "PLUMB_BUILD": str(build),
        "ASAN_OPTIONS": "abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }


# -- Unit tests and replays --------------------------------------------------------------------


def parse_tap(name: str, code: int, output: str) -> List[Result]:
    """One result a cmocka test; a program that dies or ends early adds one that failed."""
    results = []
    planned = skipped = 0
    for line in output.splitlines():
        plan = re.match(r"\s*1\.\.(\d+)", line)
        if plan:
            planned += int(plan.group(1))
        case = re.match(r"\s*(not )?ok \d+ (?:- )?(\S+)", line)
        if "# SKIP" in line:
            skipped += 1
        elif case:
            results.append(Result(f"{name}: {case.group(2)}", not case.group(1)))
    failures = sum(not result.passed for result in results)
    if len(results) + skipped < planned or not planned or (code != 0 and not failures):
        results.append(Result(f"{name}: ended early with {code}", False))
    first_bad = next((i for i, result in enumerate(results) if not result.passed), None)
    if first_bad is not None:
        results[first_bad] = results[first_bad]._replace(output=output)
    return results


def program_job(kind: str, test: dict, build: Path) -> Job:
    name = f"{kind} {test['name']}"

    def work() -> List[Result]:
        env = {**environment(build), **test["env"], "CMOCKA_MESSAGE_OUTPUT": "TAP"}
        code, out, err = run(test["cmd"], env=env, cwd=build)
        if test["name"].startswith("replay "):
            return [Result(f"{name} ({out.strip()})", code == 0, out + err)]
        return parse_tap(name, code, out + err)

    return Job(name, work)


def program_jobs(kind: str, build: Path) -> Iterator[Job]:
    """What the build files call a test."""
    if not (build / "build.ninja").exists():
        yield Job(kind, lambda: [Result(f"{kind}: {build} is not built", False)])
        return
    code, out, err = run(["meson", "introspect", "--tests", str(build)])
    if code:
        yield Job(kind, lambda: [Result(f"{kind}: meson introspect", False, out + err)])
        return
    for test in json.loads(out):
        yield program_job(kind, test, build)


# -- Command line tests ------------------------------------------------------------------------


def glob_matches(pattern: List[str], lines: List[str]) -> bool:
    if not pattern:
        return not lines
    if pattern[0] == "...":
        return any(glob_matches(pattern[1:], lines[i:]) for i in range(len(lines) + 1))
    if not lines:
        return False
    line = ".*".join(re.escape(part) for part in pattern[0].split("*"))
    return re.fullmatch(line, lines[0]) is not None and glob_matches(pattern[1:], lines[1:])


def check_stream(script: Path, stream: str, got: str, update: bool) -> str:
    """What is wrong with one stream; "" when nothing is."""
    exact = script.with_name(f"{script.name}.{stream}.exact")
    glob = script.with_name(f"{script.name}.{stream}.glob")
    if glob.exists():
        if glob_matches(glob.read_text("utf-8").splitlines(), got.splitlines()):
            return ""
        return f"{stream} does not match {glob.name}:\n{got}"
    wanted = exact.read_text("utf-8") if exact.exists() else ""
    if got == wanted:
        return ""
    if update:
        if got:
            exact.write_text(got, "utf-8")
        else:
            exact.unlink()
        return ""
    return "\n".join(difflib.unified_diff(wanted.splitlines(), got.splitlines(), f"{stream} wanted",
                                          f"{stream} got", lineterm="")) + "\n"


def check_exit(script: Path, got: int, update: bool) -> str:
    path = script.with_name(f"{script.name}.exit")
    wanted = int(path.read_text()) if path.exists() else 0
    if got == wanted:
        return ""
    if update:
        if got:
            path.write_text(f"{got}\n")
        else:
            path.unlink()
        return ""
    return f"exit code {got} instead of {wanted}\n"


def cli_job(script: Path, build: Path, update: bool) -> Job:
    name = f"cli {script.name}"

    def work() -> List[Result]:
        env = environment(build)
        with tempfile.TemporaryDirectory(prefix="plumb-cli-") as folder:
            code, out, err = run(["bash", str(script)], env=env, cwd=folder)
            for path, sign in ((env["DATA"], "$DATA"), (folder, "$PWD")):
                out = out.replace(path, sign)
                err = err.replace(path, sign)
        problems = (check_stream(script, "stdout", out, update) +
                    check_stream(script, "stderr", err, update) + check_exit(script, code, update))
        return [Result(name, not problems, problems)]

    return Job(name, work)


# -- Python tests ------------------------------------------------------------------------------


def python_job(path: Path, build: Path) -> Job:
    name = f"py {path.name}"

    def work() -> List[Result]:
        code, out, err = run([sys.executable, "-m", "unittest", "-v", path.stem], cwd=path.parent,
                             env=environment(build))
        ran = re.search(r"^Ran (\d+) test", err, re.M)
        bad = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", err))
        skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", err))
        if not ran or (code and not bad):
            return [Result(name, False, out + err)]
        good = max(0, int(ran.group(1)) - bad - skipped)
        outputs = [out + err] + [""] * bad  # once is enough
        return [Result(name, True)] * good + [Result(name, False, outputs[i]) for i in range(bad)]

    return Job(name, work)


# -- Public headers ----------------------------------------------------------------------------


def header_job(headers: List[Path]) -> Job:
    name = f"header plumb/{headers[0].name}" if len(headers) == 1 else "headers together"
    included = [word for header in headers for word in ("-include", f"plumb/{header.name}")]

    def work() -> List[Result]:
        results = []
        for compiler, language, standard in (("cc", "c", "c17"), ("c++", "c++", "c++17")):
            code, out, err = run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic",
                                  "-Werror", "-fsyntax-only", "-I", str(ROOT / "include"), "-x",
                                  language, *included, "/dev/null"])
            results.append(Result(f"{name} as {standard}", code == 0, out + err))
        return results

    return Job(name, work)


# -- All of it ---------------------------------------------------------------------------------


def all_jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    build = arguments.build.resolve()
    yield from program_jobs("unit", build)
    if not arguments.no_asan:
        yield from program_jobs("asan", arguments.asan.resolve())
    for script in sorted((TESTS / "cli").glob("*.sh")):
        yield cli_job(script, build, arguments.update)
    for path in sorted((TESTS / "py").glob("test_*.py")):
        yield python_job(path, build)
    headers = sorted((ROOT / "include" / "plumb").glob("*.h"))
    for header in headers:
        yield header_job([header])
    yield header_job(headers)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests of plumb.")
    parser.add_argument("words", nargs="*", help="only tests whose name has one of these words")
    parser.add_argument("--update", action="store_true", help="rewrite expected CLI output")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--asan", type=Path, default=ROOT / "build-asan")
    parser.add_argument("--no-asan", action="store_true", help="without the sanitizer build")
    parser.add_argument("--verbose", action="store_true", help="name every test")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    jobs = [job for job in all_jobs(arguments)
            if not arguments.words or any(word in job.name for word in arguments.words)]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for results in pool.map(lambda job: job.run(), jobs):
            for result in results:
                passed += result.passed
                failed += not result.passed
                if not result.passed:
                    print(f"FAILED {result.name}\n{result.output.rstrip()}\n", flush=True)
                elif arguments.verbose:
                    print(f"ok {result.name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
