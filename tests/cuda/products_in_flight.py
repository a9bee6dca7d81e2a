# SPDX-License-Identifier: Apache-2.0
"""Looks in compiled kernels for accesses to registers that asynchronous products are still using.

    products_in_flight.py [--cuobjdump PROGRAM] OBJECT...

A product (wgmma, in SASS HGMMA) reads and writes the registers of its threads until a wait for its group (PTX ISA,
wgmma.wait_group). CUDA code and PTX can only state that order; ptxas schedules the instructions, and what it makes differs between its
versions. So this follows every path through the SASS of each kernel with the groups that are under way. Ends with 1 where an instruction
touches the sums of one of them, or writes factors that it reads.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

UNCOMMITTED = -1  # the age of products that belong to no group yet; then the groups committed since
FOUND, SKIPPED = 1, 77


@dataclass(frozen=True)
class Use:
    """A register of a product that is under way."""

    age: int
    register: int
    is_sum: bool  # or a factor


@dataclass(frozen=True)
class Instruction:
    address: int
    is_conditional: bool
    op: str
    operands: str

    @property
    def text(self) -> str:
        return f"{self.address:#x}: {self.op} {self.operands}"

    @property
    def target(self) -> int | None:
        """Where it may lead; of BSSY: where the threads meet that wait at its barrier."""
        found = re.search(r"\b(0x[0-9a-f]+)$", self.operands)
        leads = self.op.startswith(("BRA", "CALL", "WARPSYNC.COLLECTIVE", "BSSY"))
        return int(found[1], 16) if leads and found else None

    @property
    def ends_here(self) -> bool:
        """Whether the next instruction never follows it."""
        if self.op.startswith("BRA"):  # with other conditions among its operands, or in its name
            return not self.is_conditional and self.op == "BRA" and "," not in self.operands
        return not self.is_conditional and self.op.startswith(("EXIT", "RET", "BSYNC"))

    def width(self, place: int, count: int) -> int:
        """How many registers an operand may have: the one at a place of `count`, of which none is a predicate."""
        if ".WIDE" in self.op:  # a product of two factors of one register each, and an addend
            return 2 if place in (0, count - 1) else 1
        return 4 if ".128" in self.op else 2 if ".64" in self.op else 1

    @property
    def registers(self) -> set[int]:
        operands = [each for each in self.operands.split(", ") if not re.fullmatch(r"!?U?P\w+", each)]
        return {
            int(number) + i
            for place, operand in enumerate(operands)
            for number in re.findall(r"\bR(\d+)", operand)
            for i in range(self.width(place, len(operands)))
        }

    @property
    def written(self) -> set[int]:
        first = re.match(r"(?:U?P\w+, )*R(\d+)", self.operands)
        if not first or self.op.startswith(("ST", "RED", "SYNCS", "R2UR", "ISETP", "FSETP")):
            return set()
        return {int(first[1]) + i for i in range(self.width(0, 1))}


def kernels(sass: str) -> Iterator[tuple[str, list[Instruction]]]:
    """The functions of what `cuobjdump -sass` prints."""
    pattern = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+ )?([A-Z][\w.]*)\s*(.*?)\s*;")
    for section in re.split(r"(?m)^\s*Function : ", sass)[1:]:
        name = section.split("\n", 1)[0]
        yield name, [Instruction(int(m[1], 16), m[2] is not None, m[3], m[4]) for m in pattern.finditer(section)]


def products_of(instruction: Instruction) -> set[Use]:
    columns = re.match(r"HGMMA\.64x(\d+)x", instruction.op)
    operands = [operand.strip() for operand in instruction.operands.split(",")]
    sums, factors = re.match(r"R(\d+)", operands[0]), re.match(r"R(\d+)", operands[1])
    assert columns and sums, instruction.text
    uses = {Use(UNCOMMITTED, int(sums[1]) + i, True) for i in range(int(columns[1]) // 2)}
    if factors:
        uses |= {Use(UNCOMMITTED, int(factors[1]) + i, False) for i in range(4)}
    return uses


def after(instruction: Instruction, uses: frozenset[Use]) -> frozenset[Use]:
    """What is under way behind an instruction."""
    if instruction.op.startswith("HGMMA"):
        uses |= products_of(instruction)
        if "gsb0" in instruction.operands:  # it ends a group
            uses = frozenset(Use(min(use.age + 1, 8), use.register, use.is_sum) for use in uses)
    elif instruction.op.startswith("WARPGROUP.DEPBAR"):
        left = int(instruction.operands.split(",")[1], 16)
        uses = frozenset(use for use in uses if use.age < left)
    return uses


def touches(instruction: Instruction, uses: frozenset[Use]) -> bool:
    if instruction.op.startswith(("HGMMA", "WARPGROUP")):
        return False  # products follow each other in order
    sums = {use.register for use in uses if use.is_sum}
    factors = {use.register for use in uses if not use.is_sum}
    return bool(instruction.registers & sums or instruction.written & factors)


def successors(code: list[Instruction]) -> list[list[int]]:
    """The places in `code` that may follow each place."""
    place = {instruction.address: i for i, instruction in enumerate(code)}
    meeting: dict[str, int] = {}  # of each barrier
    following: list[list[int]] = []
    for i, instruction in enumerate(code):
        if instruction.op.startswith(("BRX", "JMX", "JMP")):
            raise ValueError(f"does not know where this leads: {instruction.text}")
        barrier = instruction.operands.split(",")[0]
        to = [] if instruction.ends_here or i + 1 == len(code) else [i + 1]
        if instruction.op.startswith("BSYNC"):
            to.append(meeting[barrier])
        elif instruction.target is not None and instruction.op.startswith("BSSY"):
            meeting[barrier] = place[instruction.target]
        elif instruction.target is not None:
            to.append(place[instruction.target])
        following.append(to)
    return following


def violations(code: list[Instruction]) -> list[Instruction]:
    """The instructions that touch registers of products under way, on any path."""
    if not any(instruction.op.startswith("HGMMA") for instruction in code):
        return []
    following = successors(code)
    before: dict[int, frozenset[Use]] = {0: frozenset()}
    found, left = set(), [0]
    while left:
        i = left.pop()
        if touches(code[i], before[i]):
            found.add(i)
        behind = after(code[i], before[i])
        for j in following[i]:
            known = before.get(j)
            if known is None or not behind <= known:
                before[j] = behind | (known or frozenset())
                left.append(j)
    return [code[i] for i in sorted(found)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuobjdump", default="cuobjdump", metavar="PROGRAM", help="of the CUDA toolkit")
    parser.add_argument("objects", nargs="+", metavar="OBJECT")
    arguments = parser.parse_args()
    if shutil.which(arguments.cuobjdump) is None:
        print("[  SKIPPED ] the CUDA toolkit has no cuobjdump here")
        return SKIPPED
    count, wrong = 0, 0
    for path in arguments.objects:
        sass = subprocess.run([arguments.cuobjdump, "-sass", path], check=True, capture_output=True, text=True).stdout
        for name, code in kernels(sass):
            count += any(instruction.op.startswith("HGMMA") for instruction in code)
            found = violations(code)
            wrong += bool(found)
            for instruction in found[:5]:
                print(f"{path}: {name}: touches a product that is under way: {instruction.text}")
            if len(found) > 5:
                print(f"... and {len(found) - 5} more")
    print(f"{count} kernels with asynchronous products, {wrong} of them wrong")
    return FOUND if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
