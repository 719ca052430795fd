"""Exported programs whose fields torch would evaluate, write into code, compile or unpickle."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import typing
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot
from torch._export.serde import schema

from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.sources import array_files, program_text
from lowerscope.core.sources.exported import load_exported
from lowerscope.core.sources.program_text import (
    harmless_expression,
    harmless_paths,
    harmless_target,
    tree,
)
from tests.diagonal import at_length
from tests.end_to_end.driving import OpenWindow, wait_for_problem, wait_for_records
from tests.problems import problem_of
from tests.security.exported_programs import (
    CANARY,
    MODEL,
    Document,
    Watch,
    archive,
    document,
    members,
    names,
    programs,
    watch,
    with_document,
)

CALL = f"{CANARY}()"


@pytest.fixture(scope="module")
def watched() -> Watch:
    return watch()


def refusal(folder: Path, data: bytes) -> Problem:
    """Open a program, which is refused as code, and of which nothing runs."""
    file = folder / "m.pt2"
    file.write_bytes(data)
    with watch().watching() as seen, pytest.raises(LowerscopeError) as caught:
        load_exported(file, trust=False)
    assert not seen
    problem = caught.value.problem
    assert problem.code == "trust", problem.line()
    assert problem.choices
    assert "\n" not in problem.line()
    return problem


def of(name: str, change: Callable[[Document], object]) -> bytes:
    """Return a program with its JSON changed."""
    value = document(programs()[name])
    change(value)
    return with_document(programs()[name], value)


RARE = ("attention", "decomposed", "modules", "ordered", "recurrent", "scan", "strict", "while")
"""Programs whose fields are those of others for the most part."""


@pytest.mark.parametrize("name", [*sorted({*names()} - {*RARE}), *at_length(*RARE)])
def test_ordinary_programs_open(tmp_path: Path, name: str) -> None:
    file = tmp_path / "m.pt2"
    file.write_bytes(programs()[name])
    program, module = load_exported(file, trust=False)
    args, kwargs = program.example_inputs
    assert module(*args, **kwargs) is not None


GUARDS = (
    CALL,
    f"L['x'].size()[{CALL}] == 1",
    "L['x'].__class__",
    "L['x'].size().__len__()",
    f"(lambda: {CALL})()",
    "f'{L}'",
    "__import__('os')",
    "9**9**9",
    'L["x"].size()[0] == 1',
    "L['x'].size()[0] == 1  # comment",
    "(L['x'].size()[0]\n== 1)",
    "L['x'].size()[0] is 1",
    "L['x'].size()[L]",
    "L['x'].storage_offset(1)",
    "math.math.floor(1)",
    "max.floor(1)",
    "open('a').size()[0] == 1",
    f"True, '')\n  {CALL}\n  (True",
    f"True\\\n{CALL}",
    "L",
    "",
)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_is_no_arithmetic_is_code(tmp_path: Path, guard: str) -> None:
    data = of("guards", lambda value: value["guards_code"].append(guard))
    assert "the guard" in refusal(tmp_path, data).what


EXPRESSIONS = (
    CALL,
    f"Symbol('s0') + {CALL}",
    f"Symbol('{CALL}')",
    "Symbol('s0').func",
    "Symbol('s0', positive=print)",
    "Integer",
    "Function('f')(1)",
    "lambda: 1",
    "9**9**9",
    "Pow(Integer(9), Pow(Integer(9), Integer(9)))",
    "Pow(Pow(Pow(Pow(s0, 64), 64), 64), 64)",
    "(s0\n+ 1)",
    "s0 is 1",
    "Pow(Integer(2), -s0)",
    "Pow(s0, Rational(1, s1))",
    "s0_x",
    "Symbol('s0_x')",
    "Symbol('s0', positive=s1)",
    "Float('1', precision=s0)",
    "FloorDivide(s0, 2)",
    "lambdify_Abs(s0)",
    "Pow(s0, 2, 3)",
    "Float('1e999999999')",
    "Pow(Add(Pow(Integer(10000000000), Integer(64)), Integer(1)), Rational(1, 3))",
    "Mul(" + ", ".join(f"Add(s{n}, s{n + 1})" for n in range(13)) + ")",
    "s0\n#",
    "s9999999",
    "0.5.real",
    "1e999",
    "b'a'",
)


def test_an_expression_that_is_no_bounded_arithmetic_is_code(tmp_path: Path) -> None:
    assert [each for each in EXPRESSIONS if harmless_expression(each)] == []

    def in_size(value: Document) -> None:
        sizes = next(iter(value["graph_module"]["graph"]["tensor_values"].values()))["sizes"]
        sizes.append({"as_expr": {"expr_str": CALL, "hint": {"as_int": 4}}})

    def in_range(value: Document) -> None:
        value["range_constraints"][CALL] = {"min_val": 0, "max_val": 3}

    for change in (in_size, in_range):
        assert "the expression" in refusal(tmp_path, of("dynamic", change)).what


NAMES = (
    f"x, other={CALL}",
    f"x):\n    {CALL}\n    def f(self",
    "x.__class__",
    "__builtins__",
    "*x",
    "ｘ",
    "",
)


def _graph(value: Document) -> Document:
    return value["graph_module"]["graph"]


def _call(value: Document) -> Document:
    return value["graph_module"]["module_call_graph"][0]["signature"]


def _node(value: Document) -> Document:
    return _graph(value)["nodes"][0]


def _part(kind: str | None, context: object, *inner: object) -> dict[str, object]:
    return {"type": kind, "context": context, "children_spec": list(inner)}


def _tree(kind: str, context: object, *inner: object) -> str:
    return json.dumps([1, _part(kind, context, *inner)])


def _by_name(name: str) -> dict[str, object]:
    return _part("builtins.dict", json.dumps([name]), _part(None, None))


NAMED: dict[str, Callable[[Document, str], object]] = {
    "an input": lambda value, name: _graph(value)["inputs"][0]["as_tensor"].update(name=name),
    "an output": lambda value, name: _graph(value)["outputs"][0]["as_tensor"].update(name=name),
    "a node": lambda value, name: _node(value).update(name=name),
    "a result": lambda value, name: _node(value)["outputs"][0]["as_tensor"].update(name=name),
    "a use": lambda value, name: _node(value)["inputs"][0]["arg"]["as_tensor"].update(name=name),
    "an argument of an operator": lambda value, name: _node(value)["inputs"][0].update(
        # An empty name and a keyword are names as torch writes them.
        name="a b" if name in ("", "lambda") else name
    ),
    "a value": lambda value, name: _graph(value)["sym_bool_values"].update(
        {name: {"as_bool": True}}
    ),
    "an argument of the module": lambda value, name: _call(value).update(forward_arg_names=[name]),
    "an argument by name": lambda value, name: _call(value).update(
        in_spec=_tree("builtins.tuple", "null", _part("builtins.tuple", "null"), _by_name(name))
    ),
    "a graph": lambda value, name: next(
        each["arg"]["as_graph"]
        for node in _graph(value)["nodes"]
        for each in node["inputs"]
        if "as_graph" in each["arg"]
    ).update(name=name),
    "a signature's input": lambda value, name: value["graph_module"]["signature"]["input_specs"][
        -1
    ]["user_input"]["arg"]["as_tensor"].update(name=name),
}


@pytest.mark.diagonal
@pytest.mark.parametrize("field", sorted(NAMED))
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_identifier_is_code(tmp_path: Path, field: str, name: str) -> None:
    refusal(tmp_path, of("cond", lambda value: NAMED[field](value, name)))


@pytest.mark.parametrize("text", [f"' or {CALL} or '", f'" + {CALL} + "', "\\", "a\nb", "\0"])
def test_a_string_among_the_inputs_that_ends_its_quotes_is_code(tmp_path: Path, text: str) -> None:
    """Torch writes it into a guard of its own."""

    def given(value: Document) -> None:
        next(each for each in _graph(value)["inputs"] if "as_string" in each)["as_string"] = text

    assert "the text" in refusal(tmp_path, of("fixed", given)).what

    def constant(value: Document) -> None:
        value["graph_module"]["signature"]["input_specs"].append(
            {"constant_input": {"name": "x", "value": {"as_string": text}}}
        )

    assert "the text" in refusal(tmp_path, of("fixed", constant)).what


TARGETS = (
    "torch.hub.os.system",
    "torch.load",
    "torch.ops.aten.from_file.default",
    "torch.ops.aten.add.__call__",
    "torch.ops.aten.nothing.default",
    "torch.ops.higher_order.call_torchbind",
    "torch.ops.higher_order.print",
    "torch.ops.inductor.add.default",
    "_operator.call",
    "math.factorial",
    "torch.ops.higher_order.cond.py_impl",
    "torch.ops.aten.add.Tensor.more",
    "x.torch.ops.aten.add.Tensor",
    "#extension:run",
    "print",
    f"torch.ops.aten.add.Tensor\n{CALL}",
)


def test_a_function_that_is_not_known_to_compute_is_code(tmp_path: Path) -> None:
    assert [each for each in TARGETS if harmless_target(each)] == []

    def branch(value: Document) -> Document:
        node = next(each for each in _graph(value)["nodes"] if each["target"].endswith(".cond"))
        return node["inputs"][1]["arg"]

    def as_argument(value: Document) -> None:
        of_node = branch(value)
        of_node.clear()
        of_node["as_operator"] = TARGETS[0]

    def in_a_graph(value: Document) -> None:
        branch(value)["as_graph"]["graph"]["nodes"][0]["target"] = TARGETS[0]

    of_a_node = lambda value: _node(value).update(target=TARGETS[0])  # noqa: E731
    for change in (of_a_node, as_argument, in_a_graph):
        refusal(tmp_path, of("cond", change))


TREES = (
    _tree("collections.defaultdict", {"default_factory_module": "os", "default_factory_name": "x"}),
    _tree("collections.namedtuple", "builtins.dict"),
    _tree("builtins.dict", json.dumps([{"__enum__": True, "fqn": "os:name", "name": "x"}])),
    _tree("builtins.dict", json.dumps([f"a'] or {CALL} or ['"])),
    _tree("builtins.tuple", "null", _part("mine.Type", "null")),
    json.dumps([1, _part("builtins.tuple", "null") | {"more": 1}]),
    _tree("builtins.dict", json.dumps({"a": 1})),
    "[" * 5000,
    "",
)


def test_a_description_of_anything_but_containers_is_code(tmp_path: Path) -> None:
    assert [each for each in TREES if tree(each, calling=False)] == []
    for field in ("in_spec", "out_spec"):
        data = of("static", lambda value, field=field: _call(value).update({field: TREES[0]}))
        assert "the description" in refusal(tmp_path, data).what


ENDS = f'"""{CALL}"""'
METADATA: tuple[tuple[str, object], ...] = (
    ("stack_trace", f'a\n"""\n{CALL}\n"""'),
    ("stack_trace", 1),
    ("nn_module_stack", f"a,b,{ENDS}"),
    ("torch_fn", f"a;b\r{CALL}"),
    ("source_fn_stack", "a,torch.__loader__.load_module"),
    ("source_fn_stack", "a,torch.nn.Linear(1)"),
    ("source_fn_stack", "a,torch-a.torch.nn"),
    ("source_fn_stack", "a,mine.b;torch.nn.Linear"),
    ("source_fn_stack", f"{ENDS},torch.nn.Linear"),
    ("source_fn_stack", f"a,{ENDS}"),
    ("custom", json.dumps({"a": [ENDS]})),
    ("custom", json.dumps({ENDS: "a"})),
    ("custom", "{"),
    ("custom", "[" * 100_000),
    ("from_node", json.dumps([{"name": "a", "more": 1}])),
    ("from_node", json.dumps([{"name": ENDS}])),
    ("from_node", json.dumps([{"name": ["a"]}])),
    ("from_node", json.dumps([{"name": "a", "from_node": [{"name": ENDS}]}])),
    ("from_node", json.dumps([3])),
    ("unknown", "a"),
)


@pytest.mark.parametrize(("field", "text"), METADATA)
def test_metadata_that_ends_a_comment_or_a_string_is_code(
    tmp_path: Path, field: str, text: object
) -> None:
    def change(value: Document) -> None:
        _node(value)["metadata"][field] = text

    refusal(tmp_path, of("static", change))


STRUCTURE: dict[str, Callable[[Document], object]] = {
    "a newer version": lambda value: value["schema_version"].update(minor=21),
    "another version": lambda value: value["schema_version"].update(major=0, minor=0),
    "a field": lambda value: value.update(more=1),
    "a field of a node": lambda value: _node(value).update(more=1),
    "a field of an argument": lambda value: _node(value)["inputs"][0]["arg"].update(as_int=1),
    "text for a number": lambda value: _graph(value)["inputs"].append({"as_int": CALL}),
    "text for a dtype": lambda value: _graph(value)["inputs"].append({"as_scalar_type": CALL}),
    "a long number": lambda value: _graph(value)["inputs"].append({"as_int": 1 << 64}),
    "a table for text": lambda value: _node(value).update(target={"a": 1}),
    "text for a list": lambda value: value.update(guards_code=CALL),
    "text for an entry": lambda value: _node(value)["inputs"].append("a"),
    "text for a table": lambda value: _graph(value).update(tensor_values="a"),
    "a number for an argument": lambda value: _node(value)["inputs"][0].update(arg=5),
    "a number for a truth": lambda value: _graph(value).update(is_single_tensor_return=1),
    "a truth for a number": lambda value: _graph(value)["inputs"].append({"as_int": True}),
    "no number": lambda value: _graph(value)["inputs"].append({"as_float": float("nan")}),
    "a version of torch": lambda value: value.update(torch_version=CALL),
    "a version of torch and more": lambda value: value.update(torch_version=f"2.13.0\n{CALL}"),
    "a version of torch after more": lambda value: value.update(torch_version=f"{CALL}#2.13.0"),
    "a verifier": lambda value: value["verifiers"].append("EXIR"),
    "a device": lambda value: _graph(value)["inputs"].append({"as_device": {"type": CALL}}),
    "an own class": lambda value: _graph(value)["custom_obj_values"].update(
        {"x": {"name": "x", "class_fqn": "a.B"}}
    ),
    "an own class among the inputs": lambda value: _graph(value)["inputs"].append(
        {"as_custom_obj": {"name": "x", "class_fqn": "a.B"}}
    ),
}


FIELDS = [(name, field) for name, fields in program_text.rules().items() for field in fields]


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_each_field_has_a_rule(name: str, field: str) -> None:
    rule = program_text.rules()[name][field]
    text = f'"""\n{CALL}'
    for value in (text, [text], {text: text}, {"a": text}, [{"a": text}]):
        assert list(rule(value)), value


