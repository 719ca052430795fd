"""The script of a module with its metadata, the values of its constants, cut to a readable length.

They are megabytes, most of it in single lines: 64 MB for ResNet-18.
"""

from __future__ import annotations

import msgspec
from tvm import IRModule, relax

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.lowering.parameters import constants_of
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.records.snapshot import TextRecord
from lowerscope.core.rendering.script import module_text

LONGEST_LINE = 400
"""Maximum characters of a line."""

MOST_BYTES = 200_000_000
"""Maximum bytes of constants for which the text is made: it would be a third longer."""

WHOLE = "lowerscope export SOURCE --output DIR writes it whole"


def metadata_text(module: IRModule) -> TextRecord:
    """Return the script of the whole module with metadata; long lines are cut, with a note.

    Raises `LowerscopeError` if the constants are too large to be printed.
    """
    size = constant_bytes(module)
    if size > MOST_BYTES:
        raise LowerscopeError(
            f"the metadata would be about {bytes_text(size * 4 / 3)} of text",
            where="show_meta",
            todo=WHOLE[0].upper() + WHOLE[1:],
        )
    record = module_text(module, show_meta=True)
    lines = record.text.split("\n")
    cut = [_shortened(line) for line in lines]
    if cut == lines:
        return record
    head = f"# {bytes_text(len(record.text))} with metadata: long lines are cut here. {WHOLE}."
    spans = tuple(
        msgspec.structs.replace(span, first=span.first + 1, last=span.last + 1)
        for span in record.spans
    )
    return msgspec.structs.replace(record, text="\n".join([head, *cut]), spans=spans)


def constant_bytes(module: IRModule) -> int:
    """Return the size of all constants of the Relax functions of `module`, in bytes."""
    return sum(
        constant.value.numpy().nbytes
        for function in module.functions.values()
        if isinstance(function, relax.Function)
        for constant in constants_of(function)
    )


def _shortened(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]} … {len(line) - LONGEST_LINE:,} more characters"
