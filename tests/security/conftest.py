"""The fixtures of the real window, for the cases of an adversary that need one."""

from tests.end_to_end.conftest import (
    _look,
    _quick,
    _settled,
    children,
    lasting,
    open_window,
    writable,
)

__all__ = ["_look", "_quick", "_settled", "children", "lasting", "open_window", "writable"]
