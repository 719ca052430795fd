"""Generated code that opens a model from its source, and makes its inputs, with torch only."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lowerscope.core.calling import Place
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.nesting import members
from lowerscope.core.python_text import attribute, keywords, quoted, quoted_lines
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.array_files import is_archive
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.sources.parameters import is_torch_file, names_for, read_arrays
from lowerscope.core.sources.spec import PREFIX
from lowerscope.core.stages import Stages
from lowerscope.core.user_paths import user_path

FILE = '''\
def load_file(path, digest):
    """Run a Python file as a module, if it is what it was when this program was written."""
    content = check_file(path, digest)
    sys.path.insert(0, str(path.parent))
    module = types.ModuleType(f"reproduced_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(content, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def check_file(path, digest):
    """Refuse a file that is another one by now; return what is in it."""
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    assert found == digest, f"{path} has changed since this program was written"
    return content
'''

TEXT = '''\
def load_text(name, text):
    """Run a Python file whose text stands in this program, as if it lay beside it."""
    path = str(HERE / name)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = types.ModuleType(f"reproduced_{Path(name).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    return module
'''

SEED = '''\
def seed_all():
    """Seed torch, NumPy and Python."""
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    random.seed(SEED)
'''

NAMES = (
    "HERE",
    "SEED",
    "SOURCE",
    "TEXT",
    "source",
    "load_file",
    "load_text",
    "check_file",
    "seed_all",
    "open_source",
    "open_model",
    "make_inputs",
    "call_model",
)
"""Names that the program defines."""


@dataclasses.dataclass
class Stored:
    """The arrays that a program loads from a file beside it, by name."""

    file: str
    arrays: dict[str, np.ndarray[Any, Any]] = dataclasses.field(default_factory=dict)

    def add(self, name: str, tensor: torch.Tensor) -> str:
        """Store a tensor; return an expression for it."""
        self.arrays[name] = bits(tensor)
        text = f"torch.from_numpy(STORED[{quoted(name)}])"
        dtype = str(tensor.dtype)
        if str(self.arrays[name].dtype) != dtype.removeprefix("torch."):
            text += f".view({dtype})"
        return text


def bits(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor as an array; if NumPy lacks its dtype, as integers of the same bits.

    `BITS` is the same for the program.
    """
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    elif "float8" in str(tensor.dtype):
        tensor = tensor.view(torch.uint8)
    found: np.ndarray[Any, Any] = tensor.numpy()
    return found


BITS = '''\
def bits(tensor):
    """A tensor as an array; where NumPy lacks its dtype, as whole numbers of the same bits."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    elif "float8" in str(tensor.dtype):
        tensor = tensor.view(torch.uint8)
    return tensor.numpy()
'''


def source_program(
    stages: Stages, recipe: Recipe, stored: Stored, *, embeds: bool
) -> tuple[str, list[Path]]:
    """Return the program with ``open_source``, ``open_model``, ``make_inputs`` and ``call_model``.

    Parameters
    ----------
    stored
        Receives the arrays that cannot be recomputed.
    embeds
        Whether the program contains texts of files besides that of a sample.

    Returns
    -------
    program
        The lines; those of a sample contain its text.
    files
        Files needed beside the program.

    Raises
    ------
    LowerscopeError
        If the inputs contain a value without an expression.
    """
    loaded = stages.loaded
    opening, files = _opening(loaded, recipe)
    parts = [
        *opening,
        _model(loaded, recipe),
        _inputs(loaded, stored),
        _call(loaded),
    ]
    if loaded.exported is None:
        parts.insert(0, SEED)
    if embeds or recipe.source.spec.startswith(PREFIX):
        parts.insert(0, TEXT)
    return "\n\n".join(parts), files


