"""Facts about a selected entity, in sections, for the inspector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from lowerscope.app.panes.common.descriptions import (
    RANDOM,
    find_node,
    find_part,
    line_text,
    origin_text,
    parts_text,
)
from lowerscope.app.panes.common.node_figures import run_facts
from lowerscope.core.model.formatting import (
    bytes_text,
    counted,
    duration_text,
    error_text,
    shape_text,
)
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.model.snapshot import (
    FunctionRecord,
    FxNode,
    FxPart,
    LibraryRecord,
    ParameterRecord,
    Snapshot,
)


@dataclass(frozen=True)
class Fact:
    """A label with its value: a text, or entities to select."""

    label: str
    text: str = ""
    note: str = ""  # Behind the text, quieter.
    entities: tuple[str, ...] = ()  # Shown by their names.
    code: bool = False  # A line of code, over the whole width.
    action: str = ""  # A link that the text is: ``"source"`` or ``"rule"``.
    role: str = ""  # Role of the text's colour.

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to show."""
        return not self.text and not self.entities


@dataclass(frozen=True)
class Section:
    """Facts under a title."""

    title: str
    facts: tuple[Fact, ...]


def sections_of(
    snapshot: Snapshot,
    entity: str,
    linked: frozenset[str],
    function: FunctionRecord | None = None,
    run: RunRecord | None = None,
) -> tuple[Section, ...]:
    """Return the facts about an entity.

    Args:
        linked: Ids of what it is linked with.
        function: The function that it is at the current step.
        run: The last run.
    """
    found = _Inspected(snapshot, entity, linked, function, run)
    sections = (
        Section(title, tuple(fact for fact in facts if not fact.is_empty))
        for title, facts in found.sections()
    )
    return tuple(section for section in sections if section.facts)


