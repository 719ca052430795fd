"""The fast Fourier transform as plain loops for a ``te.extern``.

Rows are transformed by one factor of their length after the other, from a buffer to another in the
order of Stockham (Cochran et al., *What is the fast Fourier transform?*, 1967): all that is read
and written is contiguous, and no element has to be moved to its place at the end. A transform of a
factor's length is written out as sums, which vectors compute for several elements at once.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tvm import te, tirx

from lowerscope.core.lowering.ordered_loops import are_worth_threads, in_order, long, loop, nest

_LARGEST_PRIME = 31
"""Largest prime factor of a length: the sums of a prime length grow with its square."""

_MOST = 8
"""Largest factor of a step that is no prime: its numbers are in registers."""

_TOGETHER = 64
"""Most columns that are transformed together, and so stay cached."""

Parts = tuple[Any, Any]
"""Real and imaginary part; ``None`` for an imaginary part of 0."""


@dataclass(frozen=True)
class Transform:
    """A discrete Fourier transform.

    `n`: length; half of it is given where the others follow from that.
    `sign`: of the exponent: -1 for the forward transform.
    `scale`: factor of all results.
    `count`: number of results: the first ones.
    `only_real`: whether the results have no imaginary parts.
    """

    n: int
    sign: int
    scale: float
    count: int
    only_real: bool = False


def is_smooth(n: int) -> bool:
    """Return whether a length has small prime factors alone."""
    return max(_primes(n), default=1) <= _LARGEST_PRIME


def next_smooth(n: int) -> int:
    """Return the next length, or this one, that is a product of 2, 3 and 5."""
    return next(each for each in itertools.count(n) if 30 ** each.bit_length() % each == 0)


def _primes(n: int) -> list[int]:
    found, prime = [], 2
    while prime * prime <= n:
        if n % prime == 0:
            found.append(prime)
            n //= prime
        else:
            prime += 1
    return [*found, n] if n > 1 else found


def _factors(n: int) -> list[int]:
    """Return the factors of the steps; the first leaves enough elements for vectors."""
    factors: list[int] = []
    most = min(_MOST, max(2, math.isqrt(n)))
    while n > 1:
        small = [each for each in range(2, min(most, n) + 1) if n % each == 0]
        factors.append(small[-1] if small else min(_primes(n)))
        n //= factors[-1]
        most = _MOST
    return factors


def twiddles(n: int, sign: int) -> np.ndarray:
    """Return the factors between the steps: rows of cosines and sines, for all steps one after the
    other.
    """
    found = [np.zeros((2, 1))]
    rest = n
    for factor in _factors(n):
        length, rest = rest, rest // factor
        if rest > 1:
            places = np.outer(np.arange(1, factor), np.arange(rest)).reshape(-1) % length
            angles = sign * 2 * np.pi / length * places
            found.append(np.stack([np.cos(angles), np.sin(angles)]))
    return np.concatenate(found, axis=1)


class _Sums:
    """Sums of parts, each with a name, so that none is computed twice."""

    def __init__(self, dtype: str) -> None:
        self.statements: list[Any] = []
        self._dtype = dtype

    def named(self, value: Any) -> Any:
        if value is None:
            return None
        var = tirx.Var("t", self._dtype)
        self.statements.append(tirx.Bind(var, value))
        return var

    def number(self, value: float) -> Any:
        return tirx.const(value, self._dtype)

    def plus(self, one: Parts, other: Parts) -> Parts:
        pairs = zip(one, other, strict=True)
        real, imaginary = (b if a is None else a if b is None else a + b for a, b in pairs)
        return self.named(real), self.named(imaginary)

    def minus(self, one: Parts, other: Parts) -> Parts:
        pairs = zip(one, other, strict=True)
        real, imaginary = (a if b is None else -b if a is None else a - b for a, b in pairs)
        return self.named(real), self.named(imaginary)

    def times(self, one: Parts, cosine: float, sine: float) -> Parts:
        """Return a number times a constant; the simple ones take no multiplication."""
        real, imaginary = one
        if abs(sine) < 1e-15:
            if cosine == 1:
                return one
            return self._scaled(real, cosine), self._scaled(imaginary, cosine)
        if abs(cosine) < 1e-15:
            return self._scaled(imaginary, -sine), self._scaled(real, sine)
        return self.turned(one, self.number(cosine), self.number(sine))

    def _scaled(self, value: Any, by: float) -> Any:
        if value is None or by == 1:
            return value
        return -value if by == -1 else value * self.number(by)

    def turned(self, one: Parts, cosine: Any, sine: Any) -> Parts:
        real, imaginary = one
        if imaginary is None:
            return self.named(real * cosine), self.named(real * sine)
        return (
            self.named(real * cosine - imaginary * sine),
            self.named(real * sine + imaginary * cosine),
        )

    def transform(self, given: Sequence[Parts], sign: int) -> list[Parts]:
        """Return the transform of some numbers."""
        n = len(given)
        if n == 1:
            return list(given)
        prime = min(_primes(n))
        if prime == n:
            return self._of_prime(given, sign)
        rest = n // prime
        inner = [self.transform(given[first::prime], sign) for first in range(prime)]
        made: list[Parts] = [(None, None)] * n
        for place in range(rest):
            row = []
            for first in range(prime):
                angle = sign * 2 * math.pi * (first * place % n) / n
                cosine, sine = _rounded(math.cos(angle)), _rounded(math.sin(angle))
                row.append(self.times(inner[first][place], cosine, sine))
            made[place::rest] = self._of_prime(row, sign)
        return made

    def _of_prime(self, given: Sequence[Parts], sign: int) -> list[Parts]:
        n = len(given)
        if n == 2:
            return [self.plus(*given), self.minus(*given)]
        sums = [self.plus(given[each], given[n - each]) for each in range(1, n // 2 + 1)]
        differences = [self.minus(given[each], given[n - each]) for each in range(1, n // 2 + 1)]
        whole = given[0]
        for each in sums:
            whole = self.plus(whole, each)
        made: list[Parts] = [whole] * n
        for place in range(1, n // 2 + 1):
            even, odd = given[0], (None, None)
            for number, (both, between) in enumerate(zip(sums, differences, strict=True), start=1):
                angle = 2 * math.pi * (number * place % n) / n
                even = self.plus(even, self.times(both, math.cos(angle), 0.0))
                part = self.times(between, math.sin(angle) * sign, 0.0)
                odd = part if odd == (None, None) else self.plus(odd, part)
            turned = self.times(odd, 0.0, 1.0)
            made[place], made[n - place] = self.plus(even, turned), self.minus(even, turned)
        return made


def _rounded(value: float) -> float:
    """Return a cosine without the error that keeps it from being -1, 0 or 1."""
    return float(round(value)) if abs(value - round(value)) < 1e-15 else value


def te_transform(
    parts: Sequence[te.Tensor],
    table: te.Tensor,
    axis: int,
    wanted: Transform,
) -> Any:
    """Return the transform along `axis`, by its parts.

    Args:
        parts: The real parts, and the imaginary ones if they are not 0.
        table: `twiddles`.
    """
    given = parts[0]
    dtype, last = str(given.dtype), len(given.shape) - 1
    around = {each: long(given.shape[each]) for each in range(last + 1) if each != axis}
    together = 1
    if axis < last:
        columns = int(given.shape[last])
        together = max(each for each in range(1, _TOGETHER + 1) if columns % each == 0)
        around[last] = long(columns // together)

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        def transform(index: Any) -> Any:
            at: dict[int, Any] = {}
            for each in reversed(around):
                is_outermost = len(at) == len(around) - 1
                at[each] = index if is_outermost else tirx.floormod(index, around[each])
                index = tirx.floordiv(index, around[each])

            def place(row: Any, column: Any) -> list[Any]:
                found = {**at, axis: row}
                if axis < last:
                    found[last] = at[last] * together + column
                return [found[each] for each in range(last + 1)]

            is_half = int(given.shape[axis]) < wanted.n
            rows = _Rows(wanted, dtype, together, inputs, outputs, place, is_half=is_half)
            return rows.statement()

        many = functools.reduce(operator.mul, around.values(), long(1))
        elements = [*around.values(), wanted.n * together]
        return loop(many, transform, shared=are_worth_threads(elements))

    shape = [*given.shape[:axis], wanted.count, *given.shape[axis + 1 :]]
    results = 1 if wanted.only_real else 2
    return te.extern(
        [shape] * results, [*parts, table], body, dtype=[dtype] * results, name="transform"
    )


class _Rows:
    """The transform of some columns, or of one row."""

    def __init__(
        self,
        wanted: Transform,
        dtype: str,
        together: int,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        place: Callable[[Any, Any], list[Any]],
        *,
        is_half: bool,
    ) -> None:
        self._wanted, self._n = wanted, wanted.n
        self._dtype, self._together, self._place = dtype, together, place
        *self._inputs, self._table = inputs
        self._outputs, self._is_half = outputs, is_half
        self._factors = _factors(wanted.n)
        self._buffers = [
            [
                tirx.decl_buffer((long(wanted.n * together),), dtype, f"{name}{side}", layout=None)
                for name in "rs"
            ]
            for side in range(2)
        ]

    def statement(self) -> Any:
        """Return all steps, with the buffers between them."""
        steps = [self._whole()] if self._is_half else []
        rest, start = self._n, 1
        for number, factor in enumerate(self._factors):
            steps.append(self._step(number, rest, start))
            rest //= factor
            start += (factor - 1) * rest
        if len(self._inputs) == 1 and len(self._outputs) == 2:
            # The sum of real numbers, and that with alternating signs, are real.
            for row in {0, self._n // 2} if self._n % 2 == 0 else {0}:
                if row < self._wanted.count:
                    zero = partial(self._result, long(row), value=(None, None), parts=(1,))
                    steps.append(loop(self._together, zero))
        read = {number % 2 for number in range(0 if self._is_half else 1, len(self._factors))}
        buffers = [each for side in sorted(read) for each in self._buffers[side]]
        return in_order(*map(tirx.AllocBuffer, buffers), *steps)

    def _step(self, number: int, rest: int, start: int) -> Any:
        """Transform by one factor, from one buffer or the input to another or the output."""
        factor, together = self._factors[number], self._together
        after, before = rest // self._factors[number], self._n // rest
        from_input = number == 0 and not self._is_half
        is_last = number == len(self._factors) - 1
        source, target = self._buffers[number % 2], self._buffers[1 - number % 2]

        def one(p: Any, s: Any, q: Any) -> Any:
            """Return the sums of elements that are `after` rows apart."""
            sums = _Sums(self._dtype)
            given = []
            for each in range(factor):
                if from_input:
                    real, imaginary = self._given(each * after + p, q)
                else:
                    element = ((each * after + p) * before + s) * together + q
                    real, imaginary = (buffer[element] for buffer in source)
                given.append((sums.named(real), sums.named(imaginary)))
            stores: list[Any] = []
            for each, made in enumerate(sums.transform(given, self._wanted.sign)):
                if is_last:
                    value, least = sums.times(made, self._wanted.scale, 0.0), each * before
                    stored = self._result(least + s, q, value)
                    if least + before > self._wanted.count:
                        # More results than what is asked for.
                        asked = s < self._wanted.count - least
                        stored = tirx.IfThenElse(asked, stored, None)
                    if least < self._wanted.count:
                        stores.append(stored)
                    continue
                turn = start + (each - 1) * after + p
                turned = (self._table[0, turn], self._table[1, turn])
                value = sums.turned(made, *turned) if each else made
                row = (p * factor + each) * before + s
                stores.append(self._kept(target, row * together + q, value))
            return in_order(*sums.statements, *stores)

        # LLVM vectorizes the innermost loop.
        return nest((after, before, together), lambda at: one(*at))

    def _given(self, row: Any, column: Any) -> Parts:
        values = [each[tuple(self._place(row, column))] for each in self._inputs]
        return values[0], values[1] if len(values) > 1 else None

    def _result(self, row: Any, column: Any, value: Parts, parts: Sequence[int] = (0, 1)) -> Any:
        return in_order(
            *(
                tirx.BufferStore(
                    self._outputs[each], self._stored(value[each]), self._place(row, column)
                )
                for each in parts
                if each < len(self._outputs)
            )
        )

    def _stored(self, part: Any) -> Any:
        return tirx.const(0, self._dtype) if part is None else part

    def _kept(self, target: Sequence[Any], element: Any, value: Parts) -> Any:
        return in_order(
            *(
                tirx.BufferStore(buffer, self._stored(part), [element])
                for buffer, part in zip(target, value, strict=True)
            )
        )

    def _whole(self) -> Any:
        """Return loops that fill a buffer with the spectrum of real numbers, given a half of it."""
        half, together, target = self._n // 2 + 1, self._together, self._buffers[0]

        def copy(row: Any, column: Any) -> Any:
            return self._kept(target, row * together + column, self._given(row, column))

        def mirror(row: Any, column: Any) -> Any:
            real, imaginary = self._given(row + 1, column)
            turned = None if imaginary is None else -imaginary
            return self._kept(target, (self._n - 1 - row) * together + column, (real, turned))

        def each_of(rows: int, one: Callable[[Any, Any], Any]) -> Any:
            return nest((rows, together), lambda at: one(*at))

        rest = self._n - half
        return in_order(each_of(half, copy), *([each_of(rest, mirror)] if rest else []))
