# SPDX-License-Identifier: Apache-2.0
"""Curves on logarithmic axes, as an SVG file that needs nothing else."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Sequence
from typing import Final

WIDTH: Final = 860
HEIGHT: Final = 560
LEFT: Final = 80
RIGHT: Final = 190  # for the names
TOP: Final = 20
BOTTOM: Final = 56
LINE: Final = 15  # between names


@dataclasses.dataclass(frozen=True)
class Curve:
    name: str
    points: list[tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Axis:
    """Maps the logarithm of a number to a place between `begin` and `end`."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)


def decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten from `low` to `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def apart(places: Sequence[float], least: float) -> list[float]:
    """The same places, in order, moved down until they are `least` apart."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved, previous = [0.0] * len(places), -math.inf
    for index in order:
        previous = max(places[index], previous + least)
        moved[index] = previous
    # What was pushed below the last place moves up again.
    excess = max(0.0, previous - max(HEIGHT - BOTTOM, *places)) if places else 0.0
    return [place - excess * (rank + 1) / len(order) for place, rank in
            zip(moved, [order.index(i) for i in range(len(order))], strict=True)]


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>'


def loglog_svg(curves: Sequence[Curve], x_title: str, y_title: str) -> str:
    numbers = [point for curve in curves for point in curve.points]
    across = Axis(min(x for x, _ in numbers), max(x for x, _ in numbers), LEFT, WIDTH - RIGHT)
    up = Axis(min(y for _, y in numbers) / 1.2, max(y for _, y in numbers) * 1.2, HEIGHT - BOTTOM, TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for x in sorted({x for x, _ in numbers}):
        place = across.place(x)
        parts.append(f'<line x1="{place:.1f}" y1="{TOP}" x2="{place:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(text(place, HEIGHT - BOTTOM + 18, f"{x:,.0f}", 'text-anchor="middle"'))
    for y in decades(up.low, up.high):
        place = up.place(y)
        parts.append(f'<line x1="{LEFT}" y1="{place:.1f}" x2="{WIDTH - RIGHT}" y2="{place:.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, place + 4, f"{y:g}", 'text-anchor="end"'))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_title, 'text-anchor="middle"'))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(text(18, middle, y_title, f'text-anchor="middle" transform="rotate(-90 18 {middle:.1f})"'))
    ends = [up.place(curve.points[-1][1]) for curve in curves]
    for index, (curve, end, name) in enumerate(zip(curves, ends, apart(ends, LINE), strict=True)):
        color = f"hsl({360 * index / len(curves):.0f} 70% {38 if index % 2 else 50}%)"
        places = " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in curve.points)
        last = across.place(curve.points[-1][0])
        parts.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<line x1="{last:.1f}" y1="{end:.1f}" x2="{WIDTH - RIGHT + 16}" y2="{name:.1f}" stroke="{color}" '
                     'stroke-width="0.6" stroke-dasharray="3 3"/>')
        parts.append(text(WIDTH - RIGHT + 20, name + 4, curve.name, f'fill="{color}"'))
    return "\n".join(parts) + "\n</svg>\n"
