// SPDX-License-Identifier: Apache-2.0
#include "data/training_data.h"

#include <algorithm>

#include "base/error.h"
#include "configs/schema/config.pb.h"
#include "core/thread.h"

namespace syntra {
namespace {

constexpr char kTrain[] = "train", kValidation[] = "validation";
// The current epoch and the next, which batches reach over into.
constexpr size_t kPlansKept = 2;

template <typename Patterns>
PrepareOptions Preparation(const DataConfig& config, const Patterns& patterns, Path directory) {
  return {.patterns = {patterns.begin(), patterns.end()},
          .directory = std::move(directory),
          .text_field = config.text_field(),
          .on_bad_record = {.fail = config.on_bad_record() == DataConfig::FAIL,
                            .max_fraction = config.max_bad_fraction()},
          .on_progress = {}};
}

}  // namespace

PrepareOptions TrainingPreparation(const DataConfig& config, const Path& prepared) {
  return Preparation(config, config.train(), prepared / kTrain);
}

PrepareOptions ValidationPreparation(const DataConfig& config, const Path& prepared) {
  return Preparation(config, config.validation(), prepared / kValidation);
}

std::vector<PrepareOptions> Preparations(const DataConfig& config, const Path& prepared) {
  std::vector<PrepareOptions> splits{TrainingPreparation(config, prepared)};
  if (config.validation_size() > 0) splits.push_back(ValidationPreparation(config, prepared));
  return splits;
}

TrainingData::TrainingData(std::unique_ptr<TokenCorpus> corpus, ExampleSettings settings, bool pack,
                           uint64_t seed)
    : corpus_(std::move(corpus)),
      settings_(settings),
      pack_(pack),
      seed_(seed),
      plans_(std::make_unique<Plans>()) {}

TrainingData TrainingData::Open(const DataConfig& config, const Tokenizer& tokenizer,
                                const Path& prepared, uint64_t seed, bool verify) {
  const ExampleSettings settings = ExampleSettings::From(config, tokenizer);
  auto corpus = std::make_unique<TokenCorpus>(prepared / kTrain, tokenizer, config.text_field(),
                                              config.documents_per_group(), verify);
  return {std::move(corpus), settings, config.pack(), seed};
}

std::shared_ptr<const EpochPlan> TrainingData::PlanLocked(int64_t epoch) const {
  auto& recent = plans_->recent;
  const auto found = recent.find(epoch);
  if (found != recent.end()) return found->second;
  auto plan = std::make_shared<const EpochPlan>(*corpus_, settings_, pack_, seed_, epoch);
  if (recent.size() >= kPlansKept) {
    recent.erase(recent.begin()->first < epoch ? recent.begin() : std::prev(recent.end()));
  }
  recent.emplace(epoch, plan);
  return plan;
}

std::shared_ptr<const EpochPlan> TrainingData::PlanOf(int64_t epoch) const {
  const std::lock_guard lock(plans_->mutex);
  return PlanLocked(epoch);
}

std::vector<TrainingData::Row> TrainingData::LocateRows(int64_t first, int64_t count) const {
  const std::lock_guard lock(plans_->mutex);
  std::vector<int64_t>& first_rows = plans_->first_rows;
  while (first_rows.back() <= first) {
    const auto epoch = static_cast<int64_t>(first_rows.size()) - 1;
    first_rows.push_back(first_rows.back() + PlanLocked(epoch)->row_count());
  }
  int64_t epoch =
      std::upper_bound(first_rows.begin(), first_rows.end(), first) - first_rows.begin() - 1;
  int64_t index = first - first_rows[epoch];
  std::shared_ptr<const EpochPlan> plan = PlanLocked(epoch);
  std::vector<Row> rows;
  while (static_cast<int64_t>(rows.size()) < count) {
    if (index == plan->row_count()) {
      plan = PlanLocked(++epoch);
      index = 0;
    }
    rows.push_back({plan, index++});
  }
  return rows;
}

Batch TrainingData::Get(int64_t step, int64_t batch_size, int64_t first_row, int64_t rows) const {
  SYNTRA_CHECK(step >= 0 && first_row >= 0 && rows >= 0 && first_row + rows <= batch_size,
               "rows [{}, {}) of a batch of {} at step {}", first_row, first_row + rows, batch_size,
               step);
  Batch batch(rows, settings_.input_length, settings_.target_length);
  batch.first_example = step * batch_size + first_row;
  const std::vector<Row> places = LocateRows(batch.first_example, rows);
  ParallelTasks(rows, [&](int64_t row) {
    RowWriter writer(settings_, row, &batch);
    places[row].plan->WriteRow(places[row].index, &writer);
  });
  CountTargetTokens(&batch);
  return batch;
}

}  // namespace syntra