@pytest.mark.parametrize("name", sorted(STRUCTURE))
def test_what_is_not_known_is_code(tmp_path: Path, name: str) -> None:
    refusal(tmp_path, of("static", STRUCTURE[name]))


def test_each_text_of_torch_has_a_grammar() -> None:
    """Another version of torch reads other fields: each of them has to be looked at."""
    assert schema.SCHEMA_VERSION == program_text.READER
    of_torch = {name: each for name, each in vars(schema).items() if dataclasses.is_dataclass(each)}
    unknown = {
        name
        for name, each in of_torch.items()
        for field in dataclasses.fields(each)
        if "str" in repr(typing.get_type_hints(each)[field.name])
        and field.name != "metadata"
        and program_text.text_rule(name, field.name) is None
    }
    # Objects of classes of their own, and what is no part of a model.
    others = {"PayloadMeta", "PayloadConfig", "AOTInductorModelPickleData"}
    assert unknown == {"CustomObjArgument", "InputToCustomObjSpec"} | others


PARTS = (
    "data/aotinductor/model/a.so",
    "data/constants/custom_obj_0",
    "data/constants/opaque_obj_0",
    "data/other",
    "models/model",
    "MODELS/model.json",
    "data/sample_inputs/../../x.pt",
    "a.py",
)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_not_known_is_code(tmp_path: Path, name: str) -> None:
    refusal(tmp_path, archive(members(programs()["static"]) | {name: b"x"}))


