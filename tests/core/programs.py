"""Running the builder programs that Lowerscope writes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tvm


def module_of(program: Path, constants: Mapping[str, np.ndarray]) -> tvm.IRModule:
    """Return what a program makes, imported as a module.

    TVM asks for each TensorIR function in which module every frame of the stack is. Python looks
    through all modules for that, unless the program is one of them.
    """
    spec = importlib.util.spec_from_file_location("builder_program", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        return module.build(constants)
    finally:
        del sys.modules[spec.name]
