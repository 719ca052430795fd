"""The run stage: an executable's outputs on given inputs, and torch's outputs."""

from __future__ import annotations

import copy
import ctypes
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import CellType, FunctionType
from typing import Any, cast

import numpy as np
import torch
import tvm
from torch.nn.parameter import is_lazy
from tvm import relax

from lowerscope.core.build.build import make_machine_code
from lowerscope.core.lowering.values import held_from
from lowerscope.core.model.problems import (
    TVM_ERRORS,
    LowerscopeError,
    error_of,
    is_interrupt,
    last_line,
)
from lowerscope.core.model.run_records import OutputRecord
from lowerscope.core.model.texts import _
from lowerscope.core.sandbox.memory_limit import is_shortage, shortage
from lowerscope.core.sources.opened_model import (
    computes_gradients,
    in_eval_mode,
    is_written,
    mark_written,
    run_mode,
)
from lowerscope.core.sources.pytree import (
    CallSpec,
    by_position,
    is_result,
    leaves,
    other_text,
    path_text,
)
from lowerscope.core.tracing.fidelity import kept_state

_MISFIT = re.compile(
    r"ErrorContext\(fn=\w+, loc=param\[\d+\], param=(?P<name>\w+), annotation="
    r"(?P<type>.*\))\)\s"
)
"""Error of the virtual machine for an argument of another shape or dtype than in ``main``."""


def virtual_machine(executable: relax.VMExecutable) -> relax.VirtualMachine:
    """Return a virtual machine on the CPU for an executable."""
    # For a module without TensorIR functions TVM makes a C module without code, and would call a C
    # compiler to link it. It runs without.
    imported = executable.mod.imports
    codeless = len(imported) == 1 and imported[0].kind == "c"
    if codeless and not imported[0].inspect_source().strip(" ;\n"):
        return relax.VirtualMachine(executable.mod, tvm.cpu())
    make_machine_code(executable.mod)
    return relax.VirtualMachine(executable, tvm.cpu())


class Execution:
    """An executable in a virtual machine, with its inputs set.

    Args:
        inputs: Contiguous tensors on the CPU; TVM reads a copy of those that are torch's.
    """

    def __init__(
        self,
        executable: relax.VMExecutable,
        entry: str,
        inputs: Sequence[torch.Tensor | tvm.runtime.Tensor],
    ) -> None:
        machine = virtual_machine(executable)
        self._function = machine[entry]
        self._machine = machine  # the function does not keep it alive
        self.take(inputs)

    def take(self, inputs: Sequence[torch.Tensor | tvm.runtime.Tensor]) -> None:
        """Set new inputs."""
        self._inputs = [
            to_tvm(value) if isinstance(value, torch.Tensor) else value for value in inputs
        ]

    def call(self) -> Any:
        """Run once and return the result of the virtual machine.

        Raises a `LowerscopeError` if the run fails, with TVM's reason.
        """
        try:
            return self._function(*self._inputs)
        except (*TVM_ERRORS, MemoryError) as error:
            if is_shortage(error):
                raise error_of(shortage(last_line(error), "run")) from error
            misfit = _MISFIT.search(str(error))
            if misfit is not None:
                raise LowerscopeError(
                    _(
                        "the run failed: the argument {misfit} does not fit {misfit2}",
                        misfit=misfit["name"],
                        misfit2=misfit["type"],
                    ),
                    where="run",
                    todo=_("Give each argument the shape and dtype that main expects"),
                    details=str(error),
                ) from error
            raise LowerscopeError(
                _("the run failed: {last_line}", last_line=last_line(error)),
                where="run",
                todo=_("Try another lowering; the log has TVM's whole message"),
                details=str(error),
            ) from error

    def watch(self, told: Callable[..., int] | None) -> None:
        """Notify `told` of each call of later runs, before and after it; ``None`` to stop.

        It is given the function, its name, whether it is before the call, the result, and its
        arguments; it returns 0.
        """
        # An instrument cannot be removed.
        self._machine.set_instrument(told or (lambda *_unused: 0))

    def outputs(self, seed: int | None = None) -> tuple[torch.Tensor, ...]:
        """Run once and return copies of the outputs, with tuples flattened.

        Args:
            seed: Of random numbers. What draws them runs in torch, as it does in torch's own run,
                and in the same order.
        """
        if seed is not None:
            torch.manual_seed(seed)
        return tuple(to_torch(value) for value in _leaves(self.call()))


