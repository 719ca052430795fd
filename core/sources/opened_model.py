"""An opened source: the model, the origin of its inputs, and the environment of its code."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import random
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.utils import _pytree as pytree

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import SEEDS
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sources.examples import ExampleInput, Examples, Signature
from lowerscope.core.sources.pytree import CallSpec, form
from lowerscope.core.sources.user_code import Environment, alone

if TYPE_CHECKING:
    import tvm

    from lowerscope.core.sources.decoding import Decoding

# State of the random number generators that models use: torch's, NumPy's and Python's.


def seed_all(seed: int) -> None:
    """Seed torch, NumPy and Python.

    Raises a `LowerscopeError` if one of them does not accept the seed.
    """
    if not 0 <= seed < SEEDS:
        raise LowerscopeError(
            _("the seed {seed} is out of range", seed=seed),
            where="--seed",
            todo=_("Give one from 0 to {seeds}", seeds=SEEDS - 1),
        )
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


@dataclass(frozen=True, eq=False)
class RandomState:
    """State of the generators."""

    torch: torch.Tensor
    numpy: dict[str, Any]
    python: tuple[Any, ...]

    @classmethod
    def present(cls) -> RandomState:
        """Return the current state."""
        return cls(torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate())

    def restore(self) -> None:
        torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)
        random.setstate(self.python)


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenedModel:
    """An opened source, independent of its inputs."""

    title: str  # the sample's name, or the entry's, or the file's
    path: Path  # the file, absolute
    entry: str  # name of the entry in a Python file; empty for an exported program
    description: str  # first line of the file's docstring
    model: torch.nn.Module | None  # in eval mode, on the CPU; ``None`` for a source without torch
    module: tvm.IRModule | None  # for a file that builds an ``IRModule``
    exported: torch.export.ExportedProgram | None  # for a ``.pt2``
    classes: tuple[str, ...]  # class names of the output, if the file has ``classes``
    # Files whose content the result depends on: those that `source_files` finds, and those imported
    # or read from the file's folder, or below, while it was opened.
    files: tuple[Path, ...]
    home: Environment | None = None
    # The file's function ``reference``, for a source without torch, which takes the inputs as
    # arrays and returns the expected outputs; or the entry's in a dict of this name.
    reference: Callable[..., Any] | None = None
    offered: Offered
    # The file's function ``next_inputs``, for a language model: see `decoding`.
    next_inputs: Callable[..., Any] | None = None
    decoding: Decoding | None = None  # of the decode step of a model
    # Whether the model is given the tensors that its file's own model keeps, and returns them.
    gives_state: bool = False

    def environment(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the file's code runs, for calls of the model's functions.

        Sibling modules have their plain names, and the functions that the file has registered with
        TVM exist. It is reentrant; one thread at a time can be in it.

        Raises:
            LowerscopeError: When it is entered, if it is `spent`.
        """
        return alone() if self.home is None else self.home.entered()

    def registered(self) -> dict[str, SourceLine]:
        """Return the source line of each function that the file registers with TVM, by name."""
        return {} if self.home is None else self.home.registered()

    @property
    def spent(self) -> bool:
        """Return whether it must be opened again because torch operators that it needs are gone.

        They are removed when the environment of another file is entered.
        """
        return self.home is not None and self.home.spent


def in_eval_mode(model: torch.nn.Module) -> torch.nn.Module:
    """Return `model`, in eval mode if it can change its mode."""
    try:
        return model.eval()
    except NotImplementedError:
        # The module of an exported program is already fixed to the mode of its export.
        return model


@dataclass(frozen=True, eq=False)
class Offered:
    """Sources of the inputs of a model."""

    signature: Signature
    examples: Examples
    # The values of inputs that are already known, by name, from a file of parameters.
    fixed: Mapping[str, ExampleInput]
    # State of the random number generators after the build: examples are drawn from there on.
    random: RandomState


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedModel(OpenedModel):
    """An opened source with its inputs."""

    inputs: tuple[ExampleInput, ...]  # the tensors among the inputs as used, in order
    calling: CallSpec
    # Names of the inputs of an ``IRModule`` whose values are from the file of parameters.
    parameters: frozenset[str]


