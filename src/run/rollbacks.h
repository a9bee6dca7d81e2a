// SPDX-License-Identifier: Apache-2.0
// How often a run that had diverged went back to an earlier checkpoint, and which batches it takes
// since then: other ones, so that it does not come to the same place again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syntra {

class Rollbacks {
 public:
  // After `from` steps the run goes back to where `to` were done, 0 <= to < from. The batches of
  // the steps between are left out.
  void Add(int64_t from, int64_t to);
  int count() const { return static_cast<int>(rollbacks_.size()); }
  // The batch that the run takes when `step` steps are done; both count from 0.
  int64_t BatchAt(int64_t step) const;

  // The text for a checkpoint: "FROM-TO" of each rollback, in order, separated by spaces.
  std::string ToText() const;
  // Throws Error(kCheckpoint) for what ToText cannot have written.
  void Restore(std::string_view text);

 private:
  struct Rollback {
    int64_t from, to;
  };
  std::vector<Rollback> rollbacks_;
};

}  // namespace syntra
