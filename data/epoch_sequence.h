// SPDX-License-Identifier: Apache-2.0
// The items of epochs 0, 1, ... as one endless sequence: finds the item at any place. For that the
// sizes of all earlier epochs must be known. So the first access to a distant place makes all
// epochs before it, unless it lies after a known start (CountFrom).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"

namespace syntra {

// Where an epoch begins in the sequence.
struct EpochStart {
  int64_t epoch = 0, first = 0;  // the epoch's number; the number of its first item
};

// `Epoch` has a size(), which is above 0. Epochs are made when first asked for; the places where
// they begin are kept, but only a few of them. May be used from several threads.
template <typename Epoch>
class EpochSequence {
 public:
  using Maker = std::function<std::shared_ptr<const Epoch>(int64_t epoch)>;
  // Neighbours: items [first, first + count) of an epoch.
  struct Run {
    std::shared_ptr<const Epoch> epoch;
    int64_t number, first, count;
  };

  explicit EpochSequence(Maker make) : state_(std::make_unique<State>()), make_(std::move(make)) {}

  std::shared_ptr<const Epoch> At(int64_t number) const {
    const std::lock_guard lock(state_->mutex);
    return AtLocked(number);
  }

  // Items [first, first + count) of the sequence, in order.
  std::vector<Run> Locate(int64_t first, int64_t count) const {
    const std::lock_guard lock(state_->mutex);
    auto [number, begin] = FindLocked(first);
    std::vector<Run> runs;
    for (int64_t from = first - begin; count > 0; ++number, from = 0) {
      std::shared_ptr<const Epoch> epoch = AtLocked(number);
      const int64_t taken = std::min(count, epoch->size() - from);
      runs.push_back({std::move(epoch), number, from, taken});
      count -= taken;
    }
    return runs;
  }

  // The start of the epoch that has an item.
  EpochStart StartOf(int64_t item) const {
    const std::lock_guard lock(state_->mutex);
    return FindLocked(item);
  }

  // Counts epochs from this start on, which StartOf has returned for an equal sequence. If an item
  // before it is asked for, epochs are counted from 0 as usual.
  void CountFrom(const EpochStart& start) {
    const std::lock_guard lock(state_->mutex);
    state_->counted_from = start.epoch;
    state_->begins = {start.first};
  }

 private:
  // The current epoch and the next, which batches reach over into.
  static constexpr size_t kEpochsKept = 2;

  struct State {
    std::mutex mutex;
    int64_t counted_from = 0;        // an epoch
    std::vector<int64_t> begins{0};  // of this one, the next, ...
    std::map<int64_t, std::shared_ptr<const Epoch>> recent;
  };

  EpochStart FindLocked(int64_t item) const {
    auto& [mutex, counted_from, begins, recent] = *state_;
    if (item < begins.front()) counted_from = 0, begins = {0};
    while (begins.back() <= item) {
      const int64_t number = counted_from + std::ssize(begins) - 1;
      const int64_t size = AtLocked(number)->size();
      SYNTRA_CHECK(size > 0, "epoch {} is empty", number);
      begins.push_back(begins.back() + size);
    }
    const auto next = std::ranges::upper_bound(begins, item);
    return {counted_from + (next - begins.begin()) - 1, *std::prev(next)};
  }

  std::shared_ptr<const Epoch> AtLocked(int64_t number) const {
    auto& recent = state_->recent;
    if (const auto found = recent.find(number); found != recent.end()) return found->second;
    std::shared_ptr<const Epoch> epoch = make_(number);
    if (recent.size() >= kEpochsKept) {
      recent.erase(recent.begin()->first < number ? recent.begin() : std::prev(recent.end()));
    }
    recent.emplace(number, epoch);
    return epoch;
  }

  std::unique_ptr<State> state_;
  Maker make_;
};

}  // namespace syntra
