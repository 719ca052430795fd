"""Exported programs of many kinds, and a watch for code in them that is run: a call of `CANARY`."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import json
import sys
import types
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export, save

CANARY = "it_ran"
MODEL = "models/model.json"
Tensor = torch.Tensor
Document = Any


class Of(nn.Module):
    """A module of one function, with constants."""

    def __init__(self, function: Callable[..., object], **parts: object) -> None:
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)
        self.constant = torch.arange(6.0)
        self.register_buffer("passing", torch.ones(6), persistent=False)
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self, *args, **kwargs)


class Named(nn.Module):
    def forward(self, x: Tensor, d: dict[str, Tensor], pair: list[Tensor], *, k: Tensor) -> Any:
        return {"a": x + d["p q"], "b": [pair[0] + k, (pair[1],)]}


class Fixed(nn.Module):
    def forward(self, x: Tensor, n: int, f: float, on: bool, mode: str, none: None) -> Tensor:
        return x * n + f if on and mode == "sum" else x


class Branch(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if x.shape[0] * x.shape[1] > 7 and x.shape[0] != x.shape[1]:
            x = x + 1
        return x[: y.shape[0]] + y


class Halves(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        torch._check(x.shape[0] % 2 == 0)  # type: ignore[no-untyped-call]
        return x.view(x.shape[0] // 2, 2, 6), torch.arange(int(x.shape[0] * 0.5))


class Derived(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y[1:]


class Item(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        k = n.item()
        torch._check(k >= 0)  # type: ignore[no-untyped-call]
        torch._check(k <= 4)  # type: ignore[no-untyped-call]
        return x[:k], x.nonzero() + 1


class Image(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
        )


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count: Tensor
        self.register_buffer("count", torch.zeros(6))
        self.layers = nn.ModuleDict({"a-b": nn.Linear(6, 6), "c d": nn.Linear(6, 6)})

    def forward(self, x: Tensor) -> Any:
        self.count.add_(1)
        with torch.no_grad():
            y = self.layers["a-b"](x) + self.count
        return self.layers["c d"](y)


def _exports() -> dict[str, Callable[[], torch.export.ExportedProgram]]:
    x, auto = torch.randn(4, 6), Dim.AUTO
    batch, length = Dim("batch", min=2, max=64), Dim("length")

    def of(function: Callable[..., object], *args: object, **given: Any) -> Any:
        return functools.partial(export, Of(function).eval(), args, **given)

    def made(model: nn.Module, *args: object, **given: Any) -> Any:
        return functools.partial(export, model.eval(), args, **given)

    return {
        "static": made(nn.Linear(6, 3), x),
        "dynamic": made(nn.Linear(6, 3), x, dynamic_shapes=({0: batch},)),
        "strict": made(nn.Linear(6, 3), x, dynamic_shapes=({0: batch},), strict=True),
        "guards": made(
            Branch(), x, torch.randn(3, 6), dynamic_shapes=({0: auto, 1: auto}, {0: auto, 1: auto})
        ),
        "halves": made(Halves(), x, dynamic_shapes=({0: auto},)),
        "derived": made(
            Derived(), x, torch.randn(5, 6), dynamic_shapes=({0: length}, {0: length + 1})
        ),
        "item": made(Item(), x, torch.tensor(2)),
        "image": made(
            Image(), torch.randn(2, 3, 32, 32), dynamic_shapes=({0: auto, 2: auto, 3: auto},)
        ),
        "nested": made(Named(), x, {"p q": x, "z": x}, [x, x], kwargs={"k": x}),
        "ordered": made(Named(), x, OrderedDict({"p q": x, "z": x}), [x, x], kwargs={"k": x}),
        "fixed": made(Fixed(), x, 3, 0.5, True, "sum", None),
        "counting": made(Counting(), x),
        "recurrent": made(nn.LSTM(6, 5, batch_first=True), torch.randn(2, 4, 6)),
        "attention": made(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
            torch.randn(2, 4, 8),
            dynamic_shapes=({0: auto, 1: auto},),
        ),
        "cond": of(lambda m, x: torch.cond(x.sum() > 0, _more, _double, (x,)), x),
        "while": of(
            lambda m, x: while_loop(  # type: ignore[no-untyped-call]
                lambda i, a: i < 5, lambda i, a: (i + 1, a + 1), (x[0, 0], x)
            ),
            x,
        ),
        "scan": of(lambda m, x: scan(lambda c, a: (c + a, c * a), torch.zeros(6), x), x),
        "operators": of(
            lambda m, x: (
                torch.einsum("ij,kj->ik", x, x),
                torch.div(x, 2, rounding_mode="floor"),
                nn.functional.gelu(x, approximate="tanh"),
                x.masked_fill(x > 0, float("-inf")) * (1 + 2j),
                (x > 0) & (x < 1),
                nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"),
            ),
            x,
        ),
        "constants": of(lambda m, x: x + m.constant + m.passing + torch.tensor([1.0] * 6), x),
        "autocast": of(_autocast, x),
        "dtypes": of(
            lambda m, *all: sum(each.float() for each in all),
            *(torch.ones(3, dtype=each) for each in _DTYPES),
        ),
        "decomposed": lambda: made(Image(), torch.randn(2, 3, 8, 8))().run_decompositions(),
        "modules": made(
            nn.Sequential(nn.Linear(6, 3), nn.ReLU()), x, preserve_module_call_signature=("0",)
        ),
    }


_DTYPES = (torch.int8, torch.uint8, torch.bool, torch.float16, torch.bfloat16, torch.float64)


def _more(x: Tensor) -> Tensor:
    return x + 1


def _double(x: Tensor) -> Tensor:
    return x * 2


def _autocast(_: object, x: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x.T


class _Programs(dict[str, bytes]):
    """Programs by name, each exported when it is first read."""

    def __missing__(self, name: str) -> bytes:
        stream = io.BytesIO()
        more = {"notes.txt": "of a user"} if name == "static" else None
        with warnings.catch_warnings():
            # torch.export warns of what torch's own modules do.
            warnings.simplefilter("ignore")
            save(_exports()[name](), stream, extra_files=more)
        self[name] = stream.getvalue()
        return self[name]


@functools.cache
def programs() -> Mapping[str, bytes]:
    """Return programs as `torch.export.save` writes them, by what they show."""
    return _Programs()


def names() -> list[str]:
    """Return the names of `programs`, without exporting any."""
    return sorted(_exports())


def members(program: bytes) -> dict[str, bytes]:
    """Return the content of an archive, without the name of its folder."""
    with zipfile.ZipFile(io.BytesIO(program)) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def archive(content: dict[str, bytes]) -> bytes:
    """Return an archive as torch reads it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as new:
        for name, data in content.items():
            new.writestr(f"model/{name}", data)
    return stream.getvalue()


