# SPDX-License-Identifier: Apache-2.0
"""Tests that products_in_flight.py finds what it is made for, in SASS written by hand."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from products_in_flight import kernels, violations  # noqa: E402, beside this file

PRODUCT = "HGMMA.64x16x16.F32.BF16 R24, gdesc[UR20], R24, gsb0"  # its sums are R24 to R31
OF_FACTORS = "HGMMA.64x16x16.F32.BF16 R24, R4, gdesc[UR20], R24, gsb0"  # of R4 to R7
WAIT, WAIT_BUT_ONE = "WARPGROUP.DEPBAR.LE gsb0, 0x0", "WARPGROUP.DEPBAR.LE gsb0, 0x1"


def found_in(*instructions: str) -> list[int]:
    """The indices of those that are wrong; jumps lead to multiples of 0x10."""
    lines = [f"/*{16 * i:04x}*/  {text} ;  /* 0x000fe20000000800 */" for i, text in enumerate(instructions)]
    ((_, code),) = kernels("Function : kernel\n" + "\n".join(lines))
    return [instruction.address // 16 for instruction in violations(code)]


class ProductsInFlight(unittest.TestCase):
    def test_sums_before_and_after_the_wait(self) -> None:
        use = "FADD R40, R31, -R7.reuse"
        self.assertEqual(found_in(PRODUCT, use, WAIT, "EXIT"), [1])
        self.assertEqual(found_in(PRODUCT, WAIT, use, "EXIT"), [])
        self.assertEqual(found_in(PRODUCT, WAIT_BUT_ONE, use, "EXIT"), [2])

    def test_groups_end_in_their_order(self) -> None:
        other = PRODUCT.replace("R24", "R64")
        self.assertEqual(found_in(PRODUCT, other, WAIT_BUT_ONE, "FADD R1, R24, R2", "FADD R1, R64, R2", "EXIT"), [4])

    def test_a_product_without_a_group_is_under_way(self) -> None:
        self.assertEqual(found_in(PRODUCT.removesuffix(", gsb0"), WAIT, "FADD R1, R24, R2", "EXIT"), [2])

    def test_factors_may_be_read_but_not_written(self) -> None:
        self.assertEqual(found_in(OF_FACTORS, "FADD R1, R4, R2", "FADD R4, R1, R2", WAIT, "EXIT"), [2])

    def test_wide_operands(self) -> None:
        self.assertEqual(found_in(PRODUCT, "LDS.128 R20, [R2]", "LDS.128 R21, [R2]", WAIT, "EXIT"), [2])

    def test_wide_products_have_factors_of_one_register(self) -> None:
        wide = ("IMAD.WIDE R2, R23, R32, R8", "IMAD.WIDE R2, R4, R5, R23", "IMAD.WIDE.U32.X R2, R4, 0x8, R23, P0")
        results = ("IMAD.WIDE R22, R4, R5, R8", "IMAD.WIDE.U32 R23, P0, R4, R5, RZ")
        self.assertEqual(found_in(PRODUCT, *wide, *results, WAIT, "EXIT"), [2, 3, 5])

    def test_products_may_follow_each_other(self) -> None:
        self.assertEqual(found_in(PRODUCT, PRODUCT, WAIT, "EXIT"), [])

    def test_every_path(self) -> None:
        # The loop at 0x00 is left with a group under way.
        loop = (PRODUCT, WAIT_BUT_ONE, "@!P0 BRA 0x0")
        self.assertEqual(found_in(*loop, "FADD R24, R24, -R7", WAIT, "EXIT"), [3])
        self.assertEqual(found_in(*loop, WAIT, "FADD R24, R24, -R7", "EXIT"), [])
        # One side of a branch waits, the other does not; both meet.
        self.assertEqual(
            found_in(PRODUCT, "BSSY B0, 0x50", "@P0 BRA 0x40", WAIT, "BSYNC B0", "FADD R1, R24, R2", "EXIT"), [5]
        )
        # Nothing comes there.
        self.assertEqual(found_in(PRODUCT, "BRA 0x30", "FADD R1, R24, R2", WAIT, "EXIT"), [])


if __name__ == "__main__":
    unittest.main()