def form_of(loaded: LoadedModel) -> str:
    """Return the inputs of a model without the values of its tensors, as a string.

    Models that were opened alike and have the same form are traced and lowered alike.
    """
    calling = loaded.calling
    args, kwargs = form(calling.args), form(calling.kwargs)
    inputs = [(each.name, each.shape, str(each.value.dtype)) for each in loaded.inputs]
    return repr((inputs, args, kwargs, sorted(loaded.parameters)))


# --- Models that compute gradients in ``forward``, which torch's inference mode does not allow ---

_NAMES = frozenset(
    {"enable_grad", "set_grad_enabled", "requires_grad_", "requires_grad", "jacobian", "hessian"}
)


def with_gradients(model: torch.nn.Module) -> torch.nn.Module:
    """Make the calls of a model enable gradients, which it takes for granted.

    Its class becomes a class of its own, so that copies of it do so as well.
    """
    own = type(model)
    # The module of a file is not lowerscope's: `uses_gradients` reads the code.
    forward = functools.wraps(own.forward)(_enabling(own.forward))
    model.__class__ = type(own.__name__, (own,), {"forward": forward, "__module__": own.__module__})
    return model


def _enabling(own: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.enable_grad():
            result = own(self, *args, **kwargs)
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, result)

    return forward


def computes_gradients(model: torch.nn.Module) -> bool:
    """Return whether the Python code of a model mentions ``torch.autograd`` or ``backward``."""
    return mentions(model, {"autograd", "backward", "grad"})


def version_of(tensor: torch.Tensor) -> int:
    """Return the number of writes into a tensor; 0 for one of inference mode, which has none."""
    return 0 if tensor.is_inference() else tensor._version


class InferenceMode(torch.inference_mode):
    """Torch's inference mode, also in the body of `without_inference_mode`."""

    __enter__ = torch.inference_mode.__enter__


@contextlib.contextmanager
def without_inference_mode() -> Iterator[None]:
    """Let a model's ``torch.inference_mode`` be ``torch.no_grad``: its tensors count writes."""
    own = torch.inference_mode.__enter__

    def enter(self: Any) -> None:
        if not self.mode:
            own(self)
            return
        self._inference_mode_context = torch.no_grad()
        self._inference_mode_context.__enter__()

    torch.inference_mode.__enter__ = enter  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.inference_mode.__enter__ = own  # type: ignore[method-assign]


@contextlib.contextmanager
def transformers_as_in_a_run() -> Iterator[None]:
    """Let torch's transformers in the body compute what they do in a run, without reading values.

    An encoder gives zeros for padding, which it does in a run without gradients by nested tensors,
    which no tracer takes. Whether a mask is a causal one is not looked for: it only decides which
    kernel torch chooses.
    """
    transformer = torch.nn.modules.transformer
    own, detect = torch.nn.TransformerEncoder.forward, transformer._detect_is_causal_mask

    def forward(
        self: Any,
        src: torch.Tensor,
        mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal: bool | None = None,
    ) -> torch.Tensor:
        nests = getattr(self, "use_nested_tensor", False) and not self.layers[0].training
        if src_key_padding_mask is None or mask is not None or not nests or src.dim() != 3:
            return own(self, src, mask, src_key_padding_mask, is_causal)
        norm, self.norm = self.norm, None
        try:
            output = own(self, src, None, src_key_padding_mask, is_causal)
        finally:
            self.norm = norm
        padded = src_key_padding_mask != 0
        if getattr(self, "mask_check", True):
            # Padding elsewhere than at the ends of rows is not left out.
            between = padded[:, :-1].logical_and(padded[:, 1:].logical_not()).any()
            padded = padded.logical_and(between.logical_not())
        output = output.masked_fill(padded.unsqueeze(-1), 0.0)
        return output if norm is None else cast(torch.Tensor, norm(output))

    if torch.backends.mha.get_fastpath_enabled():
        torch.nn.TransformerEncoder.forward = forward  # type: ignore[method-assign]
    transformer._detect_is_causal_mask = lambda _mask, is_causal=None, *_size: is_causal is True
    try:
        yield
    finally:
        transformer._detect_is_causal_mask = detect
        torch.nn.TransformerEncoder.forward = own  # type: ignore[method-assign]


