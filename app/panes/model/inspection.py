"""Facts about a selected entity, in sections, for the inspector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lowerscope.app.panes.common.descriptions import (
    RANDOM,
    find_node,
    find_part,
    line_text,
    origin_text,
    parts_text,
)
from lowerscope.app.panes.common.run_figures import ERROR, TIME, run_facts
from lowerscope.core.model.formatting import (
    bytes_text,
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
from lowerscope.core.model.texts import _, _n


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
        yield _("Last run"), list(self._run_facts())

    # Nodes

    def _of_node(self, node: FxNode) -> Iterator[tuple[str, list[Fact]]]:
        operator = node.label.partition(" · ")[0]
        line = node.line
        yield (
            _("Node"),
            [
                Fact(_("operator"), operator if operator != node.opcode else ""),
                Fact(_("opcode"), node.opcode),
                Fact(_("target"), node.target if node.opcode.startswith("call_f") else ""),
                Fact(_("args"), node.args if node.args != "()" else ""),
                Fact(_("kwargs"), node.kwargs if node.kwargs != "{}" else ""),
                Fact(_("source"), line_text(line) if line else "", action="source"),
                Fact("", line.text.strip() if line else "", code=True),
            ],
        )
        yield _("Shapes"), list(self._shapes(node))
        yield (
            _("Lowering of this node"),
            [
                Fact(_("rule"), node.rule, action="rule"),
                Fact(_("reason"), node.reason),
                Fact(_("random"), RANDOM if node.random else ""),
                Fact(_("parts"), parts_text(node)),
            ],
        )
        yield _("Became"), self._became(node.bindings, node.functions)

    def _shapes(self, node: FxNode) -> Iterator[Fact]:
        graph, nodes = self._snapshot.fx_graph, self._snapshot.nodes
        edges = () if graph is None else graph.edges
        sources = dict.fromkeys(edge.source for edge in edges if edge.target == node.id)
        for source in sources:
            if source in nodes and nodes[source].shape is not None:
                yield Fact(_("in"), nodes[source].title, _form(nodes[source]))
        for parameter in self._snapshot.model.parameters:
            if parameter.id in self._linked:
                name = parameter.name.rpartition(".")[2]
                yield Fact(name, shape_text(parameter.shape), bytes_text(parameter.size))
        yield Fact(_("out"), shape_text(node.shape) or node.type, node.dtype)

    def _became(self, bindings: Sequence[str], functions: Sequence[str]) -> list[Fact]:
        library = tuple(each for each in functions if each.startswith("ext:"))
        own = tuple(each for each in functions if each not in library)
        return [
            Fact(_("bindings"), entities=tuple(bindings)),
            Fact(_("functions"), entities=own),
            Fact(_("library"), entities=library),
        ]

    def _of_part(self, node: FxNode, part: FxPart) -> Iterator[tuple[str, list[Fact]]]:
        yield (
            _("Part of a node"),
            [
                Fact(_("node"), entities=(node.id,)),
                Fact(_("target"), part.target),
                Fact(_("args"), part.args),
                Fact(_("out"), shape_text(part.shape), part.dtype),
                Fact(_("rule"), part.rule),
            ],
        )
        yield _("Became"), self._became(part.bindings, part.functions)

    # Everything else

    def _of_other(self) -> Iterator[tuple[str, list[Fact]]]:
        entity, model = self._entity, self._snapshot.model
        parameters = (*model.parameters, *self._snapshot.constants)
        tensor = next((each for each in parameters if each.id == entity), None)
        library = next((each for each in self._snapshot.library if each.id == entity), None)
        function = next((each for each in self._functions if each.id == entity), None)
        module = next((each for each in model.modules if each.id == entity), None)
        if library is not None:
            yield _("Library function"), _library_facts(library)
        elif function is not None:
            yield _("Function"), _function_facts(function)
        elif tensor is not None:
            yield _TENSORS.get(tensor.kind, tensor.kind), _tensor_facts(tensor)
        elif module is not None:
            count = f"{module.parameters:,}"
            yield _("Module"), [Fact(_("kind"), module.kind), Fact(_("parameters"), count)]
        elif entity.startswith("tir:"):
            yield from self._of_place()
        elif entity.startswith("relax:"):
            yield _("Binding"), [Fact(_("function"), entity[6:].partition("/")[0])]
        given = [each for each in model.inputs if f"fx:{each.name}" in self._linked]
        yield _("Input"), [Fact(each.name, shape_text(each.shape), each.dtype) for each in given]
        yield (
            _("Linked with"),
            [
                Fact(_("nodes"), entities=self._tied("fx:")),
                Fact(_("bindings"), entities=self._tied("relax:")),
                Fact(_("functions"), entities=self._tied("tir:", whole=True)),
                Fact(_("library"), entities=self._tied("ext:")),
            ],
        )

    def _of_place(self) -> Iterator[tuple[str, list[Fact]]]:
        """Yield the facts about a block, a loop or a buffer of a TensorIR function."""
        owner, _slash, part = self._entity.removeprefix("tir:").partition("/")
        block, slash, loop = part.partition("/")
        facts = [Fact(_("block"), block)]
        if slash:
            around = Fact(_("around"), block)
            facts = [Fact(_("loop"), loop), around] if block else [Fact(_("buffer"), loop)]
        made_of = next((each for each in self._functions if each.id == f"tir:{owner}"), None)
        if made_of is not None and made_of.untied and not self._tied("fx:"):
            facts.append(Fact(_("nodes"), _("not known: {untied}", untied=made_of.untied)))
        yield _("Part of a function"), facts

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
                ERROR,
                f"{mark} {error_text(found.max_abs_error)}",
                _("{max_rel_error} relative", max_rel_error=error_text(found.max_rel_error)),
                role="right" if found.matches else "wrong",
            )
            yield Fact(_("why"), "" if found.matches else found.reason)
        for label, text in run_facts(self._run, (self._entity,)):
            if label == TIME:
                time, _dot, note = text.partition(" · ")
                yield Fact("TVM", time, note)
            elif label != ERROR or found is None or found.matches is None:
                yield Fact(label, text)
        if found is not None and found.torch_ms is not None:
            yield Fact("torch", duration_text(found.torch_ms))


def _form(node: FxNode) -> str:
    return f"{shape_text(node.shape)} {node.dtype}".strip()


def _library_facts(outside: LibraryRecord) -> list[Fact]:
    at = line_text(outside.line) if outside.line else origin_text(outside)
    return [
        Fact(_("registered"), at),
        Fact(_("called by"), "" if outside.calls else _("nothing"), entities=outside.calls),
    ]


_TENSORS = {"parameter": _("Parameter"), "buffer": _("Buffer"), "constant": _("Constant")}
_FUNCTIONS = {
    "relax": _("Relax function"),
    "tensorir": _("TensorIR function"),
    "external": _("Library function"),
}


def _function_facts(function: FunctionRecord) -> list[Fact]:
    is_tensorir = function.kind == "tensorir"
    loops = _n("{count:,} loop", "{count:,} loops", function.loops)
    blocks = _n("{count:,} block", "{count:,} blocks", function.blocks)
    return [
        Fact(_("kind"), _FUNCTIONS[function.kind]),
        Fact(
            _("size"), _("{loops} in {blocks}", loops=loops, blocks=blocks) if is_tensorir else ""
        ),
        Fact(
            _("called by"),
            "" if function.calls or not is_tensorir else _("nothing"),
            entities=function.calls,
        ),
    ]


def _tensor_facts(tensor: ParameterRecord) -> list[Fact]:
    return [
        Fact(_("shape"), shape_text(tensor.shape), tensor.dtype),
        Fact(_("size"), bytes_text(tensor.size)),
        Fact(_("also"), ", ".join(tensor.aliases)),
    ]