class _Inspected:
    def __init__(
        self,
        snapshot: Snapshot,
        entity: str,
        linked: frozenset[str],
        function: FunctionRecord | None,
        run: RunRecord | None,
    ) -> None:
        self._snapshot = snapshot
        self._entity = entity
        self._linked = linked
        self._functions = snapshot.functions if function is None else (function,)
        self._run = run

    def sections(self) -> Iterator[tuple[str, list[Fact]]]:
        """Yield titles and facts, empty ones included."""
        node = find_node(self._snapshot, self._entity)
        part = find_part(self._snapshot, self._entity)
        if node is not None:
            yield from self._of_node(node)
        elif part is not None:
            yield from self._of_part(*part)
        else:
            yield from self._of_other()
        yield _tr("Last run"), list(self._run_facts())

    # Nodes

    def _of_node(self, node: FxNode) -> Iterator[tuple[str, list[Fact]]]:
        operator = node.label.partition(" · ")[0]
        line = node.line
        yield (
            _tr("Node"),
            [
                Fact(_tr("operator"), operator if operator != node.opcode else ""),
                Fact(_tr("opcode"), node.opcode),
                Fact(_tr("target"), node.target if node.opcode.startswith("call_f") else ""),
                Fact(_tr("args"), node.args if node.args != "()" else ""),
                Fact(_tr("kwargs"), node.kwargs if node.kwargs != "{}" else ""),
                Fact(_tr("source"), line_text(line) if line else "", action="source"),
                Fact("", line.text.strip() if line else "", code=True),
            ],
        )
        yield _tr("Shapes"), list(self._shapes(node))
        yield (
            _tr("Lowering of this node"),
            [
                Fact(_tr("rule"), node.rule, action="rule"),
                Fact(_tr("reason"), node.reason),
                Fact(_tr("random"), RANDOM if node.random else ""),
                Fact(_tr("parts"), parts_text(node)),
            ],
        )
        yield _tr("Became"), self._became(node.bindings, node.functions)

    def _shapes(self, node: FxNode) -> Iterator[Fact]:
        graph, nodes = self._snapshot.fx_graph, self._snapshot.nodes
        edges = () if graph is None else graph.edges
        sources = dict.fromkeys(edge.source for edge in edges if edge.target == node.id)
        for source in sources:
            if source in nodes and nodes[source].shape is not None:
                yield Fact(_tr("in"), nodes[source].title, _form(nodes[source]))
        for parameter in self._snapshot.model.parameters:
            if parameter.id in self._linked:
                name = parameter.name.rpartition(".")[2]
                yield Fact(name, shape_text(parameter.shape), bytes_text(parameter.size))
        yield Fact(_tr("out"), shape_text(node.shape) or node.type, node.dtype)

    def _became(self, bindings: Sequence[str], functions: Sequence[str]) -> list[Fact]:
        library = tuple(each for each in functions if each.startswith("ext:"))
        own = tuple(each for each in functions if each not in library)
        return [
            Fact(_tr("bindings"), entities=tuple(bindings)),
            Fact(_tr("functions"), entities=own),
            Fact(_tr("library"), entities=library),
        ]

    def _of_part(self, node: FxNode, part: FxPart) -> Iterator[tuple[str, list[Fact]]]:
        yield (
            _tr("Part of a node"),
            [
                Fact(_tr("node"), entities=(node.id,)),
                Fact(_tr("target"), part.target),
                Fact(_tr("args"), part.args),
                Fact(_tr("out"), shape_text(part.shape), part.dtype),
                Fact(_tr("rule"), part.rule),
            ],
        )
        yield _tr("Became"), self._became(part.bindings, part.functions)

    # Everything else

    def _of_other(self) -> Iterator[tuple[str, list[Fact]]]:
        entity, model = self._entity, self._snapshot.model
        parameters = (*model.parameters, *self._snapshot.constants)
        tensor = next((each for each in parameters if each.id == entity), None)
        library = next((each for each in self._snapshot.library if each.id == entity), None)
        function = next((each for each in self._functions if each.id == entity), None)
        module = next((each for each in model.modules if each.id == entity), None)
        if library is not None:
            yield _tr("Library function"), _library_facts(library)
        elif function is not None:
            yield _tr("Function"), _function_facts(function)
        elif tensor is not None:
            yield tensor.kind.capitalize(), _tensor_facts(tensor)
        elif module is not None:
            count = f"{module.parameters:,}"
            yield _tr("Module"), [Fact(_tr("kind"), module.kind), Fact(_tr("parameters"), count)]
        elif entity.startswith("tir:"):
            yield from self._of_place()
        elif entity.startswith("relax:"):
            yield _tr("Binding"), [Fact(_tr("function"), entity[6:].partition("/")[0])]
        given = [each for each in model.inputs if f"fx:{each.name}" in self._linked]
        yield _tr("Input"), [Fact(each.name, shape_text(each.shape), each.dtype) for each in given]
        yield (
            _tr("Linked with"),
            [
                Fact(_tr("nodes"), entities=self._tied("fx:")),
                Fact(_tr("bindings"), entities=self._tied("relax:")),
                Fact(_tr("functions"), entities=self._tied("tir:", whole=True)),
                Fact(_tr("library"), entities=self._tied("ext:")),
            ],
        )

    def _of_place(self) -> Iterator[tuple[str, list[Fact]]]:
        """Yield the facts about a block, a loop or a buffer of a TensorIR function."""
        owner, _, part = self._entity.removeprefix("tir:").partition("/")
        block, slash, loop = part.partition("/")
        facts = [Fact(_tr("block"), block)]
        if slash:
            around = Fact(_tr("around"), block)
            facts = [Fact(_tr("loop"), loop), around] if block else [Fact(_tr("buffer"), loop)]
        made_of = next((each for each in self._functions if each.id == f"tir:{owner}"), None)
        if made_of is not None and made_of.untied and not self._tied("fx:"):
            facts.append(Fact(_tr("nodes"), _tr("not known: {0}").format(made_of.untied)))
        yield _tr("Part of a function"), facts

    def _tied(self, kind: str, *, whole: bool = False) -> tuple[str, ...]:
        found = (each for each in self._linked if each.startswith(kind) and each != self._entity)
        return tuple(sorted(each for each in found if not whole or "/" not in each))

    def _run_facts(self) -> Iterator[Fact]:
        if self._run is None:
            return
        runs = [each for each in self._run.nodes if each.id == self._entity]
        found = runs[0] if runs else None
        if found is not None and found.matches is not None:
            mark = "✓" if found.matches else "✕"
            yield Fact(
                _tr("error"),
                f"{mark} {error_text(found.max_abs_error)}",
                _tr("{0} relative").format(error_text(found.max_rel_error)),
                role="right" if found.matches else "wrong",
            )
            yield Fact(_tr("why"), "" if found.matches else found.reason)
        for label, text in run_facts(self._run, (self._entity,)):
            if label == "time":
                time, _, note = text.partition(" · ")
                yield Fact("TVM", time, note)
            elif label != "error" or found is None or found.matches is None:
                yield Fact(label, text)
        if found is not None and found.torch_ms is not None:
            yield Fact("torch", duration_text(found.torch_ms))


def _form(node: FxNode) -> str:
    return f"{shape_text(node.shape)} {node.dtype}".strip()


def _library_facts(outside: LibraryRecord) -> list[Fact]:
    at = line_text(outside.line) if outside.line else origin_text(outside)
    return [
        Fact(_tr("registered"), at),
        Fact(_tr("called by"), "" if outside.calls else _tr("nothing"), entities=outside.calls),
    ]


def _function_facts(function: FunctionRecord) -> list[Fact]:
    is_tensorir = function.kind == "tensorir"
    loops, blocks = counted(function.loops, "loop"), counted(function.blocks, "block")
    return [
        Fact(_tr("kind"), "TensorIR" if is_tensorir else function.kind.capitalize()),
        Fact(_tr("size"), _tr("{0} in {1}").format(loops, blocks) if is_tensorir else ""),
        Fact(
            _tr("called by"),
            "" if function.calls or not is_tensorir else _tr("nothing"),
            entities=function.calls,
        ),
    ]


def _tensor_facts(tensor: ParameterRecord) -> list[Fact]:
    return [
        Fact(_tr("shape"), shape_text(tensor.shape), tensor.dtype),
        Fact(_tr("size"), bytes_text(tensor.size)),
        Fact(_tr("also"), ", ".join(tensor.aliases)),
    ]


def _tr(text: str) -> str:
    return QCoreApplication.translate("Inspector", text)