PERTURB, FILL = -6, 0xB4
"""glibc's ``M_PERTURB``; new memory has the complement: large numbers in each dtype of floats."""


@contextmanager
def filled_memory() -> Iterator[None]:
    """Fill memory that is allocated meanwhile, so that elements never written are wrong.

    They would have the values of an earlier run otherwise.
    """
    fill = getattr(ctypes.CDLL(None), "mallopt", lambda *_unused: 0)
    tvm.get_global_func("vm.builtin.memory_manager.clear")()
    fill(PERTURB, FILL)
    try:
        yield
    finally:
        fill(PERTURB, 0)


def to_tvm(value: torch.Tensor) -> tvm.runtime.Tensor:
    """Copy a tensor to TVM, whatever its dtype and memory layout."""
    value = held_from(value)
    # from_dlpack needs 64-byte alignment, which a copy does not guarantee either.
    result = tvm.runtime.empty(tuple(value.shape), str(value.dtype).removeprefix("torch."))
    if value.numel():
        torch.utils.dlpack.from_dlpack(result).copy_(value.detach())
    return result


def to_numpy(value: tvm.runtime.Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor of TVM as an array; bfloat16 as float32, which represents all its values."""
    tensor = torch.utils.dlpack.from_dlpack(value)
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def to_torch(value: Any) -> torch.Tensor:
    """Copy an output of the virtual machine to torch: a tensor, or a number."""
    if isinstance(value, tvm.runtime.Tensor):
        return torch.utils.dlpack.from_dlpack(value).clone()
    return torch.tensor(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tvm.runtime.Tensor | bool | int | float):
        yield value
        return
    for part in value:
        yield from _leaves(part)


class Reference:
    """A copy of a torch model in eval mode, with copies of its inputs.

    Raises a `LowerscopeError` if the model cannot be copied.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        inputs: Sequence[torch.Tensor],
        seed: int,
        calling: CallSpec | None = None,
        side: str = "torch",
    ) -> None:
        self.side = side
        self._model = in_eval_mode(copied(model))
        _tensors, self._restore = kept_state(self._model)
        self._has_run = False
        self.mode = run_mode(self._model)
        """The mode of torch for `infer`."""
        self._calling = calling or by_position([str(index) for index in range(len(inputs))])
        self._seed = seed
        self.take(inputs)

    def compile(self) -> None:
        """Have ``torch.compile`` compile the model on its next call."""
        self._model = cast(torch.nn.Module, torch.compile(self._model, dynamic=False))

    def take(self, inputs: Sequence[torch.Tensor]) -> None:
        """Set new inputs, which are copied."""
        self._pristine = tuple(value.detach().clone() for value in inputs)
        self.refresh()

    def refresh(self) -> None:
        """Copy the inputs again, since a model may change its arguments."""
        values = [value.clone() for value in self._pristine]
        self._args, self._kwargs = self._calling.arguments(values)

    def call(self) -> Any:
        """Run once and return the model's result; call `refresh` before."""
        with self.mode():
            return self.infer()

    def infer(self) -> Any:
        """Run once; the caller sets inference mode."""
        self._has_run = True
        try:
            return self._model(*self._args, **self._kwargs)
        except BaseException as error:
            if is_interrupt(error):
                raise
            # A model may raise any type; it fails this run only.
            raise LowerscopeError(
                _(
                    "{side}'s own run of the model failed: {name}: {last_line}",
                    side=self.side,
                    name=type(error).__name__,
                    last_line=last_line(error),
                ),
                where="run",
                todo=_("Check the function reference of the file")
                if self.side == "NumPy"
                else _("Check that the model runs more than once, in eval mode"),
            ) from error

    def outputs(self) -> tuple[torch.Tensor, ...]:
        """Run once; return the outputs, flattened in torch's order."""
        return tuple(value for _other, value in self.named_outputs())

    def named_outputs(self) -> tuple[tuple[str, torch.Tensor], ...]:
        """Run once; return the outputs with their paths, in torch's order.

        A path is ``logits`` or ``hidden[0]``; ``output``, or ``output[0]``, if the model returns a
        tensor or a tuple. A number is a tensor of rank 0; what is neither is left out. A tensor of
        a dtype or layout that TVM lacks is in the form in which TVM has it.
        """
        return named_results(self.whole_output())

    def whole_output(self) -> Any:
        """Run once from the state in which the model was copied; return the model's result."""
        if self._has_run:
            self._restore()
        self.refresh()
        torch.manual_seed(self._seed)
        return self.call()


