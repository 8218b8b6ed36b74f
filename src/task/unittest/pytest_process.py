# -- A clean process ---------------------------------------------------------------------------

# Where a program has put its own kernels in the place of PyTorch's for the CPU, these must not
# compute the reference, nor the errors. A process that knows nothing of them does it then.

PROGRAM = """import io, json, math, os, re, sys
sys.path.insert(0, sys.argv[1])
import torch
from typing import Any, Callable, Dict, List, Optional, Sequence
# %s
serve()
"""
SECONDS = 300.0  # for one call
MOST_DEATHS = 3


class Unjudged(Exception):
    """Nothing can say whether a result is right; the message says why."""


class CleanProcess:
    """Starts when it is first asked."""

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen] = None
        self.errors: Any = None
        self.deaths = 0
        self.why = ""

    def start(self) -> subprocess.Popen:
        try:
            with open(__file__, encoding="utf-8") as stream:
                parts = stream.read().split("\n# -- ")
            program = PROGRAM % next(part for part in parts if part.startswith("One call"))
            folder = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
            self.errors = tempfile.TemporaryFile()
            # Extensions that PyTorch loads by itself may bring kernels along.
            environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
            return subprocess.Popen([sys.executable, "-I", "-c", program, folder],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=self.errors, env=environment)
        except OSError as error:
            self.deaths = MOST_DEATHS
            self.why = "it cannot be started: %s" % error
            raise Unjudged(self.why)

    def ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        if self.deaths >= MOST_DEATHS:
            raise Unjudged(self.why)
        if self.process is None:
            self.process = self.start()
        buffer = io.BytesIO()
        torch.save(spelled(request), buffer)
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        end = time.monotonic() + SECONDS
        line = b""
        try:
            self.process.stdin.write(buffer.tell().to_bytes(8, "little"))
            self.process.stdin.write(buffer.getbuffer())
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:  # it ended before it had read all
            pass
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.died(time.monotonic() >= end)
        answer = json.loads(line)
        if "lost" in answer:
            raise Unjudged(answer["lost"])
        return answer

    def died(self, late: bool) -> None:
        self.deaths += 1
        code = self.close()
        self.why = "it took more than %g s" % SECONDS if late else "it ended with %s" % code
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace").strip()
        if said and not late:
            self.why += ": " + said.splitlines()[-1]
        raise Unjudged(self.why)

    def close(self) -> Optional[int]:
        process, self.process = self.process, None
        if process is None:
            return None
        try:
            process.stdin.close()
        except OSError:
            pass
        try:
            return process.wait(5)  # it ends with its input
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            process.stdout.close()


def any_replaced() -> bool:
    """Whether any kernel is replaced: operators are made of others."""
    if not hasattr(torch._C, "_dispatch_dump_table") or \
            not hasattr(torch._C, "_jit_get_all_schemas"):
        return True  # it cannot be told, and a clean process is right in any case
    return any(replaced(full_name(schema)) for schema in torch._C._jit_get_all_schemas()
               if schema.name.startswith("aten::"))


def full_name(schema: Any) -> str:
    """"aten::add.Tensor", "aten::relu"."""
    return schema.name + ("." + schema.overload_name if schema.overload_name else "")


