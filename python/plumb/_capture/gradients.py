"""Gradients of calls, as backward passes through the nodes between a call's inputs and its outputs."""

import functools
import weakref
from typing import Any, List, Set

import torch
from torch import Tensor

from plumb._capture import graph
from plumb._capture.sink import Call

AGAIN = "gradients that came a second time, or after stop()"


class Gradients:
    """The calls of a recorder whose gradients are still to come."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.new_step()

    def new_step(self) -> None:
        # Calls whose gradients may come, as long as their graph lives; of begun ones they will.
        self.followed: "weakref.WeakValueDictionary[int, Call]" = weakref.WeakValueDictionary()
        self.begun: Set[Call] = set()

    def follow(self, call: Call, edges: graph.Edges, outputs: List[Tensor]) -> None:
        recorder = self.recorder
        if "backward" not in recorder.config.data_mode:
            return
        planned = graph.plan(edges, outputs)
        if not planned.nodes:
            return
        if not planned.complete:
            recorder.note(f"{call.title('backward')}: its graph has more than {graph.MAX_NODES} nodes; "
                          "gradients of its inputs may be missing")
        call.follow = graph.Follow(len(planned.nodes), planned.parts)
        self.followed[id(call)] = call
        graph.hook(planned.nodes, self._ran, call, recorder.local.hooked)
        recorder.local.hooked = {node: (call, which) for which, (node, _) in enumerate(planned.nodes)}

    def _ran(self, call: Call, which: int, work: graph.Work, before: Any, given: Any, received: Any) -> None:
        """The hook of a node; called by whichever thread runs backward. before: what the hook before
        it left in local.last."""
        recorder, local = self.recorder, self.recorder.local
        last, local.last = local.last, None
        if not recorder.active or call.follow is False:
            return
        if call.follow is None:  # it is written
            with recorder.lock:
                recorder.modules.idle.setdefault(
                    AGAIN, f"(first of {call.title('backward')}) are not recorded; the first are")
            return
        local.last = last
        with recorder.lock, recorder.quietly(before), torch.no_grad():
            try:
                if call.follow and call.follow.add(which, work, given, received,
                                                   functools.partial(recorder.sink.gradient, call)):
                    self._went_back(call)
                elif call.follow:
                    self.begun.add(call)
                local.last = (call, which)
            except Exception:
                recorder.problem(f"{call.prefix}.{call.name}.{call.number} backward")

    def _went_back(self, call: Call) -> None:
        follow, call.follow = call.follow, None
        self.followed.pop(id(call), None)
        self.begun.discard(call)
        if follow.any:
            self.recorder.sink.backward(call)

    def finish(self) -> None:
        """Calls of which some outputs got no gradient are written with what there is."""
        recorder = self.recorder
        with recorder.quietly(), torch.no_grad():
            for call in list(self.followed.values()):
                try:
                    call.follow.rest(functools.partial(recorder.sink.gradient, call))
                    self._went_back(call)
                except Exception:
                    recorder.problem(f"{call.prefix}.{call.name}.{call.number} backward")
            self.followed.clear()
            self.begun.clear()