def named_results(outputs: Any) -> tuple[tuple[str, torch.Tensor], ...]:
    """Return copies of the tensors and numbers among a model's outputs, with their paths."""
    results = []
    for name, leaf in _named(outputs):
        if is_result(leaf):
            value = held_from(torch.as_tensor(leaf)).clone()
            vars(value)[_NUMBER] = not isinstance(leaf, torch.Tensor)
            results.append((name, value))
    return tuple(results)


_NUMBER = "is_number"
"""Attribute of a tensor in place of a number of Python's, which has no dtype of its own."""


def number_in(dtype: torch.dtype, value: torch.Tensor) -> torch.Tensor:
    """Return a result in a dtype if it is a number of Python's that fits; else as it is."""
    is_number = vars(value).get(_NUMBER) and torch.can_cast(value.dtype, dtype)
    return value.to(dtype) if is_number else value


def other_outputs(outputs: Any) -> tuple[OutputRecord, ...]:
    """Return the records of the outputs that are neither tensors nor numbers."""
    return tuple(
        OutputRecord(
            name=name,
            shape=(),
            dtype=type(leaf).__name__,
            verdict="not-comparable",
            reason=_("{value} is not a tensor, and is not lowered", value=other_text(leaf)),
        )
        for name, leaf in _named(outputs)
        if not is_result(leaf) and leaf is not None
    )


def _named(outputs: Any) -> Iterator[tuple[str, Any]]:
    for path, leaf in leaves(outputs):
        yield path_text(path, "" if path and isinstance(path[0], str) else "output"), leaf


_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def copied(model: torch.nn.Module) -> torch.nn.Module:
    """Copy a model, sharing its parameters, for which there may be no memory twice.

    Those that ``forward`` changes, or may have gradients of, are copied. Computed tensors, such as
    a normed weight, lose their autograd history.
    """
    memo: dict[int, Any] = {
        id(value): value.detach().clone()
        for module in model.modules()
        for value in vars(module).values()
        # Tensors of compressed rows have no storage to copy.
        if isinstance(value, torch.Tensor)
        and not (value.is_leaf and value.layout not in _COMPRESSED)
    }
    if not computes_gradients(model):
        memo |= {
            id(each): each for each in model.parameters() if not (is_lazy(each) or is_written(each))
        }
    memo |= {id(each): each.clone() for each in model.buffers() if each.layout in _COMPRESSED}
    try:
        with warnings.catch_warnings():
            # Modules of exported programs contain tree specs that warn when they are copied.
            warnings.simplefilter("ignore", FutureWarning)
            made = copy.deepcopy(model, memo)
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise LowerscopeError(
            _(
                "the model cannot be copied for the comparison: {last_line}",
                last_line=last_line(error),
            ),
            where=type(model).__name__,
            todo=_("Keep what cannot be copied out of the module, or give it a __deepcopy__"),
        ) from error
    # A copy that a class makes itself may have other parameters.
    copies = dict(made.named_parameters())
    for name, own in model.named_parameters():
        if is_written(own) and name in copies:
            mark_written(copies[name])
    for module in made.modules():
        hooks: list[dict[Any, Any]] = [module._forward_hooks, module._forward_pre_hooks]
        for functions in (vars(module), *hooks):
            for key, value in functions.items():
                if isinstance(value, FunctionType):
                    functions[key] = _rebound(value, memo)
    return made


def _rebound(function: FunctionType, memo: Mapping[int, Any]) -> FunctionType:
    """Return a function, such as a hook, that reads copies where it read what was copied."""
    cells = function.__closure__ or ()
    with suppress(ValueError):  # a variable without a value
        if any(id(each.cell_contents) in memo for each in cells):
            held = [each.cell_contents for each in cells]
            own = tuple(CellType(memo.get(id(each), each)) for each in held)
            code, names = function.__code__, function.__globals__
            made = FunctionType(code, names, function.__name__, function.__defaults__, own)
            made.__kwdefaults__ = function.__kwdefaults__
            return made
    return function
