"""Names that would become code where they are not written as names, and a model that has them."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import strategies as st

from lowerscope.core.model.recipe import Override, Recipe, Source, Step
from lowerscope.core.model.schedule import APPLY_SCHEDULES, At, Primitive, Schedule

RUN = "setattr(__import__('sys'), 'it_ran', 1)"
"""Code that leaves a trace if it is run; it fits into the name of a file."""

PIECES = (
    *('"', "'", '"""', "'''", "\\", "{", "}", "{{", "(", ")", "[", "]", ",", ";", ":", "#", "%s"),
    *("\n", "\r", "\t", "\x0c", "\x85", "\u2028", "\u202e", "\u2066", "\u200b", "\ufeff", "\x1b"),
    *(
        "א",
        "é",
        "名",
        "😀",
        "lambda",
        "None",
        "import os",
        "x",
        "_",
        "-",
        "<hostile>",
        "&",
        "</script>",
    ),
    *(f"{{{RUN}}}", f'"; {RUN}; "', f"'; {RUN}; '", f'"""\n{RUN}\n"""', f"\n{RUN}\n", f"+{RUN}+"),
    f"\r    {RUN}\r",
    f'" + str({RUN}) + "',
)
names = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
members = names.map(lambda name: "m" + name.translate(dict.fromkeys(map(ord, '"\\\n\r'))))
"""Names for what is in a module: torch.fx writes them between quotes, as they are."""


@st.composite
def file_names(draw: st.DrawFn) -> str:
    """Draw a name of a Python file."""
    plain = draw(names).replace("/", "_").replace("\0", "_")
    return plain.encode()[:180].decode(errors="ignore") + ".py"


NET = """
import sys
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module({module!r}, torch.nn.Linear(4, 4))
        self.register_buffer({buffer!r}, torch.arange(4.0))
        self.register_parameter({parameter!r}, torch.nn.Parameter(torch.ones(4)))

    def forward(self, batch):
        x = getattr(self, {module!r})(batch[{key!r}])
        y = torch.fft.rfft(x).real.sum()
        return torch.relu(x) * getattr(self, {buffer!r}) + getattr(self, {parameter!r}) + y


def example_inputs():
    return ({{{key!r}: torch.ones(2, 4)}},)


Net.__qualname__ = {entry!r}
setattr(sys.modules[__name__], {entry!r}, Net)
"""


@st.composite
def recipes(draw: st.DrawFn, folder: Path) -> Recipe:
    """Draw a recipe with hostile names in each place that takes one, and write its model."""
    found = draw(st.lists(members, min_size=3, max_size=3, unique=True))
    entry = draw(names)
    path = folder / draw(file_names())
    path.write_text(
        NET.format(
            module=found[0], buffer=found[1], parameter=found[2], key=draw(names), entry=entry
        ),
        encoding="utf-8",
    )
    block = At(block="compute")
    noted = Primitive(
        id=draw(names),
        name="annotate",
        arguments={"block_or_loop": block, "ann_key": draw(names), "ann_val": draw(names)},
        comment=draw(names),
    )
    unknown = Primitive(id=draw(names) + "2", name=draw(names), comment=draw(names))
    lost = Primitive(
        id=draw(names) + "3", name="parallel", arguments={"loop": At(block=draw(names), loop=0)}
    )
    off = Primitive(id=draw(names) + "4", name=draw(names), on=False)
    return Recipe(
        source=Source(spec=str(path), entry=entry),
        lowering=draw(st.sampled_from(["high-level", "te", "library"])),
        params_as_inputs=draw(st.booleans()),
        overrides=(
            Override(pattern=draw(names), strategy="te"),
            Override(pattern="fft*", strategy="library"),
        ),
        steps=(
            Step(name="LegalizeOps"),
            Step(name=APPLY_SCHEDULES),
            Step(name=draw(names), on=False),
        ),
        schedules=(
            Schedule(function="relu", primitives=(noted,)),
            Schedule(function=draw(names), primitives=(noted, unknown, lost, off)),
        ),
    )


def it_ran() -> bool:
    """Return whether any of the names was run."""
    return vars(sys).pop("it_ran", None) is not None
