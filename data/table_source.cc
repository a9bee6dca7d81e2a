// SPDX-License-Identifier: Apache-2.0
#include "data/table_source.h"

#include "base/divide.h"
#include "base/error.h"
#include "core/thread.h"

namespace syntra {

class TableEpoch : public ExampleEpoch {
 public:
  explicit TableEpoch(const TableSource& table) : table_(table) {}

  int64_t size() const override { return table_.size(); }

  ExampleLengths LengthsOf(int64_t example) const override {
    const RawExample raw = table_.RawOf(example);
    return table_.objective_->LengthsOf({std::ssize(raw.inputs), std::ssize(raw.targets)}, kNoKey);
  }

  void Write(int64_t example, const ExampleSlots& slots) const override {
    table_.objective_->Write(table_.RawOf(example), kNoKey, slots);
  }

 private:
  static constexpr RandomKey kNoKey{};  // objectives that take pairs draw nothing

  const TableSource& table_;
};

namespace {

// Neighbours that are tokenized by one thread.
constexpr int64_t kPairsTogether = 256;

struct Tokenized {
  std::vector<int32_t> ids;
  std::vector<int64_t> lengths;  // inputs and targets in turn
};

Tokenized Tokenize(std::span<const TextPair> pairs, const Tokenizer& tokenizer) {
  Tokenized result;
  std::vector<int32_t> ids;
  const auto add = [&] {
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    result.lengths.push_back(std::ssize(ids));
  };
  for (const TextPair& pair : pairs) {
    tokenizer.Encode(pair.inputs, &ids);
    add();
    if (pair.class_id) {
      ids = {*pair.class_id};
    } else {
      tokenizer.Encode(pair.targets, &ids);
    }
    add();
  }
  return result;
}

std::vector<Tokenized> TokenizeInParallel(std::span<const TextPair> pairs,
                                          const Tokenizer& tokenizer) {
  const int64_t count = std::ssize(pairs);
  std::vector<Tokenized> parts(DivideUp(count, kPairsTogether));
  ParallelTasks(std::ssize(parts), [&](int64_t part) {
    const int64_t first = part * kPairsTogether;
    parts[part] =
        Tokenize(pairs.subspan(first, std::min(kPairsTogether, count - first)), tokenizer);
  });
  return parts;
}

}  // namespace

TableSource::TableSource(std::string name, std::span<const TextPair> pairs,
                         const Tokenizer& tokenizer, std::unique_ptr<Objective> objective)
    : ExampleSource(std::move(name)), objective_(std::move(objective)) {
  SYNTRA_CHECK(objective_->segment_tokens() == 0, "the objective of {} takes no pairs",
               this->name());
  ends_.reserve(pairs.size());
  int64_t end = 0;
  for (const Tokenized& part : TokenizeInParallel(pairs, tokenizer)) {
    ids_.insert(ids_.end(), part.ids.begin(), part.ids.end());
    for (size_t i = 0; i < part.lengths.size(); i += 2) {
      const ExampleLengths raw{part.lengths[i], part.lengths[i + 1]};
      cut_count_ += objective_->Cuts(raw);
      ends_.push_back({end + raw.inputs, end + raw.inputs + raw.targets});
      end = ends_.back().targets;
    }
  }
}

RawExample TableSource::RawOf(int64_t example) const {
  SYNTRA_CHECK(example >= 0 && example < size(), "example {} of {} in {}", example, size(), name());
  const std::span<const int32_t> ids(ids_);
  const int64_t begin = example == 0 ? 0 : ends_[example - 1].targets;
  const Ends& ends = ends_[example];
  return {ids.subspan(begin, ends.inputs - begin),
          ids.subspan(ends.inputs, ends.targets - ends.inputs)};
}

std::shared_ptr<const ExampleEpoch> TableSource::Epoch(int64_t /*epoch*/) const {
  return std::make_shared<TableEpoch>(*this);
}

Digest TableSource::ContentDigest() const {
  DigestStream digest;
  digest.Add(std::as_bytes(std::span(ids_)));
  digest.Add(std::as_bytes(std::span(ends_)));
  return digest.Finish();
}

std::shared_ptr<const TableSource> MakeTable(const std::string& name,
                                             std::span<const TextPair> pairs,
                                             const DataConfig& config, const Tokenizer& tokenizer) {
  const bool classes = !pairs.empty() && pairs.front().class_id;
  return std::make_shared<TableSource>(name, pairs, tokenizer,
                                       MakeObjective(classes ? "classification" : "text_to_text",
                                                     ObjectiveSettings::From(config, tokenizer)));
}

}  // namespace syntra
