"""The whole table, family by family."""

from types import ModuleType

from tests.core.lowering.operator_table import (
    activations,
    arithmetic,
    comparisons,
    convolutions,
    creation,
    elementwise,
    indexing,
    networks,
    orders,
    products,
    rare,
    reductions,
    shapes,
)
from tests.core.lowering.operator_table.entries import Entry

FAMILIES: dict[str, ModuleType] = {
    "Elementwise functions and conversions": elementwise,
    "Activations": activations,
    "Arithmetic": arithmetic,
    "Comparison and logic": comparisons,
    "Reductions": reductions,
    "Orders and scans": orders,
    "Indexing and writing": indexing,
    "Shapes": shapes,
    "Creation": creation,
    "Convolutions, pooling and resampling": convolutions,
    "Products and distances": products,
    "Norms, attention, recurrent layers, losses": networks,
    "Rarely called": rare,
}

ENTRIES: dict[str, Entry] = {}
for _family in FAMILIES.values():
    for _entry in _family.ENTRIES:
        assert _entry.name not in ENTRIES, f"two entries for {_entry.name}"
        ENTRIES[_entry.name] = _entry
