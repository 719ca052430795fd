"""Exported programs of many kinds, and changes of one field that would make torch run code.

The changes call `CANARY`, which `Watch` puts among the builtins: a call is noticed, and so is code
that mentions it and is handed to the interpreter.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import io
import json
import os
import sys
import types
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export, save

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.sources.exported import load_exported

CANARY = "it_ran"
MODEL = "models/model.json"
Tensor = torch.Tensor
Document = Any
Place = tuple[str | int, ...]


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


@functools.cache
def programs() -> dict[str, bytes]:
    """Return programs as `torch.export.save` writes them, by what they show."""
    found = {}
    with warnings.catch_warnings():
        # torch.export warns of what torch's own modules do.
        warnings.simplefilter("ignore")
        for name, make in _exports().items():
            stream = io.BytesIO()
            more = {"notes.txt": "of a user"} if name == "static" else None
            save(make(), stream, extra_files=more)
            found[name] = stream.getvalue()
    return found


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


def places(value: Document, start: Place = ()) -> Iterator[Place]:
    """Yield the path to each field in a document."""
    if start:
        yield start
    if isinstance(value, (dict, list)):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(entry, (*start, key))


def at(value: Document, place: Place) -> Document:
    """Return the field of a document at a path."""
    for key in place:
        value = value[key]
    return value


def kind_of(place: Place) -> Place:
    """Return what tells the kind of a field: its name, and the name of what it is in."""
    tables = ("tensor_values", "sym_int_values", "sym_bool_values", "range_constraints", "config")
    names = [
        "*" if number and place[number - 1] in tables else key
        for number, key in enumerate(place)
        if isinstance(key, str)
    ]
    return tuple(names[-2:])


CALLS = (
    f"{CANARY}()",
    f"(lambda: {CANARY}())()",
    f"[{CANARY}() for _ in (1,)]",
    f"__import__('builtins').{CANARY}()",
    f"().__class__.__base__.__subclasses__()[0].__init__.__globals__['{CANARY}']()",
    f"exec('{CANARY}()')",
    f"f'{{{CANARY}()}}'",
    f"'{{0.__class__}}'.format({CANARY}())",
)
"""Python that calls the canary."""

SPLICES = (
    "{call}",
    "{old}; {call}",
    "{old}\n    {call}\n",
    "{old}\r    {call}\r",
    "{old} + {call}",
    "{call} or {old}",
    "{old} if {call} else 1",
    "{old}[{call}]",
    '{old}" + str({call}) + "',
    "{old}' + str({call}) + '",
    '{old}") or {call} or ("',
    "{old}') or {call} or ('",
    '{old}\\") or {call} #',
    '{old}\n"""\n{call}\n"""\n',
    "{old}=({call}), other",
    "{old}: ({call})",
    "{old}, other={call}",
    "{old}):\n    {call}\n    def f(self",
    "{old} # {call}\n{call}",
    "{old}\u2028{call}",
    "{old}.__class__.__init__",
    "__import__('os').system('touch {canary}')",
    "open('{canary}', 'w')",
    "torch.hub.os.system",
    "torch.ops.load_library",
    "torch.ops.aten.from_file.default",
    "_operator.call",
    "_operator.methodcaller",
    "math.__loader__",
    "#{call}:{call}",
    "builtins.{canary}",
    "9**9**9",
    "Pow(Integer(9), Pow(Integer(9), Integer(9)))",
    "LShift(Integer(1), Integer(99999999999))",
    "Symbol('{call}')",
    "{old}!=factorial(10**9)",
    "L['x'].size()[{call}]",
    "{{{call}}}",
    "%s{old}%n",
    "../../../../{canary}",
    "/tmp/{canary}",
    "custom_obj_0",
    "opaque_obj_0",
    '[1, {{"type": "collections.defaultdict", "context": {{"default_factory_module": "{canary}"}},'
    ' "children_spec": []}}]',
    '[1, {{"type": "builtins.dict", "context": "[{{\\"__enum__\\": true,'
    ' \\"fqn\\": \\"{canary}:a\\", \\"name\\": \\"b\\"}}]", "children_spec": []}}]',
    "\0{call}",
    "",
)
"""Forms in which a call of the canary is put in the place of text."""

OTHER_VALUES: tuple[Document, ...] = (
    None,
    True,
    -1,
    1 << 62,
    1 << 80,
    10**400,
    1e308,
    [],
    {},
    CALLS[0],
    [CALLS[0]],
    {CALLS[0]: CALLS[0]},
    {"as_string": f"' or {CALLS[0]} or '"},
    {"as_operator": "torch.hub.os.system"},
    {"as_custom_obj": {"name": "x", "class_fqn": CALLS[0]}},
    {"as_expr": {"expr_str": CALLS[0], "hint": None}},
    {"as_int": CALLS[0]},
)


def hostile(old: Document, random: Random) -> Document:
    """Return something to put in the place of a value."""
    if random.random() < (0.85 if isinstance(old, str) else 0.3):
        text = random.choice(SPLICES) if random.random() < 0.7 else random.choice(SPLICES[:7])
        before = old if isinstance(old, str) else "x"
        return text.format(old=before, call=random.choice(CALLS), canary=CANARY)
    return random.choice(OTHER_VALUES)


@dataclass(frozen=True)
class Changed:
    """A program of which one field is changed."""

    name: str
    what: str
    data: bytes


def changed(number: int) -> Changed:
    """Return a program of `programs` with one field changed; the same for the same number."""
    random = Random(number)
    name = random.choice(sorted(programs()))
    program = programs()[name]
    parts = members(program)
    if random.random() < 0.08:
        part = random.choice(sorted(parts))
        what, parts = _changed_part(parts, part, random)
        return Changed(name, what, archive(parts))
    texts = [part for part in parts if part.endswith(".json")]
    part = MODEL if random.random() < 0.8 else random.choice(texts)
    value = json.loads(parts[part])
    kinds: dict[Place, list[Place]] = {}
    for place in places(value):
        kinds.setdefault(kind_of(place), []).append(place)
    texts_first = [kind for kind, found in kinds.items() if isinstance(at(value, found[0]), str)]
    chosen = texts_first if texts_first and random.random() < 0.6 else list(kinds)
    place = random.choice(kinds[random.choice(chosen)])
    owner, key = at(value, place[:-1]), place[-1]
    deed = random.random()
    if deed < 0.12 and isinstance(owner, dict):
        # The name of a field, or of a value in a table.
        new = random.choice(SPLICES).format(old=key, call=random.choice(CALLS), canary=CANARY)
        entry = owner.pop(key) if random.random() < 0.5 else copy.deepcopy(owner[key])
        owner[new] = entry
    elif deed < 0.35:
        # A value that is found elsewhere in it, of the same type.
        alike = [each for each in places(value) if type(at(value, each)) is type(owner[key])]
        new = copy.deepcopy(at(value, random.choice(alike)))
        owner[key] = new
    else:
        new = hostile(owner[key], random)
        owner[key] = new
    what = f"{part} {'.'.join(map(str, place))}: {new!r:.200}"
    return Changed(name, what, archive(parts | {part: json.dumps(value).encode()}))


class Reducing:
    """Calls the canary when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return exec, (f"{CANARY}()",)


