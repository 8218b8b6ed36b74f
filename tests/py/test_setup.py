"""scripts/setup against a package system that misbehaves: stand-ins for dpkg-query, apt-cache and apt-get,
since a real one cannot be asked to lose a package."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Iterable, Tuple

ROOT = Path(__file__).resolve().parents[2]

# `have` lists what is installed, `archive` what can be; every call of apt-get is noted in `calls`.
DPKG_QUERY = """#!/bin/bash
code=0
for name in "${@:4}"; do
    if grep -qx "$name" "$STATE/have"; then echo ii; else code=1; fi
done
exit $code
"""
APT_CACHE = """#!/bin/bash
echo "$2:"
grep -qx "$2" "$STATE/archive" && echo "  Candidate: 1.0" || echo "  Candidate: (none)"
"""
APT_GET = """#!/bin/bash
echo "$*" >>"$STATE/calls"
[[ $1 == update ]] && exit "$(cat "$STATE/update")"
broken=
for word in "${@:2}"; do
    case $word in
    -* | DPkg*) ;;
    broken*) broken=1 ;;
    *) names+=" $word" ;;
    esac
    grep -qx "$word" "$STATE/broken" && broken=1
done
[[ $broken ]] && exit 100
printf '%s\\n' $names >>"$STATE/have"
"""

DEMO = ["gcc", "libc6-dev", "pkgconf", "meson", "ninja-build", "libdeflate-dev", "libxlsxwriter-dev",
        "libexpat1-dev", "libyaml-dev", "libhdf5-dev", "zlib1g-dev", "libaec-dev"]
BUILD = DEMO + ["python3-dev", "libopenblas0-pthread"]


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name)
        self.state.chmod(0o777)
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-cache", APT_CACHE), ("apt-get", APT_GET)):
            (self.state / name).write_text(text)
            (self.state / name).chmod(0o755)

    def setup(self, *words: str, have: Iterable[str] = (), archive: Iterable[str] = (),
              broken: Iterable[str] = (), user: bool = False) -> Tuple[int, str]:
        for name, lines in (("have", have), ("archive", archive), ("broken", broken), ("calls", ())):
            (self.state / name).write_text("".join(f"{line}\n" for line in lines))
            (self.state / name).chmod(0o666)
        (self.state / "update").write_text("0")
        script = self.state / "setup"
        script.write_text((ROOT / "scripts/setup").read_text())
        script.chmod(0o755)
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        command = as_user if user and os.geteuid() == 0 else []
        done = subprocess.run([*command, "bash", script, *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": f"{self.state}:/usr/bin:/bin", "STATE": str(self.state)})
        return done.returncode, done.stdout

    def calls(self) -> str:
        return (self.state / "calls").read_text()


class TestSetup(Case):
    def test_nothing_missing(self) -> None:
        self.assertEqual(self.setup("demo", have=DEMO), (0, ""))
        self.assertEqual(self.setup("build", have=BUILD), (0, ""))
        self.assertEqual(self.calls(), "")

    def test_another_name_will_do(self) -> None:
        have = [name for name in DEMO if name != "pkgconf"] + ["pkg-config"]
        self.assertEqual(self.setup("demo", have=have), (0, ""))

    def test_list(self) -> None:
        self.assertEqual(self.setup("--missing", "build", have=DEMO),
                         (0, "libopenblas0-pthread\npython3-dev\n"))

    def test_user(self) -> None:
        """Somebody without root gets the whole line; it is a failure only without what is needed."""
        code, text = self.setup("build", have=DEMO, user=True)
        self.assertEqual(code, 0, text)
        self.assertIn("apt-get update && apt-get install -y --no-install-recommends "
                      "libopenblas0-pthread python3-dev\n", text)
        code, text = self.setup("build", have=[name for name in BUILD if name != "gcc"], user=True)
        self.assertEqual(code, 1, text)
        self.assertEqual(text, "setup: cannot go on: as root, run: apt-get update && "
                         "apt-get install -y --no-install-recommends gcc\n")
        self.assertEqual(self.calls(), "")

    def test_purpose(self) -> None:
        self.assertEqual(self.setup("nonsense")[0], 2)


@unittest.skipUnless(os.geteuid() == 0, "only root installs packages")
class TestInstall(Case):
    def test_installs_what_is_missing(self) -> None:
        code, text = self.setup("demo", have=DEMO[1:], archive=DEMO)
        self.assertEqual(code, 0, text)
        self.assertIn("install -y --no-install-recommends -qq -o DPkg::Lock::Timeout=600 gcc\n",
                      self.calls())

    def test_name_that_the_release_lacks(self) -> None:
        """The others are installed, and the one is named."""
        archive = [name for name in BUILD if name != "libopenblas0-pthread"]
        code, text = self.setup("build", archive=archive)
        self.assertEqual(code, 0, text)
        self.assertIn("this release of Debian has no package libopenblas0-pthread\n", text)
        self.assertIn("going on without what libopenblas0-pthread would allow", text)
        self.assertEqual(set(archive) - set((self.state / "have").read_text().split()), set())

    def test_needed_name_that_the_release_lacks(self) -> None:
        code, text = self.setup("build", archive=BUILD[1:])
        self.assertEqual(code, 1, text)
        self.assertIn("cannot go on without: gcc\n", text)
        self.assertIn("meson", (self.state / "have").read_text())

    def test_older_name(self) -> None:
        archive = [name for name in DEMO if name != "pkgconf"] + ["pkg-config"]
        code, text = self.setup("demo", archive=archive)
        self.assertEqual(code, 0, text)
        self.assertIn("pkg-config", (self.state / "have").read_text())

    def test_one_that_cannot_be_installed(self) -> None:
        """apt-get does all or nothing; setup then goes one by one."""
        code, text = self.setup("build", archive=BUILD, broken=["python3-dev"])
        self.assertEqual(code, 0, text)
        self.assertIn("python3-dev could not be installed", text)
        self.assertIn("libopenblas0-pthread", (self.state / "have").read_text())
        code, text = self.setup("build", archive=BUILD, broken=["meson"])
        self.assertEqual(code, 1, text)


if __name__ == "__main__":
    unittest.main()
