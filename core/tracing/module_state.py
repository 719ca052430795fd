"""The model's state while its ``forward`` is run: as before, afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def unchanged(model: torch.nn.Module) -> Iterator[None]:
    """Put back every attribute of `model` and the content of its buffers at the end.

    A tracer leaves what ``forward`` assigns, and its own constants, on the model; a model that
    counts changes its buffers whenever it is run.
    """
    attributes = [
        (module.__dict__, dict(module.__dict__), module._buffers, dict(module._buffers))
        for module in model.modules()
    ]
    contents = [(buffer, buffer._version, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for names, before, buffers, buffers_before in attributes:
            names.clear()
            names.update(before)
            buffers.clear()
            buffers.update(buffers_before)
        with torch.no_grad():
            for buffer, version, content in contents:
                if buffer._version != version:
                    buffer.copy_(content)
