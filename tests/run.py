#!/usr/bin/python3
"""Runs all tests and closes with "N passed, N failed".

What there is:
  unit      every cmocka program of the build folder
  asan      the same programs, and the replay of the fuzz corpora, under ASan and UBSan
  cli       tests/cli/*.sh, each in an empty folder, against the output kept beside it
  py        tests/py/test_*.py, plain unittest
  torch2    tests/torch2/test_*.py, the same for what only PyTorch 2 has; named and left out without it
  web       tests/web/*.test.mjs, the report page in Chromium; skipped where Node, npm, its registry or
            Chromium cannot be reached
  header    every public header alone, and all together, as C17 and as C++17

A CLI test NAME.sh is compared with NAME.sh.stdout.exact or NAME.sh.stdout.glob (where * stands for
any text in a line and a line "..." for any number of lines), NAME.sh.stderr.* likewise, and
NAME.sh.exit when the exit code is not 0. What has no such file must be empty. --update rewrites the
exact ones.

A test that dies or hangs has failed, and the tests behind it still run: Python files through
py_harness.py, unit tests through again.c, which both can start in the middle.
"""

import argparse
import concurrent.futures
import contextlib
import difflib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import web_tests

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
TIMEOUT = 1200  # of one test; the slowest takes less than a minute where nothing else runs

# Jobs that take longest, longest first: they start first, so that the workers end together.
LONG = ("asan op/sweep", "asan op/unary_mpfr", "unit op/unary_mpfr", "py test_torch_device.py", "py test_jprof.py",
        "py test_docs.py", "py test_torch_faults.py", "asan check/journal", "unit check/journal",
        "web views.test.mjs", "web safety.test.mjs", "web real.test.mjs",
        "py test_check_runs.py", "py test_op_truth.py", "py test_op_noise.py", "py test_online_samples.py",
        "py test_online_users.py", "py test_python_writer.py", "py test_check_model.py", "py test_online_check.py",
        "asan condense/condense", "unit condense/condense")


# Whose versions decide what the Python tests meet; they are printed first.
PACKAGES = {"torch": "PyTorch", "transformers": "Transformers", "numpy": "NumPy"}


class Result(NamedTuple):
    name: str
    passed: bool
    output: str = ""
    skipped: str = ""  # the reason


class Job(NamedTuple):
    name: str
    run: Callable[[], List[Result]]


class Ended(NamedTuple):
    """How a program ended: the exit code (negative: a signal) and what it wrote."""
    code: int
    out: str
    err: str

    def why(self) -> str:
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        return f"was ended by {signal.Signals(-self.code).name}"


running: Set[int] = set()