class Calls:
    """Is unpickled as a call."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, ("a",)


PICKLED: dict[str, Callable[..., object]] = {
    "os.system": os.system,
    "torch.load": torch.load,
    "torch.FloatTensor": torch.FloatTensor,
    "builtins.eval": eval,
}


@pytest.mark.diagonal
@pytest.mark.parametrize(
    "part", ["data/sample_inputs/model.pt", "data/weights/weight_0", "extra/a"]
)
@pytest.mark.parametrize("name", sorted(PICKLED))
@pytest.mark.parametrize("inside", [False, True])
def test_a_pickle_that_calls_is_code(tmp_path: Path, part: str, name: str, inside: bool) -> None:
    stream = io.BytesIO()
    value = Calls(PICKLED[name])
    torch.save((value,), stream) if inside else pickle.dump((value,), stream)
    parts = members(programs()["static"]) | {part: stream.getvalue()}
    problem = refusal(tmp_path, archive(parts))
    (choice,) = problem.choices
    assert choice.startswith("an import of ")
    assert choice.endswith(f".{name.rpartition('.')[2]}")


def test_archives_inside_of_archives_end(tmp_path: Path) -> None:
    inner = b"a"
    for _ in range(7):
        inner = archive({"version": b"3\n", "a": inner})
    parts = members(programs()["static"]) | {"data/weights/weight_0": inner}
    assert "archives inside of archives" in refusal(tmp_path, archive(parts)).choices
    cut = parts | {"data/weights/weight_0": b"PK\x03\x04abc"}
    assert "an unreadable archive" in refusal(tmp_path, archive(cut)).choices


def test_what_unpacks_to_more_than_there_is_memory_for_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in (members(programs()["static"]) | {"extra/zeros": bytes(1 << 24)}).items():
            new.writestr(f"model/{name}", data)
    file = tmp_path / "m.pt2"
    file.write_bytes(stream.getvalue())
    assert load_exported(file, trust=False)
    monkeypatch.setattr(array_files, "most_bytes", lambda: 1 << 23)
    with pytest.raises(LowerscopeError, match="of memory"):
        load_exported(file, trust=False)


@pytest.mark.parametrize("key", [f"a'] or {CALL} or ['", 'a"b', "a\\b", ("a'",)])
def test_a_key_among_the_example_inputs_is_in_code(tmp_path: Path, key: Any) -> None:
    stream = io.BytesIO()
    x = torch.ones(4, 6)
    torch.save(((x, {key: x, "z": x}, [x, x]), {"k": x}), stream)
    parts = members(programs()["nested"]) | {"data/sample_inputs/model.pt": stream.getvalue()}
    refusal(tmp_path, archive(parts))
    nested = {"k": {key: [x]}}
    assert not any(map(harmless_paths, (nested, [nested], (nested,))))
    assert harmless_paths(((x, 1, None), {"k": [torch.float32, {"p q": "a'"}]}))


def test_torch_does_not_go_on_with_an_older_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`zipfile` sees the last of two archives in a file, and torch has read the first."""
    parts = members(programs()["static"])
    value = json.loads(parts[MODEL])
    # Torch raises a RuntimeError for it.
    value["graph_module"]["graph"]["nodes"][0]["inputs"] = []
    file = tmp_path / "m.pt2"
    file.write_bytes(archive(parts | {MODEL: json.dumps(value).encode()}))
    asked: list[object] = []
    monkeypatch.setattr(zipfile, "ZipFile", lambda *args, **_: asked.append(args))
    assert "cannot be read" in problem_of(load_exported, file, trust=False).what
    assert not asked


