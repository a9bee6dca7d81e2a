// SPDX-License-Identifier: Apache-2.0
#include "data/mixture.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "configs/schema/config.pb.h"
#include "data/permutation.h"

namespace syntra {
namespace {

// Draws [begin, ...) up to the next part take neighbouring places of a source's epoch.
struct Part {
  int64_t begin;
  std::shared_ptr<const ExampleEpoch> examples;
  int64_t first_place;
  KeyedPermutation order;  // from places to examples
};

class MixtureEpoch : public ExampleEpoch {
 public:
  explicit MixtureEpoch(int64_t size) : size_(size) {}
  void Add(Part part) { parts_.push_back(std::move(part)); }

  int64_t size() const override { return size_; }

  ExampleLengths LengthsOf(int64_t draw) const override {
    const Part& part = PartOf(draw);
    return part.examples->LengthsOf(ExampleOf(part, draw));
  }

  void Prefetch(int64_t draw) const override {
    const Part& part = PartOf(draw);
    part.examples->Prefetch(ExampleOf(part, draw));
  }

  void Write(int64_t draw, const ExampleSlots& slots) const override {
    const Part& part = PartOf(draw);
    part.examples->Write(ExampleOf(part, draw), slots);
  }

 private:
  const Part& PartOf(int64_t draw) const {
    SYNTRA_CHECK(draw >= 0 && draw < size_, "draw {} of {}", draw, size_);
    return *std::prev(std::ranges::upper_bound(parts_, draw, {}, &Part::begin));
  }
  static int64_t ExampleOf(const Part& part, int64_t draw) {
    return part.order(part.first_place + draw - part.begin);
  }

  int64_t size_;
  std::vector<Part> parts_;
};

}  // namespace

MixtureRates MixtureRates::From(const MixtureConfig& config) {
  return {.limit = config.limit(), .temperature = config.temperature()};
}

std::vector<int64_t> MixtureShares(std::span<const int64_t> sizes, const MixtureRates& rates) {
  std::vector<double> counts;
  for (const int64_t size : sizes) {
    counts.push_back(static_cast<double>(rates.limit > 0 ? std::min(size, rates.limit) : size));
  }
  const double largest = *std::ranges::max_element(counts);
  double draws = 0, sum = 0;
  std::vector<double> weights;
  for (const double count : counts) {
    draws += count;
    // The power of a number up to 1, which is never infinite.
    weights.push_back(rates.temperature == 1 ? count
                                             : std::pow(count / largest, 1 / rates.temperature));
    sum += weights.back();
  }
  std::vector<int64_t> shares;
  shares.reserve(weights.size());
  for (const double weight : weights) {
    shares.push_back(std::max<int64_t>(1, std::llround(draws * weight / sum)));
  }
  return shares;
}

Mixture::Mixture(std::string name, std::vector<std::shared_ptr<const ExampleSource>> sources,
                 const MixtureRates& rates, uint64_t seed)
    : ExampleSource(std::move(name)), sources_(std::move(sources)), seed_(seed) {
  SYNTRA_CHECK(!sources_.empty(), "{} has no sources", this->name());
  std::vector<int64_t> sizes;
  for (const auto& source : sources_) {
    sequences_.emplace_back([source](int64_t epoch) { return source->Epoch(epoch); });
    sizes.push_back(sequences_.back().At(0)->size());
    if (sizes.back() == 0) Fail(ExitCode::kData, "{} has no examples", source->name());
  }
  shares_ = MixtureShares(sizes, rates);
}

std::shared_ptr<const ExampleEpoch> Mixture::Epoch(int64_t epoch) const {
  int64_t draws = 0;
  for (const int64_t share : shares_) draws += share;
  auto result = std::make_shared<MixtureEpoch>(draws);
  int64_t begin = 0;
  for (size_t source = 0; source < sources_.size(); ++source) {
    for (const auto& run : sequences_[source].Locate(epoch * shares_[source], shares_[source])) {
      const RandomKey key = DeriveKey(seed_, "mixture order", source, run.number);
      result->Add({begin, run.epoch, run.first, KeyedPermutation(run.epoch->size(), key)});
      begin += run.count;
    }
  }
  return result;
}

Digest Mixture::ContentDigest() const {
  std::string text;
  for (const auto& source : sources_) text += ToHex(source->ContentDigest()) + '\n';
  return DigestOf(text);
}

}  // namespace syntra
