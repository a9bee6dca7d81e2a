// SPDX-License-Identifier: Apache-2.0
// Several sources as one, each with its share of the examples (Raffel et al. 2020, section 3.5.2).
//
// The rate of a source is min(its examples, limit)^(1 / temperature). An epoch of the mixture draws
// as many examples as the sources have, each counted up to the limit, and shares them out in
// proportion to the rates; every epoch has the same shares. With temperature 1 and no limit it is
// thus one pass over all of them. From its own point of view each source is gone through epoch
// after epoch, each time in a new order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/epoch_sequence.h"
#include "data/example_source.h"

namespace syntra {

class MixtureConfig;

struct MixtureRates {
  int64_t limit = 0;       // most examples of a source that count for its rate; 0: all
  double temperature = 1;  // above 0; the larger, the more alike the rates

  static MixtureRates From(const MixtureConfig& config);
};

// Draws of each source in an epoch: the sum of min(size, limit) over the sources, in proportion to
// the rates, rounded, but at least 1.
std::vector<int64_t> MixtureShares(std::span<const int64_t> sizes, const MixtureRates& rates);

class Mixture : public ExampleSource {
 public:
  // At least one source; throws Error(kData) if one has no examples. `seed` chooses the orders.
  Mixture(std::string name, std::vector<std::shared_ptr<const ExampleSource>> sources,
          const MixtureRates& rates, uint64_t seed);

  // The draws of the first source come first, then those of the second, ...; packing shuffles them.
  std::shared_ptr<const ExampleEpoch> Epoch(int64_t epoch) const override;
  Digest ContentDigest() const override;
  // By source.
  const std::vector<int64_t>& shares() const { return shares_; }

 private:
  std::vector<std::shared_ptr<const ExampleSource>> sources_;
  std::vector<EpochSequence<ExampleEpoch>> sequences_;  // of the sources
  std::vector<int64_t> shares_;
  uint64_t seed_;
};

}  // namespace syntra
