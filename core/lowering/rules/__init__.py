"""The rules, one subject a file; importing this package registers all of them."""

from importlib import import_module
from pkgutil import iter_modules

from lowerscope.core.lowering import legal_forms

assert legal_forms, "importing them enters them in TVM's table"

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
