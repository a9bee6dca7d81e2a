// SPDX-License-Identifier: Apache-2.0
// Pairs of texts in memory, tokenized: the examples of text-to-text tasks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/example_source.h"
#include "data/objective.h"
#include "data/tokenizer.h"

namespace syntra {

struct TextPair {
  std::string inputs, targets;
  std::optional<int32_t> class_id{};  // instead of the ids of the targets' text
};

class TableSource : public ExampleSource {
 public:
  // Tokenizes the pairs with all threads; ids follow from the pairs alone. The objective must take
  // pairs (MakeObjective("text_to_text", ...), "classification" where they have class ids).
  TableSource(std::string name, std::span<const TextPair> pairs, const Tokenizer& tokenizer,
              std::unique_ptr<Objective> objective);

  // Every epoch has all pairs in their order.
  std::shared_ptr<const ExampleEpoch> Epoch(int64_t epoch) const override;
  Digest ContentDigest() const override;
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  // Examples that do not fit the row's lengths as they are.
  int64_t cut_count() const { return cut_count_; }

 private:
  friend class TableEpoch;
  // Where an example's inputs and targets end in ids_; they begin where what is before them ends.
  struct Ends {
    int64_t inputs, targets;
  };
  RawExample RawOf(int64_t example) const;

  std::unique_ptr<Objective> objective_;
  std::vector<int32_t> ids_;
  std::vector<Ends> ends_;
  int64_t cut_count_ = 0;
};

// A table of pairs as a model learns them: with the objective that takes them, which is that of
// classes if the pairs have class ids.
std::shared_ptr<const TableSource> MakeTable(const std::string& name,
                                             std::span<const TextPair> pairs,
                                             const DataConfig& config, const Tokenizer& tokenizer);

}  // namespace syntra
