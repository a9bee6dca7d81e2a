// SPDX-License-Identifier: Apache-2.0
// Rearranging operands of matrix products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace syntra {

// to[c, r] = from[r, c] for a matrix of f32 or bf16 whose rows are `stride` elements apart.
struct Transposition {
  int64_t rows, columns, stride;
  DType dtype;
};
void Transpose(const Transposition& shape, const void* from, void* to);

// B [k, n] of a product as blocks of 64 columns and 16 rows (f32) or 32 rows (bf16, where pairs of
// rows are interleaved), all blocks of 64 columns one after another: oneDNN's BA16a64b and
// BA16a64b2a.
struct Packing {
  int64_t k, n;
  bool transposed;       // B is stored as [n, k]
  DType stored, packed;  // f32 as bf16 is rounded
};
bool CanPack(const Packing& packing);
void Pack(const Packing& packing, const void* b, std::byte* to);

}  // namespace syntra