def end_group(leader: int) -> None:
    """A program and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def run(command: List[str], report: Optional[Path] = None, **more) -> Ended:
    """Runs a program until it ends, or says nothing for TIMEOUT seconds. Its streams are files, so
    that a process it leaves behind holds nobody up."""
    with tempfile.TemporaryDirectory(prefix="plumb-run-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        with out.open("ab") as out_file, err.open("ab") as err_file:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out_file, stderr=err_file,
                                     start_new_session=True, **more)
        running.add(child.pid)
        late = ""
        seen, since = -1, time.monotonic()
        while child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=1)
            size = (report or out).stat().st_size
            if size != seen:
                seen, since = size, time.monotonic()
            elif time.monotonic() - since > TIMEOUT and child.poll() is None:
                late = f"took longer than {TIMEOUT} s\n"
                end_group(child.pid)
        end_group(child.pid)
        running.discard(child.pid)
        return Ended(child.returncode, text(out), text(err) + late)


def text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


# What changes the behaviour of plumb or of the programs that tests call, and is not the subject of a
# run. Everything else stays as the caller has it: a test that minds is a test to mend.
DROPPED = re.compile(r"(PLUMB_(?!GOLDEN$|CPU_MASK$|OP_CASES$|ZOO$).*|COLUMNS|LINES|NO_COLOR|CLICOLOR.*|FORCE_COLOR"
                     r"|PYTHON.*|PYTEST.*|CMOCKA_.*|CDPATH|GREP_.*|BASH_ENV|ENV|BASHOPTS|SHELLOPTS"
                     r"|POSIXLY_CORRECT|MAKE.*|MFLAGS|TMOUT|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_.*"
                     r"|CUBLAS_WORKSPACE_CONFIG|X_D.*|DATA|.*SAN_OPTIONS)")
# oneDNN in PyTorch 1.13 to 2.14 takes AMX for granted when the processor names it, and dies of SIGILL in
# virtual machines that do not let it. Tests stay below it; plumb itself leaves this to its users.
ONEDNN = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "DNNL_MAX_CPU_ISA": "AVX512_CORE_BF16"}


def environment(build: Path) -> Dict[str, str]:
    """The caller's, with the programs under test and this Python first in PATH."""
    kept = {name: value for name, value in os.environ.items() if not DROPPED.fullmatch(name)}
    return {
        **({} if set(ONEDNN) & set(kept) else ONEDNN),
        **kept,
        "PATH": f"{build}:{Path(sys.executable).parent}:{kept.get('PATH', '/usr/local/bin:/usr/bin:/bin')}",
        "TERM": "dumb",
        "DATA": str(TESTS / "data"),
        "PLUMB_TEST_DATA": str(TESTS / "data"),
        "PLUMB_BUILD": str(build),
        "ASAN_OPTIONS": "abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }


def english(env: Dict[str, str]) -> Dict[str, str]:
    """For scripts: ls and sort order by bytes and speak English; plumb sees the locale of the caller."""
    language = env.pop("LC_ALL", "")
    return {**env, **({"LC_CTYPE": language, "LC_NUMERIC": language, "LC_TIME": language} if language else {}),
            "LC_COLLATE": "C", "LC_MESSAGES": "C", "LANGUAGE": ""}


# -- Unit tests and replays --------------------------------------------------------------------


def parse_tap(name: str, ended: Ended, first: int) -> List[Result]:
    """The results of a cmocka program that began with test number first. The test that it died in
    has failed; those behind it are missing."""
    output = ended.out + ended.err
    names = dict(re.findall(r"^# test (\d+) (.*)$", ended.out, re.M))
    results = []
    for line in re.findall(r"^\s*((?:not )?ok \d+.*)$", ended.out, re.M):
        test = f"{name}: {names.get(str(first + len(results)), line)}"
        skipped = "# SKIP" in line
        passed = skipped or line.startswith("ok")
        results.append(Result(test, passed, "" if passed else output, "skip()" if skipped else ""))
    unnamed = str(first + len(results))
    if unnamed in names:
        results.append(Result(f"{name}: {names[unnamed]}", False, f"{output}the program {ended.why()}\n"))
    elif ended.code and all(result.passed for result in results):
        results.append(Result(f"{name}: end", False, f"{output}the program {ended.why()}\n"))
    return results


def program_job(kind: str, test: dict, build: Path, through: Sequence[str] = ()) -> Job:
    name = f"{kind} {test['name']}"
    command = [*through, *test["cmd"]]

    def work() -> List[Result]:
        env = {**environment(build), **test["env"], "CMOCKA_MESSAGE_OUTPUT": "TAP"}
        if test["name"].startswith("replay "):
            ended = run(command, env=env, cwd=build)
            return [Result(f"{name} ({ended.out.strip()})", ended.code == 0, ended.out + ended.err)]
        results: List[Result] = []
        while True:  # once, and again behind each test that died
            ended = run(command, env={**env, "PLUMB_TEST_FROM": str(len(results))}, cwd=build)
            results += parse_tap(name, ended, len(results))
            count = len(re.findall(r"^# test \d+ ", ended.out, re.M))
            if len(results) >= count:
                return results or [Result(name, False, f"{ended.out}{ended.err}no tests\n")]

    return Job(name, work)


def program_jobs(kind: str, build: Path, through: Sequence[str]) -> Iterator[Job]:
    """What the build files call a test."""
    if not (build / "build.ninja").exists():
        yield Job(kind, lambda: [Result(f"{kind}: {build} is not built", False)])
        return
    ended = run(["meson", "introspect", "--tests", str(build)])
    if ended.code:
        yield Job(kind, lambda: [Result(f"{kind}: meson introspect", False, ended.out + ended.err)])
        return
    for test in json.loads(ended.out):
        yield program_job(kind, test, build, through)


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
        env = english(environment(build))
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


def written_tests(path: Path) -> List[str]:
    """The tests of a file that cannot be imported, as far as its text tells."""
    found, group = [], ""
    for kind, name in re.findall(r"^(class|    def) (\w+)", path.read_text("utf-8"), re.M):
        if kind == "class":
            group = name
        elif name.startswith("test"):
            found.append(f"{group}.{name}")
    return found


def python_results(name: str, ended: Ended, plan: List[str], events: List[dict], first: int) -> List[Result]:
    """The results of a run of py_harness.py that began with test number first. The test that it died
    in has failed; those behind it are missing."""
    results = {}
    at = 0
    for event in events:
        if "start" in event:
            at = event["at"]
        elif "end" in event:
            test, outcome, said = f"{name}: {plan[event['end']]}", event["outcome"], event["text"]
            skipped = said if outcome == "skipped" else ""
            results[event["end"]] = Result(test, outcome != "failed", said, skipped)
    missing = next((number for number in range(first, len(plan)) if number not in results), None)
    if missing is None:
        return [results[number] for number in range(first, len(plan))]
    printed = ended.out.encode()[at:].decode("utf-8", "replace") + ended.err
    results[missing] = Result(f"{name}: {plan[missing]}", False, f"{printed}the process {ended.why()}\n")
    return [results[number] for number in range(first, missing + 1)]


def version(package: str) -> str:
    """What this Python has of a package, or nothing; loading PyTorch would take longer than most tests."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def has_torch2() -> bool:
    return int(version("torch").partition(".")[0] or 0) >= 2


def python_files() -> Iterator[Path]:
    """Those that this PyTorch can run."""
    for folder in ("py", "torch2") if has_torch2() else ("py",):
        yield from sorted((TESTS / folder).glob("test_*.py"))


def print_versions() -> None:
    print(f"Python {platform.python_version()}, " +
          ", ".join(f"{name} {version(package) or '-'}" for package, name in PACKAGES.items()))
    if not has_torch2():
        files = len(list((TESTS / "torch2").glob("test_*.py")))
        print(f"the {files} files of tests/torch2 need PyTorch 2; make test-torch2 runs them")
    sys.stdout.flush()


def python_job(path: Path, build: Path) -> Job:
    name = f"{path.parent.name} {path.name}"

    def start(first: int) -> Tuple[Ended, List[dict]]:
        with tempfile.TemporaryDirectory(prefix="plumb-report-") as folder:
            report = Path(folder, "report")
            report.touch()
            ended = run([sys.executable, "-X", "faulthandler", str(TESTS / "py_harness.py"), str(path),
                         str(report), str(first)], report, cwd=path.parent, env=environment(build))
            return ended, [json.loads(line) for line in text(report).splitlines()]

    def work() -> List[Result]:
        results: List[Result] = []
        others: List[Result] = []  # belong to no test
        while True:  # once, and again behind each test that died
            ended, events = start(len(results))
            if not events:
                tests = written_tests(path)[len(results):] or ["import"]
                return results + others + [Result(f"{name}: {test}", False, ended.out + ended.err) for test in tests]
            plan = events[0]["plan"]
            results += python_results(name, ended, plan, events[1:], len(results))
            others += [Result(f"{name}: {event['extra']}", False, event["text"])
                       for event in events if "extra" in event]
            if "done" in events[-1] and ended.code:
                others.append(Result(f"{name}: end", False, f"{ended.out}{ended.err}the process {ended.why()}\n"))
            if "done" in events[-1] or len(results) == len(plan):
                return results + others or [Result(name, False, "no tests\n")]

    return Job(name, work)


# -- The report page ---------------------------------------------------------------------------


def web_job(path: Path, build: Path) -> Job:
    name = f"web {path.name}"

    def work() -> List[Result]:
        env = {**environment(build), "PLUMB": str(build / "plumb"), "PLUMB_PYTHON": sys.executable}
        return [Result(f"{name}: {outcome.name}", *outcome[1:])
                for outcome in web_tests.results(path, build, env, run)]

    return Job(name, work)


# -- Public headers ----------------------------------------------------------------------------


def header_job(headers: List[Path]) -> Job:
    name = f"header plumb/{headers[0].name}" if len(headers) == 1 else "headers together"
    included = [word for header in headers for word in ("-include", f"plumb/{header.name}")]

    def work() -> List[Result]:
        results = []
        for compiler, language, standard in (("cc", "c", "c17"), ("c++", "c++", "c++17")):
            ended = run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                         "-fsyntax-only", "-I", str(ROOT / "include"), "-x", language, *included,
                         "/dev/null"])
            results.append(Result(f"{name} as {standard}", ended.code == 0, ended.out + ended.err))
        return results

    return Job(name, work)


# -- All of it ---------------------------------------------------------------------------------


def all_jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    build = arguments.build.resolve()
    through = shlex.split(arguments.through)
    yield from program_jobs("unit", build, through)
    if not arguments.no_asan:
        yield from program_jobs("asan", arguments.asan.resolve(), through)
    for script in sorted((TESTS / "cli").glob("*.sh")):
        yield cli_job(script, build, arguments.update)
    for path in python_files():
        yield python_job(path, build)
    for path in sorted((TESTS / "web").glob("*.test.mjs")):
        yield web_job(path, build)
    headers = sorted((ROOT / "include" / "plumb").glob("*.h"))
    for header in headers:
        yield header_job([header])
    yield header_job(headers)


def timed(job: Job) -> Tuple[List[Result], float]:
    start = time.monotonic()
    try:
        results = job.run()
    except Exception:  # of the runner, which must not hide the other jobs
        results = [Result(job.name, False, traceback.format_exc())]
    return results, time.monotonic() - start


def report(jobs: List[Job], arguments: argparse.Namespace) -> int:
    """Runs the jobs, long ones first, and prints their results in the order of their names."""
    order = {name: place for place, name in enumerate(LONG)}
    results: List[Result] = []
    seconds = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = {job.name: pool.submit(timed, job)
                   for job in sorted(jobs, key=lambda job: order.get(job.name, len(order)))}
        for job in jobs:
            found, seconds[job.name] = futures[job.name].result()
            results += found
            for result in found:
                if not result.passed:
                    print(f"FAILED {result.name}\n{result.output.rstrip()}\n", flush=True)
                elif arguments.verbose and not result.skipped:
                    print(f"ok {result.name}", flush=True)

    slowest = sorted(seconds.items(), key=lambda item: -item[1])[:10]
    print("slowest: " + ", ".join(f"{name} {taken:.0f} s" for name, taken in slowest))
    for reason in sorted({result.skipped for result in results if result.skipped}):
        print(f"SKIPPED: {reason}")
        for result in results:
            if result.skipped == reason:
                print(f"  {result.name}")
    skipped = sum(bool(result.skipped) for result in results)
    failed = sum(not result.passed for result in results)
    passed = len(results) - failed - skipped
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests of plumb.")
    parser.add_argument("words", nargs="*", help="only tests whose name has one of these words")
    parser.add_argument("--update", action="store_true", help="rewrite expected CLI output")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--asan", type=Path, default=ROOT / "build-asan")
    parser.add_argument("--no-asan", action="store_true", help="without the sanitizer build")
    parser.add_argument("--through", default="", help="an emulator that runs the unit tests")
    parser.add_argument("--verbose", action="store_true", help="name every test")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    sys.stdout.reconfigure(errors="backslashreplace")
    print_versions()
    jobs = [job for job in all_jobs(arguments)
            if not arguments.words or any(word in job.name for word in arguments.words)]
    try:
        return report(jobs, arguments)
    except KeyboardInterrupt:
        for leader in list(running):
            end_group(leader)
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