def _changed_part(
    parts: dict[str, bytes], part: str, random: Random
) -> tuple[str, dict[str, bytes]]:
    """Return what has become of a member of an archive, and the archive."""
    evil = io.BytesIO()
    torch.save(({CALLS[0]: torch.ones(1)}, Reducing()), evil)
    keyed = io.BytesIO()
    torch.save(((torch.ones(1),), {f"x'] or {CALLS[0]} or ['": torch.ones(1)}), keyed)
    names = (
        part.upper(),
        f"../{part}",
        "data/aotinductor/model/a.so",
        "data/constants/opaque_obj_0",
        "data/constants/model.pt",
        "data/weights/model.pt",
        "models/other.json",
        f"models/{CALLS[0]}.json",
        "extra/run.py",
        f"{CANARY}.py",
    )
    contents = (evil.getvalue(), keyed.getvalue(), parts[part], CALLS[0].encode(), b"")
    content = random.choice(contents)
    if random.random() < 0.5:
        return f"{part} is another", parts | {part: content}
    name = random.choice(names)
    return f"{part} is {name} as well", parts | {name: content}


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


@dataclass
class Tally:
    """Counts of the programs that were opened, refused as code, or could not be read."""

    opened: int = 0
    refused: int = 0
    unreadable: int = 0
    executed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Errors that are not said in one line."""


def open_changed(folder: Path, numbers: range) -> Tally:
    """Open changed programs without trust, and count what became of them."""
    tally, file = Tally(), folder / "changed.pt2"
    for program in programs().values():
        # Opening imports much the first time.
        file.write_bytes(program)
        load_exported(file, trust=False)
    before = Path.cwd()
    os.chdir(folder)
    try:
        for number in numbers:
            case = changed(number)
            file.write_bytes(case.data)
            label = f"{number}: {case.name}, {case.what}"
            with watch().watching() as seen:
                try:
                    load_exported(file, trust=False)
                    tally.opened += 1
                except LowerscopeError as error:
                    if error.problem.code == "trust":
                        tally.refused += 1
                    else:
                        tally.unreadable += 1
                    if "\n" in error.problem.line():
                        tally.broken.append(f"{label}: {error.problem.line()}")
                except Exception as error:
                    tally.broken.append(f"{label}: {error!r}")
            if seen:
                tally.executed.append(f"{label}: {seen}")
            strange = {each.name for each in folder.iterdir()} - {file.name}
            if strange:
                tally.executed.append(f"{label}: wrote {strange}")
    finally:
        os.chdir(before)
    return tally
