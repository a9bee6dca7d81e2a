#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many pixels of a PNG file have each colour, as JSON: {"#ffffff": 1234, ...}.

Reads what browsers write: 8 bits a channel, RGB or RGBA, not interlaced. Needs the standard library
alone.
"""

import collections
import json
import pathlib
import struct
import sys
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {2: 3, 6: 4}  # by colour type


def chunks(content: bytes) -> collections.abc.Iterator[tuple[bytes, bytes]]:
    if not content.startswith(SIGNATURE):
        raise ValueError("not a PNG file")
    at = len(SIGNATURE)
    while at < len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        yield kind, content[at + 8 : at + 8 + length]
        at += 12 + length


def paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    return min((left, above, corner), key=lambda value: abs(estimate - value))


def unfilter(kind: int, line: bytearray, above: bytes, step: int) -> None:
    """Undoes a line's filter in place (PNG specification, section 9)."""
    for i in range(len(line)) if kind else ():
        left = line[i - step] if i >= step else 0
        if kind == 1:
            predicted = left
        elif kind == 2:
            predicted = above[i]
        elif kind == 3:
            predicted = (left + above[i]) // 2
        else:
            predicted = paeth(left, above[i], above[i - step] if i >= step else 0)
        line[i] = (line[i] + predicted) & 0xFF


def count_colours(content: bytes) -> collections.Counter[str]:
    data = b""
    width = height = channels = 0
    for kind, body in chunks(content):
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            if bits != 8 or colour not in CHANNELS or interlaced:
                raise ValueError("a kind of PNG that browsers do not write")
            channels = CHANNELS[colour]
        elif kind == b"IDAT":
            data += body
    pixels = zlib.decompress(data)
    counts: collections.Counter[str] = collections.Counter()
    size = width * channels
    above = bytes(size)
    for y in range(height):
        start = y * (size + 1)
        line = bytearray(pixels[start + 1 : start + 1 + size])
        unfilter(pixels[start], line, above, channels)
        counts.update(line[x : x + 3].hex() for x in range(0, size, channels))
        above = bytes(line)
    return counts


if __name__ == "__main__":
    found = count_colours(pathlib.Path(sys.argv[1]).read_bytes())
    print(json.dumps({"#" + colour: count for colour, count in found.items()}))
