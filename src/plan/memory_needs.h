// SPDX-License-Identifier: Apache-2.0
// The memory of everything that a rank of a run does: training, updates, evaluation, decoding, and
// saving.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor.h"

namespace syntra {

class TrainingPlan;

// The bytes of elements in fp32.
inline double BytesOf(int64_t elements) { return static_cast<double>(elements) * sizeof(float); }
// The bytes of their copies in bf16.
inline double RoundedBytes(int64_t elements) {
  return static_cast<double>(elements) * sizeof(BFloat16);
}

// What a process of the program takes beside its plan, for libraries and their buffers, threads and
// the data that it reads: 42 to 58 MiB where it was measured, on Debian 12.
inline constexpr double kProcessBytes = 60 << 20;

// In bytes; of several ranks that share the optimizer's state, of the one with most of it.
struct MemoryNeeds {
  int gradient_buffers = 1;  // with train.reduction EXACT also those of the tree
  double parameters = 0, gradients = 0, optimizer = 0;
  double rounded = 0;  // the parameters' bf16 copies (train/rounded_parameters.h)
  // Keys and values of the inputs and outputs that evaluations decode, kept from one to the next.
  double decoding_caches = 0;
  // The planned arenas, workspace included, of programs that run one after another in the same
  // memory: of one micro-batch, of an evaluation's largest piece, of decoding, of an update.
  double training = 0, evaluation = 0, decoding = 0, update = 0;
  // The bytes that rank 0, and each other rank, copies into the host's memory where checkpoints are
  // written beside training.
  double first_copy = 0, other_copies = 0;

  // The bytes that the rank takes of the memory of its device.
  double total() const {
    return parameters + rounded + gradients + optimizer + decoding_caches +
           std::max({training, evaluation, decoding, update});
  }
  // The copies of `ranks` ranks with rank 0 among them.
  double copies(int ranks) const { return first_copy + (ranks - 1) * other_copies; }
  // The bytes that a rank that computes on a GPU holds in the host's memory while it reads or
  // writes a checkpoint.
  double staged() const { return parameters + optimizer; }
  // The bytes that `ranks` such ranks hold of the host's memory. All read a checkpoint when the run
  // continues; later rank 0 or, where the state is shared, each rank writes one.
  double on_host_of_gpus(int ranks) const { return ranks * staged() + copies(ranks); }
};

// The needs on the plan's own backend. TrainingPlan::memory keeps them.
MemoryNeeds MemoryNeedsOf(const TrainingPlan& plan);

// The plan's memory, which is that of programs on this machine's CPU; on GPUs, which need not be
// here, also of bf16 copies of the parameters.
MemoryNeeds MemoryNeedsOn(const TrainingPlan& plan, bool gpus);

// Computes MemoryNeeds::training alone.
double TrainingBytes(const TrainingPlan& plan);

}  // namespace syntra
