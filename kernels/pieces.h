// SPDX-License-Identifier: Apache-2.0
// The ops that only move elements, as copies of pieces, for all backends.
#pragma once

#include <vector>

#include "kernels/reference_tensor.h"
#include "kernels/strided_call.h"

namespace syntra {

// A piece of the output that is copied from an input.
struct Piece {
  static constexpr int kZeros = -1;  // instead of an input
  StridedCall copy;
  int input = 0;
};

// The part [begin, begin + length) of an axis of the output, or of input 0.
struct AxisRange {
  int axis;
  int64_t begin, length;
};

// The range of the output is a copy of the whole input, or zeros.
inline Piece PieceInto(const OpCall& call, const AxisRange& range, int input) {
  const TensorType& y = call.outputs[0];
  const Shape shape = y.shape.With(range.axis, range.length);
  const bool zeros = input == Piece::kZeros;
  Piece piece{StridedCall::Copy(shape, y.dtype, DenseStrides(y.shape),
                                zeros ? Strides{} : DenseStrides(shape)),
              input};
  piece.copy.y_offset = range.begin * DenseStrides(y.shape)[range.axis];
  piece.copy.accumulate = Accumulates(call, 0);
  return piece;
}

// The pieces of which the output of a call is made.
using PiecesOfCall = std::vector<Piece>(const OpCall& call);

inline std::vector<Piece> SlicePieces(const OpCall& call) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  const auto axis = static_cast<int>(call.attributes.Int("axis"));
  Piece piece{StridedCall::Copy(y.shape, y.dtype, DenseStrides(y.shape), DenseStrides(x.shape))};
  piece.copy.a_offset = call.attributes.Int("begin") * DenseStrides(x.shape)[axis];
  piece.copy.accumulate = Accumulates(call, 0);
  return {piece};
}

inline std::vector<Piece> PadPieces(const OpCall& call) {
  const auto axis = static_cast<int>(call.attributes.Int("axis"));
  const int64_t before = call.attributes.Int("before"), after = call.attributes.Int("after");
  const int64_t length = call.inputs[0].shape[axis];
  std::vector<Piece> pieces = {PieceInto(call, {axis, before, length}, 0)};
  if (Accumulates(call, 0)) return pieces;
  if (before > 0) pieces.push_back(PieceInto(call, {axis, 0, before}, Piece::kZeros));
  if (after > 0) pieces.push_back(PieceInto(call, {axis, before + length, after}, Piece::kZeros));
  return pieces;
}

inline std::vector<Piece> ConcatenatePieces(const OpCall& call) {
  const auto axis = static_cast<int>(call.attributes.Int("axis"));
  std::vector<Piece> pieces;
  int64_t begin = 0;
  for (int i = 0; i < std::ssize(call.inputs); ++i) {
    const int64_t length = call.inputs[i].shape[axis];
    pieces.push_back(PieceInto(call, {axis, begin, length}, i));
    begin += length;
  }
  return pieces;
}

inline std::vector<Piece> TransposePieces(const OpCall& call) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  const Strides from = DenseStrides(x.shape);
  Strides permuted{};
  for (int i = 0; i < y.shape.rank(); ++i) permuted[i] = from[call.attributes.List("axes")[i]];
  Piece piece{StridedCall::Copy(y.shape, y.dtype, DenseStrides(y.shape), permuted)};
  piece.copy.accumulate = Accumulates(call, 0);
  return {piece};
}

// The reference of such an op.
inline void CopyPieces(const std::vector<Piece>& pieces, std::span<const ReferenceTensor> inputs,
                       const ReferenceTensor& output) {
  for (const Piece& piece : pieces) {
    const StridedCall& copy = piece.copy;
    copy.loop.ForEach([&](const Places<3>& at) {
      output.numbers[copy.y_offset + at.of[0]] =
          piece.input == Piece::kZeros ? 0.0
                                       : inputs[piece.input].numbers[copy.a_offset + at.of[1]];
    });
  }
}

}  // namespace syntra
