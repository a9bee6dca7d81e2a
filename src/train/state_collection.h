// SPDX-License-Identifier: Apache-2.0
// Brings the tensors of a checkpoint together on rank 0, which writes it: where the ranks share the
// optimizer's state, each holds a part of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor_record.h"
#include "core/buffer.h"
#include "dist/communicator.h"
#include "train/replica.h"

namespace syntra {

// Made by all ranks together. Then rank 0 calls Bring as often as it likes and Finish at the end,
// the others Serve.
class StateCollection {
 public:
  StateCollection(Replica& replica, Communicator& ranks);

  // On rank 0: all tensors; `data` is null in those that Bring brings.
  const std::vector<TensorRecord>& tensors() const { return tensors_; }
  // On rank 0: which of them hold values that are not finite, on any rank, and how many; "": none.
  const std::string& not_finite() const { return not_finite_; }

  // On rank 0: sets `data` of these tensors, until the next call.
  void Bring(std::span<TensorRecord* const> tensors);
  void Finish();
  // On the other ranks: does their part, until rank 0 finishes.
  void Serve();

 private:
  void ShareRanges();
  ElementRange HeldBy(int rank, size_t tensor) const;
  // Whether rank 0 lacks some of it.
  bool IsInParts(size_t tensor) const;
  // What rank 0 wants next, told to all.
  int Request(int tensor);
  // Copies a tensor's parts to `to` on rank 0; null on the others.
  void Move(size_t tensor, float* to);

  Communicator& ranks_;
  bool is_shared_;
  std::vector<HostTensor> own_;
  std::vector<double> held_;  // of each rank, of each tensor: where its part begins and ends
  std::vector<TensorRecord> tensors_;
  std::string not_finite_;
  Buffer brought_, passing_;
};

}  // namespace syntra
