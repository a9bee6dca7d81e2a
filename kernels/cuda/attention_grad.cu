// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/grad.h"

#include "kernels/cuda/attention/decode_step.h"
#include "kernels/cuda/attention/factors_grad_hopper.h"
#include "kernels/cuda/attention/one_pass_grad_hopper.h"
#include "kernels/cuda/attention/score_starts.h"
#include "kernels/cuda/attention/shared.h"
#include "kernels/cuda/attention/table_grad_hopper.h"
#include "kernels/cuda/attention/two_pass_grad_hopper.h"

namespace syntra {
namespace attention {
namespace {

// The number of lanes for a row, each of which handles eight columns at a time, and of rows that a
// lane has at once. The loads of these rows are under way together.
constexpr int kRowLanes = 8, kRowsAtOnce = 2;

// A block computes 64 rows at a time, [B, T up to a multiple of 64, H] of one example.
template <typename T>
__global__ void __launch_bounds__(kThreads) StatisticsKernel(Recomputation<T> work) {
  constexpr int kRows = kThreads / kRowLanes;
  const Backward<T>& call = work.call;
  const Terms<T>& terms = call.terms;
  const auto padded = static_cast<int>(Chunks(terms.queries) * kColumns);
  const auto heads = static_cast<int>(terms.heads), head_size = static_cast<int>(terms.head_size);
  const int groups = padded * heads / (kRowsAtOnce * kRows);
  const int column = ThreadIndex() % kRowLanes * kEight;
  const int64_t items = terms.ExampleCount() * groups;
  for (int64_t item = BlockIndex(); item < items; item += BlockCount()) {
    const int64_t n = item / groups, b = terms.Example(n);
    const int first = static_cast<int>(item - n * groups) * kRowsAtOnce * kRows;
    float log_sum_exp[kRowsAtOnce], mean[kRowsAtOnce] = {};
    int64_t at[kRowsAtOnce], to[kRowsAtOnce];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const int row = first + r * kRows + ThreadIndex() / kRowLanes;
      const int i = row / heads, h = row - i * heads;
      const bool there = i < terms.queries;
      log_sum_exp[r] = there ? call.log_sum_exp[(b * heads + h) * terms.queries + i] : -INFINITY;
      // A query that does not exist gets the statistics of one that sees no key.
      at[r] = ((b * terms.queries + (there ? i : 0)) * heads + h) * head_size;
      to[r] = (b * heads + h) * padded + i;
    }
    for (int d = column; d < head_size; d += kRowLanes * kEight) {
      const T* rows[2 * kRowsAtOnce];
      Eight values[2 * kRowsAtOnce];
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        rows[2 * r] = call.dy + at[r] + d;
        rows[2 * r + 1] = call.y + at[r] + d;
      }
      LoadRows(rows, head_size - d < kEight ? head_size - d : kEight, values);
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
#pragma unroll
        for (int k = 0; k < kEight; ++k) mean[r] += values[2 * r][k] * values[2 * r + 1][k];
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      for (int mask = kRowLanes / 2; mask > 0; mask /= 2) mean[r] += ShuffleXor(mean[r], mask);
      if (column != 0) continue;
      work.statistics[to[r]] = log_sum_exp[r] == -INFINITY
                                   ? RowStatistics{INFINITY, 0.0f}
                                   : RowStatistics{OffsetOf<T>(log_sum_exp[r]), mean[r]};
    }
  }
}

// The kernels of a call, and in how many parts of the batch they compute it (those for any GPU: 0).
struct KernelsOfCall {
  BackwardKernels kernels;
  int64_t parts;

