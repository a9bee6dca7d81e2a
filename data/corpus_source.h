// SPDX-License-Identifier: Apache-2.0
// The segments of a token corpus under an objective: an example a segment.
#pragma once

#include <memory>
#include <string>

#include "data/example_source.h"
#include "data/objective.h"
#include "data/token_corpus.h"

namespace syntra {

// The splits of a configuration, and the directories of their token shards.
inline constexpr char kTrainSplit[] = "train", kValidationSplit[] = "validation";

class CorpusSource : public ExampleSource {
 public:
  // `seed` chooses masks or prefixes, and the chunks of long documents. The objective must take
  // text; `eos` follows each document where it says so.
  CorpusSource(std::string name, std::unique_ptr<TokenCorpus> corpus,
               std::unique_ptr<Objective> objective, int32_t eos, uint64_t seed);

  // A prepared split under the configuration's objective.
  static std::shared_ptr<const CorpusSource> Open(const std::string& split,
                                                  const DataConfig& config,
                                                  const Tokenizer& tokenizer,
                                                  const PreparedCorpus& prepared, uint64_t seed);

  std::shared_ptr<const ExampleEpoch> Epoch(int64_t epoch) const override;
  Digest ContentDigest() const override { return corpus_->ContentDigest(); }

 private:
  std::unique_ptr<TokenCorpus> corpus_;
  std::unique_ptr<Objective> objective_;
  int32_t eos_;
  uint64_t seed_;
};

}  // namespace syntra
