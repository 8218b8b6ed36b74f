"""plumb.compile_check: does torch.compile keep a model's numbers, and if not, which of its stages does not?"""

import html
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import torch

from plumb._compile.against import Against, CompiledSide
from plumb._compile.backends import Backend, compiled_with, compiler_settings
from plumb._compile.inductor import checking, no_caches, source_of
from plumb._compile.report import CheckedPass, InductorReport, first_line
from plumb._compile.where import Found, never_seen, right_code, wrong_code, wrong_decomposition
from plumb._passcheck.copies import describe
from plumb._passcheck.report import NumericReport
from plumb._passcheck.run import Failed
from plumb._passcheck.state import seeded

STAGES = ("dynamo", "aot", "decompositions")


class CompileReport:
    """Truthy when what the compiled model gives is what right arithmetic shows. stage, pass_name, node, verdict,
    why and what tell of the first fault."""

    def __init__(self) -> None:
        self.results: Optional[NumericReport] = None  # uncompiled against compiled
        self.stages: Dict[str, str] = {}              # verdicts, of those that were tried
        self.passes: Optional[InductorReport] = None  # where they had to be looked at
        self.stage: Optional[str] = None
        self.pass_name: Optional[str] = None
        self.node: Optional[str] = None
        self.target = ""   # the operator of the node
        self.source = ""   # the line of the script that it is from
        self.was = ""
        self.what = ""     # the first result that is wrong
        self.why = ""
        self.verdict = "not judged"
        self.graphs = 0    # that were compiled
        self.error: Optional[str] = None
        self.notes: List[str] = []

    def __bool__(self) -> bool:
        return self.error is None and bool(self.results)

    def summary(self) -> str:
        if self.error is not None:
            lines = [f"NOT CHECKED: {self.error}"]
        elif self.results is None or not self.results.rows:
            lines = ["NOT CHECKED: there was nothing to compare"]
        else:
            lines = self.results.summary().splitlines()[:1]
            lines[0] += f"; {self.graphs} graph{'s' * (self.graphs != 1)} compiled"
        if self.stage is not None:
            lines.append("first wrong in " + first_line(self.stage, self.pass_name, self.node, self.was, self.what))
            lines.append(f"  {self.why}")
            lines += [f"  operator {self.target}"] * bool(self.target)
            lines += [f"  from {self.source}"] * bool(self.source)
        if self.stages:
            lines.append("stages: " + ", ".join(f"{name} {word}" for name, word in self.stages.items()))
        for word in ("cheaper arithmetic", "not judged") if self.results is not None else ():
            said = [f"{row.kind} {row.name}: {row.opinion.why}" for row in self.results.rows
                    if row.opinion is not None and row.opinion.verdict == word]
            if said and (self.stage is None or word == "not judged"):
                others = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
                lines.append(f"{word}: {said[0]}{others}")
        return "\n".join(lines + self.notes)

    def text(self) -> str:
        """The page: every result with its verdict, then the summary."""
        rows = self.results.rows if self.results is not None else []
        shown = [f"{row.opinion.verdict if row.opinion is not None else 'not judged':18}  {row.kind} {row.name}"
                 for row in rows]
        more = len(shown) - 40
        if more > 0:
            order = sorted(range(len(rows)), key=lambda i: rows[i].opinion is not None and
                           rows[i].opinion.verdict != "fault")  # type: ignore[union-attr]
            shown = [shown[i] for i in order[:40]] + [f"and {more} more results"]
        return "\n".join(shown + [self.summary()])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<CompileReport {self.summary().splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


class _Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def compile_check(model: Callable[..., Any], inputs: Any, *, backward: bool = True,
                  arithmetic: Union[str, Sequence[str]] = "", fullgraph: bool = False,
                  dynamic: Optional[bool] = None, mode: Optional[str] = None,
                  options: Optional[Dict[str, Any]] = None) -> CompileReport:
    """Whether torch.compile keeps the numbers of a model: outputs, buffers, inputs that it changes, and, with
    backward, gradients.

    inputs: the arguments; a lone tensor is one argument, a dict is keyword arguments.
    arithmetic: cheaper arithmetic that is meant ("bf16-store"). fullgraph, dynamic, mode, options: as torch.compile
    has them.

    The model is run uncompiled, in float64, and with errors of the size that its types make; the compiled one is
    held against that (docs/COMPILE.md). When it is off by more, the report says in which stage that begins (dynamo,
    aot, decompositions, a pass of inductor, code generation), and at which node. Works on copies; what goes wrong is in
    the report, which is then false."""
    if not hasattr(torch, "compile"):
        raise RuntimeError(f"plumb.compile_check needs PyTorch 2; this is {torch.__version__}")
    if mode is not None and options is not None:
        raise ValueError("either mode or options, as with torch.compile")
    patches = dict(options or {})
    if mode is not None:
        from torch._inductor import list_mode_options
        patches = dict(list_mode_options(mode, dynamic))
    report = CompileReport()
    allowed = arithmetic if isinstance(arithmetic, str) else ",".join(arithmetic)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with seeded():
                _Search(model, inputs, backward, allowed, patches,
                        {"fullgraph": fullgraph, "dynamic": dynamic}, report).run()
    except Failed as error:
        report.error = str(error)
    except Exception as error:
        report.error = f"the check failed: {describe(error)}"
    return report


class _Search:
    def __init__(self, model: Callable[..., Any], inputs: Any, backward: bool, arithmetic: str,
                 patches: Dict[str, Any], options: Dict[str, Any], report: CompileReport) -> None:
        self.report, self.arithmetic = report, arithmetic
        self.patches, self.options = patches, options
        module = model if isinstance(model, torch.nn.Module) else _Function(model)
        if isinstance(getattr(module, "_orig_mod", None), torch.nn.Module):
            module = module._orig_mod  # type: ignore[assignment]
            report.notes.append("the model was compiled already; it is compiled anew from what it wraps")
        self.against = Against(module, inputs, backward, arithmetic)
        self.module = module
        report.notes += self.against.notes

    def _compared(self, backend: Backend) -> NumericReport:
        side = CompiledSide("compiled", self.module, [], compiled_with(backend, self.options))
        with compiler_settings(bool(self.against.draws.kept)), no_caches():
            found = self.against.compare(side)
        if not backend.count and found.error is None:
            found.error = "nothing was compiled: torch.compile is switched off here, or skips this model"
        return found

    def run(self) -> None:
        report = self.report
        backend = Backend("inductor", False, self.patches)
        found = report.results = self._compared(backend)
        report.graphs, report.error = backend.count, found.error
        if report.error is not None:
            return
        words = [word for word in ("fault", "cheaper arithmetic", "tie", "rounding", "same") if word in found.words]
        report.verdict = words[0] if words else "not judged"
        row = next((row for row in found.rows if row.opinion is not None and row.opinion.verdict == report.verdict),
                   None)
        if row is not None and row.opinion is not None:
            report.why = row.opinion.why
        if found.faults and row is not None:
            report.what = f"{row.kind} {row.name}"
            self._stage()

    def _stage(self) -> None:
        """The first stage after which it is wrong."""
        kept: Dict[str, Backend] = {}
        for stage in STAGES:
            backend = kept[stage] = Backend(stage, True, {})
            try:
                found = self._compared(backend)
            except Exception as error:
                self.report.stages[stage] = f"could not be run ({describe(error)})"
                continue
            word = "not judged" if found.error or not found.judged else "fault" if found.faults else "right"
            self.report.stages[stage] = word
            if word == "fault":
                where = wrong_decomposition(kept["aot"].graphs) if stage == "decompositions" else \
                    never_seen(self.against, backend.graphs)
                self._tell(stage, found, where)
                return
        self._inductor()

    def _tell(self, stage: str, found: Optional[NumericReport], where: Found) -> None:
        report = self.report
        report.stage, report.node, report.target = stage, where.node, where.target
        row = found.faults[0] if found is not None and found.faults else None
        if where.why:
            report.why, report.what = where.why, where.what or report.what
        elif row is not None and row.opinion is not None:
            report.why, report.what = row.opinion.why, f"{row.kind} {row.name}"
        if where.graph is not None:
            report.source = source_of(where.graph.module, where.node)
            if where.graph.backward:
                report.notes.append("the node is in the graph of the backward")

    def _tell_pass(self, one: CheckedPass) -> None:
        report = self.report
        report.stage, report.pass_name, report.why = one.stage, one.pass_name, one.why
        report.node, report.was, report.source = one.node, one.was, one.source

    def _inductor(self) -> None:
        report = self.report
        passes = report.passes = InductorReport()
        backend = Backend("inductor", True, self.patches)
        with checking(passes) as checker:
            backend.finals = checker.finals
            found = self._compared(backend)
        first = passes.first
        report.stages["passes"] = "fault" if first else "right" if passes else "not judged"
        if first is not None:
            report.what = first.what
            self._tell_pass(first)
            return
        coarser = passes.coarser
        if coarser is not None and right_code(backend.graphs, self.arithmetic):
            report.stages["passes"] = coarser.verdict
            self._tell_pass(coarser)
            return
        with compiler_settings(bool(self.against.draws.kept)), no_caches():
            where = wrong_code(backend.graphs, self.arithmetic)
        report.stages["code generation"] = "fault"
        self._tell("code generation", found, where)
