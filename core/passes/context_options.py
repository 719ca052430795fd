"""Options that passes read from TVM's ``PassContext`` under the pass's own name.

For ``tirx.UnrollLoop`` it has an object with fields, for ``relax.FuseOps`` a value,
``relax.FuseOps.max_depth``. Entries under other names are for several passes, or for the build, and
belong to no pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import tvm

from lowerscope.core.passes.options import Option
from lowerscope.core.records.passes import OptionKind, PassOption

_KINDS: Mapping[str, OptionKind] = {"bool": "bool", "int": "int", "float": "float", "str": "text"}
_PYTHON: Mapping[str, type] = {"bool": bool, "int": int, "float": float, "text": str}
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def context_options(name: str, dialect: str) -> Iterator[Option]:
    """Yield the options of a pass in the context.

    Parameters
    ----------
    name
        Of the pass in the catalogue.
    """
    title = name.rpartition(".")[2]
    names = {f"{dialect}.{title}", f"{dialect}.{_WORD.sub('_', title).lower()}"}
    for key, kind in _configurations().items():
        if key in names:
            yield from _fields(key)
        elif key.rpartition(".")[0] in names and kind in _KINDS:
            record = PassOption(
                name=key.rpartition(".")[2],
                kind=_KINDS[kind],
                nullable=True,
                doc=f"{key} of the PassContext; TVM's own where it is null.",
            )
            yield Option(record, _PYTHON[record.kind], key)


def split(options: Sequence[Option], arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the arguments of a pass without those of the context, and the context's values."""
    config: dict[str, Any] = {}
    own = dict(arguments)
    for option in options:
        name = option.record.name
        if not option.context_key or name not in own:
            continue
        value = own.pop(name)
        if value is None:
            continue
        if option.context_key.endswith(f".{name}"):
            config[option.context_key] = value
        else:
            config.setdefault(option.context_key, {})[name] = value
    return own, config


@cache
def _configurations() -> Mapping[str, str]:
    """Return the keys of the context with their types."""
    known = tvm.transform.PassContext.list_configs()
    return {str(key): str(about["type"]) for key, about in sorted(known.items())}


def _fields(key: str) -> Iterator[Option]:
    """Yield the options of an object in the context, from TVM's description of its fields."""
    made = tvm.transform.PassContext(config={key: {}}).config[key]
    for field in type(made).__tvm_ffi_type_info__.fields:
        schema = json.loads((field.metadata or {}).get("type_schema", "{}"))
        kind = _KINDS.get(schema.get("type", ""))
        if kind is not None:
            convert = _PYTHON[kind]
            record = PassOption(
                name=str(field.name),
                kind=kind,
                default=convert(getattr(made, field.name)),
                doc=str(field.doc or ""),
            )
            yield Option(record, convert, key)