_COMPILED = frozenset(
    {"flex_attention", "create_block_mask", "cond", "while_loop", "associative_scan"}
)
"""Functions of torch that compile what they are given."""


def prepare_compiling(model: torch.nn.Module) -> None:
    """Import torch's compiler, if a model may use it.

    Imported while a model is traced, it would take Python's functions as they are then for its own.
    """
    if mentions(model, _COMPILED):
        importlib.import_module("torch._dynamo")


@contextlib.contextmanager
def without_compiling() -> Iterator[None]:
    """Let functions that ``torch.compile`` compiles run as they are, as for ``torch.cond``.

    Compiled for tensors without values, or under a mode, they fail in later runs as well.
    """
    if "torch._dynamo" in sys.modules:
        # Traced by torch.fx they would raise an error, even where only values are computed.
        with (
            torch.compiler.set_stance("force_eager"),
            torch._dynamo.config.patch(error_on_nested_fx_trace=False),
        ):
            yield
        return
    # Nothing has been compiled yet, and the import of what compiles takes seconds.
    own = torch.compile

    def unchanged(function: Any = None, **_options: Any) -> Any:
        return (lambda given: given) if function is None else function

    torch.compile = unchanged  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile = own


@contextlib.contextmanager
def without_logs(*names: str) -> Iterator[None]:
    """Disable loggers of torch that report on stderr what is no error here."""
    logs = [logging.getLogger(each) for each in names]
    disabled = [each.disabled for each in logs]
    for log in logs:
        log.disabled = True
    try:
        yield
    finally:
        for log, before in zip(logs, disabled, strict=True):
            log.disabled = before


def run_mode(called: Any) -> Callable[[], AbstractContextManager[None]]:
    """Return the mode to call a model or a function in: inference mode, if it allows that.

    It reads the code of all modules: ask once, not at each call.
    """
    return torch.no_grad if uses_gradients(called) else InferenceMode


_WRITTEN = "is_written"
"""Attribute of a parameter that ``forward`` changes."""


def mark_written(parameter: torch.Tensor) -> None:
    """Note that ``forward`` changes a parameter: its content has to be restored after a call."""
    vars(parameter)[_WRITTEN] = True


def is_written(parameter: torch.Tensor) -> bool:
    """Return whether ``forward`` changes a parameter, as far as it has been observed."""
    return _WRITTEN in vars(parameter)


def uses_gradients(called: Any) -> bool:
    """Return whether the Python code of a model or a function enables gradients."""
    return mentions(called, _NAMES)


def mentions(called: Any, names: Set[str]) -> bool:
    """Return whether the Python code of a model or a function has one of the names in it."""
    functions = list(_functions_of(called))
    reached: set[types.FunctionType] = set()
    seen: set[types.CodeType] = set()
    while functions:
        function = functions.pop()
        if function in reached:
            continue
        reached.add(function)
        for value in _captured(function):
            # A decorator such as ``@torch.enable_grad()`` keeps a method of the context.
            if type(getattr(value, "__self__", value)).__name__ in names:
                return True
            if _is_own(value):
                functions.append(value)
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            if code in seen:
                continue
            seen.add(code)
            if not names.isdisjoint(code.co_names):
                return True
            codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
            for name in code.co_names:
                known = function.__globals__.get(name)
                if isinstance(known, types.FunctionType) and _is_own(known):
                    functions.append(known)
    return False


def _captured(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a cell may be empty
            yield cell.cell_contents


def _functions_of(called: Any) -> Iterator[types.FunctionType]:
    if isinstance(called, types.FunctionType):
        yield called
    if not isinstance(called, torch.nn.Module):
        return
    owners: dict[Any, None] = {}
    for module in called.modules():
        owners.update(dict.fromkeys((module, *type(module).__mro__)))
    for owner in owners:
        for each in vars(owner).values():
            function = getattr(each, "__func__", each)
            if _is_own(function):
                yield function


def _is_own(value: Any) -> bool:
    """Return whether a value is a function that is not torch's."""
    return isinstance(value, types.FunctionType) and not str(value.__module__).startswith(
        ("torch.", "torch_", "lowerscope.")
    )
