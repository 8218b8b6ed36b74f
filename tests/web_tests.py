"""What tests/run.py needs to run tests/web, the tests of the report page in a browser.

They need Node, npm, Chromium and two packages of the npm registry, which are installed into the build
folder and kept there. Where one of these cannot be reached, every test is skipped with the reason; any
other trouble of npm is a failure.
"""

import atexit
import hashlib
import os
import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Tuple

WEB = Path(__file__).resolve().parent / "web"
NODE = 18  # the oldest that will do, which Debian 12 has
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# What npm says when it does not get through to the registry, as opposed to a lock file that is wrong.
UNREACHABLE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ENOTCACHED"
                         r"|ERR_SOCKET_TIMEOUT|EPROTO|E40[1378]|E429|E50\d|CERT_|_CERT|tunneling socket|network")
NPM = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1",
       "--fetch-timeout=60000"]


class Place(NamedTuple):
    """Where the packages are, or why there are none: skipped is a reason, failed what npm said."""
    modules: Path
    skipped: str = ""
    failed: str = ""


class Outcome(NamedTuple):
    name: str
    passed: bool
    output: str = ""
    skipped: str = ""


def written_tests(path: Path) -> List[str]:
    return re.findall(r'^test\("((?:[^"\\]|\\.)+)"', path.read_text("utf-8"), re.M)


def browser(env: Dict[str, str]) -> str:
    named = env.get("CHROMIUM", "")
    found = [shutil.which(name, path=env["PATH"]) for name in ([named] if named else BROWSERS)]
    return next((path for path in found if path), "")


def missing(env: Dict[str, str], run: Callable) -> str:
    """Which program is not there; "" when all are."""
    for name in ("node", "npm"):
        if not shutil.which(name, path=env["PATH"]):
            return f"{name} is not installed"
    version = run(["node", "--version"], env=env).out.strip()
    if int((re.match(r"v(\d+)", version) or [0, "0"])[1]) < NODE:
        return f"Node {version} is older than {NODE}"
    return "" if browser(env) else "chromium is not installed"


_lock = threading.Lock()
_places: Dict[Path, Place] = {}


def install(build: Path, env: Dict[str, str], run: Callable) -> Place:
    """Installs what package-lock.json names, once; it stays in the build folder for the next run."""
    with _lock:
        if build not in _places:
            _places[build] = _install(build, env, run)
        return _places[build]


def _install(build: Path, env: Dict[str, str], run: Callable) -> Place:
    lacking = missing(env, run)
    if lacking:
        return Place(build, skipped=f"tests/web: {lacking}")
    folder = build / "web-tests"
    lock = WEB / "package-lock.json"
    stamp = folder / "installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text("ascii") == wanted:
        return Place(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        for name in ("package.json", "package-lock.json"):
            (folder / name).write_bytes((WEB / name).read_bytes())
    except OSError:  # somebody else's build folder
        folder = Path(tempfile.mkdtemp(prefix="plumb-web-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        stamp = folder / "installed"
        for name in ("package.json", "package-lock.json"):
            (folder / name).write_bytes((WEB / name).read_bytes())
    with tempfile.TemporaryDirectory(prefix="plumb-npm-") as cache:
        home = {} if os.access(os.path.expanduser("~"), os.W_OK) else {"npm_config_cache": cache}
        ended = run(NPM, env={**env, **home}, cwd=folder)
    if ended.code == 0:
        stamp.write_text(wanted, "ascii")
        return Place(folder)
    said = (ended.err + ended.out).strip()
    if UNREACHABLE.search(said):
        first = next((line for line in said.splitlines() if UNREACHABLE.search(line)), "")
        return Place(folder, skipped=f"tests/web: the npm registry cannot be reached ({first.strip()[:160]})")
    return Place(folder, failed=f"npm ci: {said}\n")


def read_tap(out: str) -> List[Tuple[str, bool, str, str]]:
    """Name, whether it passed, its block of details, and the reason when it was skipped."""
    found = []
    heads = list(re.finditer(r"^(not )?ok \d+ - (.*?)(?: # (SKIP|TODO)\b ?(.*))?$", out, re.M))
    for head, after in zip(heads, [*heads[1:], None]):
        block = out[head.end():after.start() if after else len(out)]
        block = re.sub(r"^# Subtest: .*$|^1\.\.\d+$", "", block, flags=re.M)
        skipped = (head[4] or "skipped") if head[3] == "SKIP" else ""
        found.append((re.sub(r"\\(.)", r"\1", head[2]), not head[1], block, skipped))
    return found


def results(path: Path, build: Path, env: Dict[str, str], run: Callable) -> List[Outcome]:
    """One outcome for each test of a file; a test that Node did not report has failed."""
    tests = written_tests(path)
    place = install(build, env, run)
    if place.skipped:
        return [Outcome(test, True, skipped=place.skipped) for test in tests]
    if place.failed:
        return [Outcome(test, False, place.failed) for test in tests]
    ended = run(["node", "--test-reporter=tap", str(path)], cwd=WEB, env={
        **env, "PLUMB_NODE_MODULES": str(place.modules), "CHROMIUM": browser(env)})
    told = read_tap(ended.out)
    outcomes = [Outcome(name, passed, "" if passed else block, skipped) for name, passed, block, skipped in told]
    names = {name for name, *_ in told}
    why = f"{ended.out[-4000:]}{ended.err}the process ended with {ended.code} and said nothing of this test\n"
    outcomes += [Outcome(test, False, why) for test in tests if test not in names]
    if ended.code and all(outcome.passed for outcome in outcomes):
        outcomes.append(Outcome("end", False, f"{ended.out[-4000:]}{ended.err}the process ended with {ended.code}\n"))
    return outcomes