  static KernelsOfCall For(const Dimensions& z, std::span<const TensorType> inputs) {
    // The forward pass of a single query does not round the table; kernels for Hopper would.
    if (IsDecodeStep(z) && HasStarts(inputs)) return {BackwardKernels::kAnyGpu, 0};
    const KernelsOfCall on_hopper[] = {
        {BackwardKernels::kOnePassOnHopper, OnePassPartsOnHopper(z, inputs)},
        {BackwardKernels::kTwoPassesOnHopper, TwoPassPartsOnHopper(z, inputs)},
        {BackwardKernels::kFactorsOnHopper, FactorPartsOnHopper(z, inputs)},
    };
    for (const KernelsOfCall& each : on_hopper) {
      if (each.parts > 0) return each;
    }
    return {BackwardKernels::kAnyGpu, 0};
  }
};

// The offsets of a call's Recomputation in the workspace.
struct RecomputationLayout {
  BackwardKernels kernels;
  bool table_on_hopper;
  int64_t parts, table_parts;
  size_t statistics, dense_parts, bias_lines, bias_sums, starts, table_sums;
  bool has_starts;

  RecomputationLayout(const OpCall& call, const Dimensions& z, WorkspaceLayout& layout) {
    const bool by_row = !call.inputs[kKeyPositions].present();
    const int64_t rows = Chunks(z.queries), keys = Chunks(z.keys);
    const auto place = [&](bool wanted, int64_t floats) {
      return wanted ? layout.Place(floats * sizeof(float)) : 0;
    };
    const bool dense = call.outputs[kPositions].present();
    const KernelsOfCall chosen = KernelsOfCall::For(z, call.inputs);
    kernels = chosen.kernels;
    // If positions differ between examples, sums over examples have no common rows.
    parts = chosen.parts > 0   ? chosen.parts
            : dense && !by_row ? z.batch
                               : PartsFor(z.batch, z.heads * keys);
    const bool both = call.inputs[kQuery].present() && call.inputs[kU].present();
    table_on_hopper = by_row && !both &&
                      (kernels == BackwardKernels::kOnePassOnHopper ||
                       kernels == BackwardKernels::kTwoPassesOnHopper);
    table_parts =
        table_on_hopper ? TablePartsOnHopper(z) : PartsFor(z.batch, z.heads * rows * keys);
    statistics = layout.Place(z.batch * z.heads * rows * kColumns * sizeof(RowStatistics));
    dense_parts = place(dense, parts * z.heads * keys * kColumns * Chunks(z.features) * kColumns);
    Recomputation<float> sizes{.kernels = kernels, .parts = parts};
    sizes.call.terms.heads = z.heads;
    sizes.call.terms.queries = z.queries;
    sizes.call.terms.keys = z.keys;
    bias_lines = place(call.outputs[kBias].present(), parts * sizes.LineFloats());
    bias_sums = PlaceBiasSums(call, z, layout);
    has_starts = kernels == BackwardKernels::kOnePassOnHopper && HasStarts(call.inputs);
    starts = has_starts ? layout.Place(StartElements<true>(z) * sizeof(BFloat16)) : 0;
    table_sums = place(call.outputs[kTable].present() && by_row,
                       table_parts * z.heads * z.queries * keys * kColumns);
  }

  template <typename T>
  Recomputation<T> In(std::byte* workspace, const Backward<T>& call) const {
    const auto at = [&](bool wanted, size_t place) {
      return wanted ? reinterpret_cast<float*>(workspace + place) : nullptr;
    };
    return {.call = call,
            .kernels = kernels,
            .statistics = reinterpret_cast<RowStatistics*>(workspace + statistics),
            .parts = parts,
            .dense_parts = at(call.dpositions != nullptr, dense_parts),
            .bias_lines = at(call.dbias != nullptr, bias_lines),
            .bias_sums = at(call.dbias != nullptr, bias_sums),
            .starts = has_starts ? reinterpret_cast<T*>(workspace + starts) : nullptr,
            .table_on_hopper = table_on_hopper,
            .table_parts = table_parts,
            .table_sums = at(call.dtable != nullptr, table_sums)};
  }
};

// Computes the gradients of queries and keys.
template <typename T>
void RunPasses(const KernelArguments& arguments, const Recomputation<T>& work) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    switch (work.kernels) {
      case BackwardKernels::kAnyGpu:
        break;
      case BackwardKernels::kOnePassOnHopper:
        return RunOnePassOnHopper(arguments, work);
      case BackwardKernels::kTwoPassesOnHopper:
        return RunTwoPassesOnHopper(arguments, work);
      case BackwardKernels::kFactorsOnHopper:
        return RunFactorsOnHopper(arguments, work);
    }
  }
  RunTwoPasses(arguments, work);
}

