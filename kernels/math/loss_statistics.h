// SPDX-License-Identifier: Apache-2.0
// The statistics of a batch that linear_cross_entropy returns besides the loss: slots of its f32
// vector "statistics", each a sum over the target tokens.
#pragma once

namespace syntra::loss_statistics {

enum Slot : int {
  kNegativeLogP,
  kZLoss,   // the z-loss term, with its factor
  kTokens,  // 1
  kSlots
};

}  // namespace syntra::loss_statistics