def test_torch_unpickles_no_code_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should the auditor have missed something."""
    said: list[str | None] = []

    def load(*_: object) -> None:
        said.append(os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD"))
        raise RuntimeError

    monkeypatch.setattr("torch.export.pt2_archive._package.load_pt2", load)
    file = tmp_path / "m.pt2"
    file.write_bytes(programs()["static"])
    for trust in (False, True):
        with pytest.raises(LowerscopeError):
            load_exported(file, trust=trust)
    assert said == ["1", None]
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ


def test_the_watch_notices_what_runs(tmp_path: Path, watched: Watch) -> None:
    """With trust, what is refused above runs: the canary shows it."""
    file = tmp_path / "m.pt2"
    file.write_bytes(of("guards", lambda value: value["guards_code"].append(CALL)))
    with watched.watching() as seen:
        load_exported(file, trust=True)
    assert seen


def test_the_window_asks_before_it_opens_code(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    file = tmp_path / "m.pt2"
    file.write_bytes(of("dynamic", lambda value: value["guards_code"].append("bool(1)")))
    window = open_window()
    window.open_source(str(file))
    assert "opening it would run code: it has the guard 'bool(1)'" in wait_for_problem(
        qtbot, window
    )
    assert window.document.rejected is not None
    (button,) = (
        each
        for each in window.panes.problems.findChildren(QPushButton)
        if each.text() == "Open anyway"
    )
    button.click()
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.source.trust