template <typename T>
void Run(const KernelArguments& arguments, const Recomputation<T>& work) {
  const Terms<T>& z = work.call.terms;
  const int64_t rows = z.batch * z.heads * Chunks(z.queries) * kColumns;
  Launch(arguments, GridFor(rows * kRowLanes / kRowsAtOnce), StatisticsKernel<T>, work);
  RunPasses(arguments, work);
  SumScoreGradients(arguments, work);
}

// Whether the kernels for all calls have enough shared memory for this one.
bool Fits(const OpCall& call, const Dimensions& z) {
  bool fits = false;
  WithActivation(call.inputs[kValue].dtype, [&]<typename T>(T) {
    const GradientTiles<T> tile_counts(z, call.inputs[kQuery].present());
    fits = TwoPassTileMemory(tile_counts, call.outputs[kBias].present()) &&
           (!call.outputs[kTable].present() || TableTileMemory(tile_counts));
  });
  return fits;
}

template <typename T>
Backward<T> BackwardOf(const OpCall& call, const Dimensions& z, const KernelArguments& arguments) {
  const auto pitch = [&](attention::Input g) {
    return call.outputs[g].present() ? static_cast<int>(call.outputs[g].row_pitch()) : 0;
  };
  Backward<T> backward{.terms = Terms<T>::Of(z, arguments),
                       .y = syntra::Input<T>(arguments, kGivenY),
                       .dy = syntra::Input<T>(arguments, kGivenDY),
                       .log_sum_exp = syntra::Input<float>(arguments, kGivenLogSumExp),
                       .dquery = syntra::Output<T>(arguments, kQuery),
                       .dkey = syntra::Output<T>(arguments, kKey),
                       .dvalue = syntra::Output<T>(arguments, kValue),
                       .du = syntra::Output<T>(arguments, kU),
                       .da = syntra::Output<T>(arguments, kA),
                       .db = syntra::Output<T>(arguments, kB),
                       .dpositions = syntra::Output<float>(arguments, kPositions),
                       .dtable = syntra::Output<float>(arguments, kTable),
                       .dbias = syntra::Output<float>(arguments, kBias),
                       .dquery_pitch = pitch(kQuery),
                       .dkey_pitch = pitch(kKey),
                       .dvalue_pitch = pitch(kValue)};
  for (size_t g = 0; g < call.accumulate.size(); ++g) backward.accumulate[g] = call.accumulate[g];
  return backward;
}

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cuda_attention_grad(const OpCall& call) {
  using namespace attention;
  const Dimensions z = DimensionsOf(call.attributes, call.inputs);
  if (!FitInt(z) || !Fits(call, z)) return std::nullopt;
  WorkspaceLayout layout;
  const std::optional<SharedAttention> shared = SharedAttention::For(z, call.inputs, layout);
  const PreparedTerms prepared(z, call.inputs, layout);
  std::optional<SharedGradients> gradients;
  if (shared) gradients.emplace(call, z, *shared, layout);
  const RecomputationLayout recomputation(call, z, layout);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=](const KernelArguments& arguments) {
    WithActivation(call.inputs[kValue].dtype, [&]<typename T>(T) {
      Backward<T> backward = BackwardOf<T>(call, z, arguments);
      if (shared) {
        const SharedScores<T> scores = shared->Run(arguments, backward.terms, {});
        gradients->Run(arguments, scores, backward);
        if (!shared->may_leave()) return;
        backward.terms.examples = scores.left;
        backward.accumulate[kTable] = backward.accumulate[kBias] = true;
      }
      prepared.Run(arguments, backward.terms);
      Run(arguments, recomputation.In(arguments.workspace, backward));
    });
  };
  return kernel;
}

}  // namespace syntra