def document(program: bytes, name: str = MODEL) -> Document:
    """Return a part of a program that is JSON."""
    return json.loads(members(program)[name])


def with_document(program: bytes, value: Document, name: str = MODEL) -> bytes:
    """Return a program in which a part is another JSON."""
    return archive(members(program) | {name: json.dumps(value).encode()})


@dataclass
class Watch:
    """Notices in this process if the canary is called, or handed to the interpreter as code."""

    seen: list[str] = field(default_factory=list)
    _on: bool = False

    def __post_init__(self) -> None:
        # There is no way to take a hook away.
        sys.addaudithook(self._heard)

    @contextlib.contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Yield what is noticed meanwhile."""
        self.seen.clear()
        setattr(builtins, CANARY, self._called)
        self._on = True
        try:
            yield self.seen
        finally:
            self._on = False
            delattr(builtins, CANARY)

    def _called(self, *_: object) -> int:
        self.seen.append("the canary was called")
        return 1

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on:
            return
        match event:
            case "exec" if _mentions(args[0]):
                self.seen.append(f"code was run that calls it, of {args[0].co_filename}")
            case "import" if CANARY in str(args[0]):
                self.seen.append(f"import of {args[0]}")
            case "open" if isinstance(args[1], str) and set(args[1]) & set("wax+"):
                self.seen.append(f"{args[0]} was opened to be written")
            case (
                "os.system"
                | "os.exec"
                | "os.fork"
                | "os.posix_spawn"
                | "subprocess.Popen"
                | "ctypes.dlopen"
                | "os.remove"
                | "os.rename"
                | "os.mkdir"
                | "socket.connect"
            ):
                self.seen.append(f"{event} {args!r:.100}")


def _mentions(code: types.CodeType) -> bool:
    return CANARY in code.co_names or any(
        _mentions(each) for each in code.co_consts if isinstance(each, types.CodeType)
    )


@functools.cache
def watch() -> Watch:
    """Return the one watch of this process: its hook stays for ever."""
    return Watch()
