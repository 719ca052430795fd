"""Handler of export queries, imported on the first export."""

from __future__ import annotations

from lowerscope.core.model.artifacts import ExportRecord
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import ExportQuery, answers
from lowerscope.core.stages import Pipeline


@answers(ExportQuery)
def export(query: ExportQuery, pipeline: Pipeline, job: Progress) -> ExportRecord:
    """Write files: see `folder.export_record`."""
    from lowerscope.core.export.folder import export_record

    return export_record(pipeline, query, job)