def digest_of(path: Path) -> str:
    """Return a digest of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _opening(loaded: LoadedModel, recipe: Recipe) -> tuple[list[str], list[Path]]:
    path = loaded.path
    if loaded.exported is not None:
        return [FILE, f'SOURCE = Path({str(path)!r})\nDIGEST = "{digest_of(path)}"\n'], []
    if not recipe.source.spec.startswith(PREFIX):
        return [
            FILE,
            f'SOURCE = Path({str(path)!r})\nDIGEST = "{digest_of(path)}"\n',
            'def open_source():\n    """Run the file of the model."""\n    seed_all()\n'
            "    return load_file(SOURCE, DIGEST)\n",
        ], []
    more = [FILE] if recipe.extensions or recipe.source.params else []
    text = path.read_text(encoding="utf-8")
    beside = [each for each in loaded.files if each != path and each.parent == path.parent]
    return [
        *more,
        f"TEXT = {quoted_lines(text)}\n",
        'def open_source():\n    """Run the file of the model, which is a sample."""\n'
        f"    seed_all()\n    return load_text({quoted(path.name)}, TEXT)\n",
    ], beside


def _model(loaded: LoadedModel, recipe: Recipe) -> str:
    lines = ["def open_model(source):", '    """Build the model."""']
    if loaded.exported is not None:
        return "\n".join(
            [
                "def open_source():",
                '    """Load the exported program."""',
                "    check_file(SOURCE, DIGEST)",
                "    return torch.export.load(SOURCE)",
                "",
                "",
                *lines,
                "    return source.module()",
                "",
            ]
        )
    arguments = json.loads(recipe.source.args or "{}")
    given = f"**{arguments!r}" if arguments else ""
    lines += ["    seed_all()", f"    entry = {attribute('source', loaded.entry)}"]
    if loaded.module is not None:
        kinds = "tvm.IRModule, tirx.PrimFunc"
        lines.append(f"    return entry if isinstance(entry, ({kinds})) else entry({given})")
        return "\n".join([*lines, ""])
    assert loaded.model is not None
    lines += [
        f"    model = entry if isinstance(entry, torch.nn.Module) else entry({given})",
        "    model = model.cpu().eval()",
        *(f"    {line}" for line in _parameters(loaded, recipe)),
        "    return model",
        "",
    ]
    return "\n".join(lines)


def _parameters(loaded: LoadedModel, recipe: Recipe) -> Iterator[str]:
    """Yield the lines that load a file of parameters into the model."""
    if not recipe.source.params:
        return
    assert loaded.model is not None
    path = user_path(recipe.source.params).absolute()
    names = names_for(loaded.model, read_arrays(path), str(path))
    archive, of_torch = is_archive(path), is_torch_file(path)
    yield f"path = Path({str(path)!r})"
    yield f'check_file(path, "{digest_of(path)}")'
    if of_torch:
        yield 'arrays = torch.load(path, map_location="cpu", weights_only=True)'
        yield 'if isinstance(arrays.get("state_dict"), dict):'
        yield '    arrays = arrays["state_dict"]'
    else:
        yield "arrays = np.load(path)" if archive else "arrays = pickle.loads(path.read_bytes())"
    yield "state = model.state_dict(keep_vars=True)"
    yield "with torch.no_grad():"
    for key, name in names.items():
        made = f"arrays[{quoted(key)}]"
        made = made if of_torch else f"torch.from_numpy(np.array({made}))"
        yield f"    state[{quoted(name)}].copy_({made})"


def _inputs(loaded: LoadedModel, stored: Stored) -> str:
    lines = ["def make_inputs(source, model):", '    """The inputs, as tensors, in order."""']
    origin = loaded.offered.examples.origin
    made = loaded.calling.is_flat and all(each.origin == origin for each in loaded.inputs)
    if made and loaded.inputs and loaded.exported is not None:
        return "\n".join([*lines, "    return list(source.example_inputs[0])", ""])
    if made and loaded.inputs and loaded.offered.examples.make is not None:
        owner = "model" if hasattr(loaded.model, "example_inputs") else "source"
        call = "()" if callable(loaded.offered.examples.make) else ""
        lines += [
            f"    values = {owner}.example_inputs{call}",
            "    values = values if isinstance(values, (tuple, list)) else (values,)",
            "    return [torch.as_tensor(each) for each in values]",
            "",
        ]
        return "\n".join(lines)
    lines.append("    return [")
    for each in loaded.inputs:
        lines.append(f"        {stored.add(f'input {each.name}', each.value)},")
    return "\n".join([*lines, "    ]", ""])


def _call(loaded: LoadedModel) -> str:
    calling = loaded.calling
    args = [_argument(each, loaded) for each in calling.args]
    args += keywords((name, _argument(each, loaded)) for name, each in calling.kwargs.items())
    text = "*inputs" if calling.is_flat else ", ".join(args)
    return "\n".join(
        [
            "def call_model(model, inputs, source):",
            '    """Call the model as it was traced."""',
            f"    return model({text})",
            "",
        ]
    )


def _argument(value: Any, loaded: LoadedModel) -> str:
    if isinstance(value, Place):
        return f"inputs[{int(value)}]"
    below = members(value)
    if below is None:
        if isinstance(value, torch.device):
            return f"torch.{value!r}"
        if type(value) in _PLAIN:
            return f'float("{value}")' if value in _INFINITE or value != value else repr(value)
        raise _without_form(value)
    texts = [_argument(each, loaded) for _, each in below]
    kind = type(value)
    if kind is list:
        return f"[{', '.join(texts)}]"
    if kind is tuple:
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
    keys = [key for key, _ in below]
    if kind is dict and all(type(key) in (str, int, bool) for key in value):
        return f"{{{', '.join(f'{key!r}: {t}' for key, t in zip(value, texts, strict=True))}}}"
    if _is_named(value) and kind.__module__.startswith("lowerscope_source_"):
        given = ", ".join(keywords(zip(map(str, keys), texts, strict=True)))
        return f"{attribute('source', *kind.__qualname__.split('.'))}({given})"
    raise _without_form(value)


_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.layout)
_INFINITE = (math.inf, -math.inf)


def _without_form(value: Any) -> LowerscopeError:
    return LowerscopeError(
        f"an input is a {type(value).__name__}, which cannot be written down in a program",
        where="reproduce.py",
        todo="Give the model tensors, or tuples, lists, dicts and dataclasses of tensors",
    )


def _is_named(value: Any) -> bool:
    return hasattr(value, "_fields") or dataclasses.is_dataclass(value)


def model_tensors(model: torch.nn.Module) -> Mapping[str, torch.Tensor]:
    """Return the parameters and buffers of a model by name."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
