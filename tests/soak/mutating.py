"""Files made bad: bytes, members of archives, fields of JSON, opcodes of pickles, lines of code.

All draws are of a seed, so that what was found can be made again.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickletools
import re
import warnings
import zipfile
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Mutation = Callable[[bytes, Random], bytes]

_PIECE = 64
BOMB = 64 << 20
"""So many zeros are packed into an entry."""

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 127, 255, 2**31 - 1, -(2**31), 2**31, 2**53, 2**63),
    *(2**64, -(2**63) - 1, 10**30, 0.5, -0.0, 1e-300, 1e308, float("nan"), float("inf")),
    *(
        "",
        " ",
        "x",
        "\0",
        "\n",
        "é🙂\u202e",
        "A" * 5000,
        "../../../etc/passwd",
        "/",
        "~",
        ".",
        "%s",
    ),
    *("sample:", "sample:none", "os:system", "__import__('os').system('true')", "{0.__class__}"),
    *([], {}, [[]], [None], {"": None}, {"type": "at"}, [1, "a", None, {}], "NaN", "1e999"),
)
"""Values of another type for a field, and numbers out of all bounds."""

_WORDS: tuple[list[Any], list[Any]] = (
    [],
    ["relu", "matmul", "split", "vectorize", "parallel", "te", "library", "llvm", "FuseOps", "s2"],
)
"""Texts that mean something in one place or another."""


# Bytes


def flipped(data: bytes, random: Random) -> bytes:
    """Change single bits, or bytes to those that are special."""
    made = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 40))):
        if made:
            place = random.randrange(len(made))
            value = random.choice((made[place] ^ (1 << random.randrange(8)), 0, 0xFF, 0x80, 0x7F))
            made[place] = value
    return bytes(made)


def cut(data: bytes, random: Random) -> bytes:
    """Leave the end out, or the beginning, or nearly all."""
    if not data:
        return data
    place = random.randrange(len(data))
    return random.choice((data[:place], data[:place], data[place:], data[: random.randrange(9)]))


def pieced(data: bytes, random: Random) -> bytes:
    """Repeat, leave out, move or blank a piece, or put noise in its place."""
    begin = random.randrange(len(data) + 1)
    end = min(len(data), begin + random.randrange(1, _PIECE * 8))
    piece, head, tail = data[begin:end], data[:begin], data[end:]
    other = random.randrange(len(data) + 1)
    return random.choice(
        (
            head + piece * random.randrange(2, 50) + tail,
            head + tail,
            (head + tail)[:other] + piece + (head + tail)[other:],
            head + bytes(len(piece)) + tail,
            head + random.randbytes(len(piece)) + tail,
        )
    )


def spliced(one: bytes, other: bytes, random: Random) -> bytes:
    """Begin as one file and end as another."""
    return one[: random.randrange(len(one) + 1)] + other[random.randrange(len(other) + 1) :]


BYTES: tuple[Mutation, ...] = (flipped, cut, pieced)


# JSON


def misfielded(data: bytes, random: Random) -> bytes:
    """Put values of other types, and numbers and texts out of all bounds, into fields."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return flipped(data, random)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        value = _changed(value, random)
    text = json.dumps(value, ensure_ascii=random.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def nested(data: bytes, random: Random) -> bytes:
    """Put brackets inside of brackets, far deeper than anything needs, in place of a value."""
    depth = random.choice((50, 900, 1100, 20_000, 200_000))
    opening, closing = random.choice((("[", "]"), ('{"a":', "}")))
    inner = (opening * depth + "1" + closing * (depth if random.random() < 0.8 else 0)).encode()
    places = [each.span(1) for each in re.finditer(rb":\s*([\w\".\-]+)", data)]
    if not places:
        return inner
    begin, end = random.choice(places)
    return data[:begin] + inner + data[end:]


def _changed(value: Any, random: Random) -> Any:
    """Return `value` with one thing in it changed, at any depth."""
    inside = isinstance(value, dict | list) and len(value) > 0 and random.random() < 0.9
    if not inside:
        # Of its own type half of the time: such a value gets further.
        alike = [each for each in ODD if type(each) is type(value)] + _WORDS[type(value) is str]
        return random.choice(alike if alike and random.random() < 0.6 else ODD)
    if isinstance(value, dict):
        made = dict(value)
        key = random.choice(list(made))
        match random.randrange(12):
            case 0:
                del made[key]
            case 1:
                made[random.choice(("", "unknown", "type", "\0", key + "x"))] = made.pop(key)
            case 2:
                made[key] = made[random.choice(list(made))]
            case _:
                made[key] = _changed(made[key], random)
        return made
    items = list(value)
    place = random.randrange(len(items))
    match random.randrange(12):
        case 0:
            del items[place]
        case 1:
            items.extend(items[place : place + 1] * random.choice((1, 3, 500)))
        case 2:
            random.shuffle(items)
        case _:
            items[place] = _changed(items[place], random)
    return items


JSON: tuple[Mutation, ...] = (misfielded, misfielded, misfielded, nested)


# Pickles


def reordered(data: bytes, random: Random) -> bytes:
    """Leave out, repeat or swap opcodes of a pickle: each still has its arguments."""
    parts = _opcodes(data)
    if len(parts) < 2:
        return flipped(data, random)
    for _ in range(random.choice((1, 1, 2, 6))):
        one, other = random.randrange(len(parts)), random.randrange(len(parts))
        match random.randrange(4):
            case 0:
                parts[one] = b""
            case 1:
                parts[one] *= random.choice((2, 3, 200))
            case 2:
                parts[one], parts[other] = parts[other], parts[one]
            case 3:
                parts.insert(one, random.choice(_OPCODES))
    return b"".join(parts)


_OPCODES = (
    *(b".", b"0", b"1", b"2", b"(", b")", b"]", b"}", b"R", b"b", b"\x81", b"\x93", b"o", b"u"),
    *(b"cposix\nsystem\n", b"cbuiltins\neval\n", b"cnumpy\ndtype\n", b"I9999999999999\n", b"N"),
    *(b"\x8a\xff" + b"\x7f" * 255, b"\x8e" + b"\xff" * 8, b"T\xff\xff\xff\x7f", b"h\xff", b"\x94"),
)
"""Of all kinds: with imports, with calls, with lengths that no file has."""


def _opcodes(data: bytes) -> list[bytes]:
    places: list[int] = []
    with contextlib.suppress(ValueError, IndexError, OverflowError):  # as far as it can be read
        places.extend(place for _, _, place in pickletools.genops(data) if place is not None)
    ends = [*places[1:], len(data)]
    return [data[begin:end] for begin, end in zip(places, ends, strict=False)]


PICKLE: tuple[Mutation, ...] = (reordered, reordered)


# Archives


def repacked(data: bytes, random: Random) -> bytes:
    """Change a member of an archive, in an archive that is whole; or the list of its members."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(each.filename, archive.read(each)) for each in archive.infolist()]
    except (zipfile.BadZipFile, OSError, ValueError):
        return flipped(data, random)
    if not members:
        return flipped(data, random)
    place = random.randrange(len(members))
    name, content = members[place]
    match random.randrange(10):
        case 0:
            del members[place]
        case 1:
            members.append((name, flipped(content, random)))
        case 2:
            members[place] = (random.choice(("../up", "/top", "a\0b", name + "x", "")), content)
        case 3:
            members[place] = (name, bytes(BOMB))
        case _:
            members[place] = (name, _member(name, content, random))
    return _packed(members, random)


def _member(name: str, content: bytes, random: Random) -> bytes:
    kinds = BYTES
    if content[:1] in (b"{", b"["):
        kinds = JSON
    elif content[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04"):
        kinds = PICKLE
    elif content.startswith(b"\x93NUMPY"):
        kinds = (headed, headed, *BYTES)
    elif content.startswith(b"PK"):
        kinds = (repacked,)
    return random.choice(kinds)(content, random)


def headed(data: bytes, random: Random) -> bytes:
    """Say something else of an array in its header, of the length that it had."""
    header = data[10 : data.find(b"\n")]
    old, new = random.choice(
        (
            (rb"\([^)]*\)", b"(" + b"9" * random.randrange(1, 30) + b",)"),
            (rb"\([^)]*\)", b"(-1, 4)"),
            (rb"\([^)]*\)", b"(1, 0, 99999999999999999999)"),
            (rb"\([^)]*\)", b"(((((((((((("),
            (rb"'[<|>][a-z]\d+'", random.choice((b"'O'", b"'<U9'", b"'V99'", b"'<M8'", b"[]"))),
            (rb"'[<|>][a-z]\d+'", b"[('a', '<f4')]"),
            (rb"False", b"None"),
            (rb"'descr'", b"'other'"),
        )
    )
    made = re.sub(old, lambda _: new, header, count=1)[: len(header)].ljust(len(header))
    return data[:10] + made + data[10 + len(header) :]


def _packed(members: Sequence[tuple[str, bytes]], random: Random) -> bytes:
    buffer = io.BytesIO()
    deflated = any(len(content) >= BOMB for _, content in members) or random.random() < 0.2
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, content in members:
            entry = zipfile.ZipInfo(name or "x")
            entry.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
            archive.writestr(entry, content, compresslevel=1)
    data = buffer.getvalue()
    if random.random() < 0.15:
        # What the list of members says of their sizes.
        place = data.rfind(b"PK\x01\x02")
        size = random.choice((0, 1, 2**31, 2**32 - 2)).to_bytes(4, "little")
        data = data[: place + 24] + size + data[place + 28 :]
    return data


ARCHIVE: tuple[Mutation, ...] = (repacked, repacked, repacked)


# Programs


def rewritten(data: bytes, random: Random) -> bytes:
    """Leave out, repeat, move or indent lines of a program, or change a number or a word in it."""
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(random.choice((1, 1, 2, 4))):
        one, other = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(7):
            case 0:
                lines[one] = ""
            case 1:
                lines.insert(one, lines[other])
            case 2:
                lines[one], lines[other] = lines[other], lines[one]
            case 3:
                lines[one] = " " * random.choice((0, 1, 4, 8)) + lines[one].lstrip()
            case 4:
                number = str(random.choice((0, -1, 1, 3, 7, 2**31, 2**63, 10**25, 0.5)))
                lines[one] = re.sub(r"\b\d+\b", number, lines[one], count=1)
            case _:
                words = re.findall(r"[A-Za-z_]\w*", "\n".join(lines))
                word = random.choice(words)
                count = random.randrange(1, 4)
                lines[one] = re.sub(r"\b[A-Za-z_]\w*\b", word, lines[one], count=count)
    return "\n".join(lines).encode()


PROGRAM: tuple[Mutation, ...] = (rewritten, rewritten, rewritten, rewritten)
