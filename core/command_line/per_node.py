"""Results of a run by node, for the command line."""

from __future__ import annotations

from lowerscope.core.records.run import NodeReport, NodeRun, RunRecord
from lowerscope.core.stages import Stages


def per_node(stages: Stages, record: RunRecord) -> tuple[NodeReport, ...]:
    """Return a report of each FX node, in graph order; none for a source without torch.

    Parameters
    ----------
    record
        Of the run of the recipe that `stages` are of.
    """
    lowered = stages.lowered
    if lowered is None:
        return ()
    runs = {each.id: each for each in record.nodes}
    reports = []
    for name, node in lowered.nodes.items():
        run = runs.get(f"fx:{name}", NodeRun(id=f"fx:{name}"))
        called = dict.fromkeys(record.calls[index].function for index in run.calls)
        reports.append(
            NodeReport(
                fx=run.id,
                bindings=tuple(f"relax:main/{each}" for each in node.bindings),
                functions=tuple(called),
                strategy=node.strategy,
                max_abs_error=run.max_abs_error,
                max_rel_error=run.max_rel_error,
                own_abs_error=run.own_abs_error,
                status=run.status,
                own_status=run.own_status,
                reason=run.reason,
                own_reason=run.own_reason,
                own_with=run.own_with,
                tvm_ms=run.milliseconds,
                torch_ms=run.torch_ms,
                hand_overs=tuple(
                    found
                    for index in run.calls
                    if (found := record.calls[index].hand_over) is not None
                ),
            )
        )
    return tuple(reports)
