// SPDX-License-Identifier: Apache-2.0
// A source whose examples say which they are, for the tests of what is built on sources.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/example_source.h"

namespace syntra {

// The ids of example i are all `first_id` + i; sizes and lengths are as the functions say, and the
// first examples are called full.
struct Numbers {
  int32_t first_id = 1;
  std::function<int64_t(int64_t epoch)> size;
  std::function<ExampleLengths(int64_t example)> lengths = [](int64_t) {
    return ExampleLengths{1, 1};
  };
  int64_t full = 0;
};

class NumberedSource : public ExampleSource {
 public:
  NumberedSource(std::string name, Numbers numbers)
      : ExampleSource(std::move(name)), numbers_(std::move(numbers)) {}

  std::shared_ptr<const ExampleEpoch> Epoch(int64_t epoch) const override {
    return std::make_shared<NumberedEpoch>(numbers_, numbers_.size(epoch));
  }
  Digest ContentDigest() const override { return DigestOf(name()); }

 private:
  class NumberedEpoch : public ExampleEpoch {
   public:
    NumberedEpoch(const Numbers& numbers, int64_t size) : numbers_(numbers), size_(size) {}
    int64_t size() const override { return size_; }
    int64_t full_count() const override { return numbers_.full; }
    int64_t ShortExample(int64_t i) const override { return numbers_.full + i; }
    ExampleLengths LengthsOf(int64_t example) const override { return numbers_.lengths(example); }
    void Write(int64_t example, const ExampleSlots& slots) const override {
      const auto id = static_cast<int32_t>(numbers_.first_id + example);
      std::ranges::fill(slots.inputs, id);
      std::ranges::fill(slots.targets, id);
    }

   private:
    const Numbers& numbers_;
    int64_t size_;
  };

  Numbers numbers_;
};

// The number of the example that an epoch has at a place.
inline int32_t NumberOf(const ExampleEpoch& epoch, int64_t example) {
  const ExampleLengths lengths = epoch.LengthsOf(example);
  std::vector<int32_t> inputs(lengths.inputs), targets(lengths.targets);
  epoch.Write(example, {inputs, targets});
  return inputs.at(0);
}

}  // namespace syntra
