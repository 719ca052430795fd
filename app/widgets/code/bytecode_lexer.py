"""Lexer of the text form of TVM's virtual machine bytecode, for the highlighter."""

import re
from collections.abc import Iterator

_WORDS = re.compile(
    r"""(?P<Name_Function>@[^\s:;]+)
    |(?P<Keyword>^\ *(?:call|ret|goto|if)\b)
    |(?P<Operator_Word>\b(?:in|dst|cond|false|true):)
    |(?P<Name_Variable>%\w+)
    |(?P<Name_Label>\b[cf]\[\d+\])
    |(?P<Literal_Number>\bi-?\d+\b|(?<![\w.])-?\d+\b)
    |(?P<Name>[\w.<>$]+)""",
    re.VERBOSE,
)


class BytecodeLexer:
    """Lexer of lines such as ``call  vm.builtin.reshape  in: %0, c[1] dst: %2``."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Yield place, type and text of each token, as a lexer of pygments does."""
        for found in _WORDS.finditer(text):
            kind = (found.lastgroup or "").replace("_", ".")
            yield found.start(), f"Token.{kind}", found.group()
