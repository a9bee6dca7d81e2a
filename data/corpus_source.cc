// SPDX-License-Identifier: Apache-2.0
#include "data/corpus_source.h"

#include <vector>

#include "base/error.h"
#include "configs/schema/config.pb.h"
#include "data/segment_table.h"

namespace syntra {
namespace {

// Example i is segment i of the table.
class CorpusEpoch : public ExampleEpoch {
 public:
  CorpusEpoch(const TokenCorpus& corpus, const Objective& objective, const SegmentRule& rule,
              uint64_t seed, int64_t epoch)
      : objective_(objective), segments_(corpus, rule, seed, epoch), seed_(seed), epoch_(epoch) {}

  int64_t size() const override { return segments_.segment_count(); }
  int64_t full_count() const override { return segments_.full_count(); }
  int64_t FullExample(int64_t i) const override { return segments_.FullSegment(i); }
  int64_t ShortExample(int64_t i) const override { return segments_.ShortSegment(i); }

  ExampleLengths LengthsOf(int64_t example) const override {
    return objective_.LengthsOf({.targets = segments_.LengthOf(example)}, KeyOf(example));
  }

  void Prefetch(int64_t example) const override { segments_.Prefetch(example); }

  void Write(int64_t example, const ExampleSlots& slots) const override {
    std::vector<int32_t> tokens(segments_.LengthOf(example));
    segments_.CopyTokens(example, tokens);
    objective_.Write({.inputs = {}, .targets = tokens}, KeyOf(example), slots);
  }

 private:
  // The name is that of the first objective. Another one would change the examples of every run.
  RandomKey KeyOf(int64_t example) const { return DeriveKey(seed_, "span mask", epoch_, example); }

  const Objective& objective_;
  SegmentTable segments_;
  uint64_t seed_;
  int64_t epoch_;
};

}  // namespace

CorpusSource::CorpusSource(std::string name, std::unique_ptr<TokenCorpus> corpus,
                           std::unique_ptr<Objective> objective, int32_t eos, uint64_t seed)
    : ExampleSource(std::move(name)),
      corpus_(std::move(corpus)),
      objective_(std::move(objective)),
      eos_(eos),
      seed_(seed) {
  SYNTRA_CHECK(objective_->segment_tokens() > 0, "the objective of {} takes no text", this->name());
}

std::shared_ptr<const CorpusSource> CorpusSource::Open(const std::string& split,
                                                       const DataConfig& config,
                                                       const Tokenizer& tokenizer,
                                                       const PreparedCorpus& prepared,
                                                       uint64_t seed) {
  auto objective =
      MakeObjective(ObjectiveOfCorpus(config), ObjectiveSettings::From(config, tokenizer));
  auto corpus = std::make_unique<TokenCorpus>(prepared, tokenizer, config.text_field(),
                                              config.documents_per_group());
  return std::make_shared<CorpusSource>(split, std::move(corpus), std::move(objective),
                                        tokenizer.eos_id(), seed);
}

std::shared_ptr<const ExampleEpoch> CorpusSource::Epoch(int64_t epoch) const {
  SegmentRule rule{.tokens = objective_->segment_tokens()};
  if (objective_->marks_documents()) rule.document_end = eos_;
  return std::make_shared<CorpusEpoch>(*corpus_, *objective_, rule, seed_, epoch);
}

}  // namespace syntra
