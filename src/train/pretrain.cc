// SPDX-License-Identifier: Apache-2.0
#include "train/pretrain.h"

#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "data/corpus_index.h"
#include "data/prepare.h"
#include "data/validation_data.h"
#include "decode/batch_decoder.h"
#include "run/run_history.h"
#include "train/log_perplexity.h"
#include "train/run_tokenizer.h"
#include "train/validation_samples.h"

namespace syntra {
namespace {

class LogPerplexityEvaluator : public Evaluator {
 public:
  LogPerplexityEvaluator(RunContext& run, TrainingState& state, const ValidationData& data)
      : run_(run), state_(state), data_(data) {}

  std::optional<EvaluationResult> Evaluate(int64_t step,
                                           const std::function<bool()>& stop) override {
    const auto result = MeasureLogPerplexity(state_.replica, data_, run_.ranks, run_.config, stop);
    if (!result) return std::nullopt;
    if (!std::isfinite(result->value)) {
      throw NotFiniteAfter(step, "the validation log-perplexity", run_.directory);
    }
    return EvaluationResult{
        {{kLogPerplexityValue, result->value},
         {"validation_tokens", static_cast<double>(result->tokens)}},
        fmt::format("validation log-perplexity {:.4f} over {} tokens (checksum of targets {:016x})",
                    result->value, WithThousands(result->tokens), result->label_checksum)};
  }

 private:
  RunContext& run_;
  TrainingState& state_;
  const ValidationData& data_;
};

// Writes samples.jsonl. It says nothing of how good the model is.
class SampleWriter : public Evaluator {
 public:
  SampleWriter(RunContext& run, TrainingState& state, const Tokenizer& tokenizer,
               const ValidationData& data)
      : run_(run),
        tokenizer_(tokenizer),
        decoder_(state.replica.trained(), tokenizer, DecodeSettingsOf(run.config)),
        samples_(ReadSamples(data, tokenizer, run.config.evaluation().samples(),
                             IsLanguageModelling(run.config.data()))) {}

  std::optional<EvaluationResult> Evaluate(int64_t step,
                                           const std::function<bool()>& stop) override {
    if (stop()) return std::nullopt;
    AnswerSamples(samples_, decoder_, run_.ranks, [&](size_t) { run_.watchdog.Alive(); });
    if (run_.is_chief()) Write(step);
    return EvaluationResult{
        {}, fmt::format("{} added to samples.jsonl", Counted(std::ssize(samples_), "output"))};
  }

 private:
  void Write(int64_t step) {
    run_.chief->lock.CheckHeld();
    for (const ValidationSample& sample : samples_) {
      run_.chief->records->WriteSample({.step = step,
                                        .example = sample.example,
                                        .input = SampleText(tokenizer_, sample.request.ids),
                                        .target = SampleText(tokenizer_, sample.target),
                                        .output = SampleText(tokenizer_, sample.output)});
    }
  }

  RunContext& run_;
  const Tokenizer& tokenizer_;
  BatchDecoder decoder_;
  std::vector<ValidationSample> samples_;
};

// Corpora, tokenized once and made into examples anew in each epoch.
class Pretraining : public Workload {
 public:
  bool Prepare(RunContext& run) override;
  TrainingData Open(RunContext& run) override;
  std::string DescribeData() const override {
    const CorpusIndex& index = splits_.front().index;
    return fmt::format("{}, {} tokens", Counted(index.documents(), "document"),
                       HumanCount(static_cast<double>(index.tokens())));
  }
  std::vector<std::unique_ptr<Evaluator>> Evaluators(RunContext& run,
                                                     TrainingState& state) override {
    std::vector<std::unique_ptr<Evaluator>> evaluators;
    if (validation_) {
      evaluators.push_back(std::make_unique<LogPerplexityEvaluator>(run, state, *validation_));
      if (run.config.evaluation().samples() > 0) {
        evaluators.push_back(std::make_unique<SampleWriter>(run, state, *tokenizer_, *validation_));
      }
    }
    return evaluators;
  }

 private:
  PreparedCorpus PrepareSplit(RunContext& run, PrepareOptions split);

  std::optional<Tokenizer> tokenizer_;
  std::vector<PreparedCorpus> splits_;  // as Preparations
  std::optional<ValidationData> validation_;
  int64_t reports_ = 0;
};

struct Stopped {};

PreparedCorpus Pretraining::PrepareSplit(RunContext& run, PrepareOptions split) {
  split.on_progress = [&, previous = PrepareProgress()](const PrepareProgress& progress) mutable {
    // This is called again and again while a rank waits for another one's shard.
    if (progress != previous) run.watchdog.Alive();
    previous = progress;
    if (run.is_chief()) run.chief->lock.CheckHeld();
    run.MaybeAskToStop("stop_prepare", ++reports_);
    if (run.requests->StopOfAnyRank()) throw Stopped();
  };
  const PrepareResult result = PrepareCorpus(split, *tokenizer_);
  if (result.built > 0) {
    Log().info("prepared {}, {} in {}", Counted(result.index.documents(), "document"),
               Counted(result.index.tokens(), "token"), split.directory.string());
  }
  return result;
}

// Where a rank was asked to stop, finished shards stay, and the next start goes on with the rest.
bool Pretraining::Prepare(RunContext& run) {
  const Watchdog::Phase phase(run.watchdog, RunPhase::kPrepare);
  const DataConfig& data = run.config.data();
  tokenizer_.emplace(OpenTokenizer(run.config, run.initial));
  splits_.clear();
  bool stopped = false;
  try {
    std::vector<PrepareOptions> splits = Preparations(data, run.directory.Prepared(data));
    splits.front().keeps_content = !ListCheckpoints(run.directory.checkpoints()).empty();
    for (const PrepareOptions& split : splits) splits_.push_back(PrepareSplit(run, split));
  } catch (const Stopped&) {
    stopped = true;
  }
  // Hosts with copies of their own do not finish together, the less so the larger the corpus is.
  const Watchdog::Phase waiting(run.watchdog, RunPhase::kPrepare, 0,
                                BytesBelow(run.directory.Prepared(data)));
  run.watchdog.Activity("waiting for the other ranks");
  return !AnyRank(run.ranks, stopped);
}

TrainingData Pretraining::Open(RunContext& run) {
  double bytes = 0;
  for (const PreparedCorpus& split : splits_) bytes += split.index.opened_bytes();
  const Watchdog::Phase phase(run.watchdog, RunPhase::kLoad, 0, bytes);
  const DataConfig& config = run.config.data();
  const RowLayout& layout = ArchitectureOf(run.config.model()).layout();
  TrainingData training =
      TrainingData::Open(config, layout, *tokenizer_, splits_.front(), run.config.train().seed());
  if (config.validation_size() > 0) {
    run.watchdog.Alive();
    validation_.emplace(ValidationData::Open(config, layout, *tokenizer_, splits_.back()));
  }
  run.identity.tokenizer_identity = tokenizer_->identity();
  run.identity.tokenizer_model = tokenizer_->content();
  run.identity.data_digest = ToHex(training.ContentDigest());
  run.identity.shards_digest = ToHex(splits_.front().index.DataDigest());
  if (validation_) run.identity.validation_digest = ToHex(validation_->ContentDigest());
  return training;
}

}  // namespace

RunOutcome Pretrain(const Config& config, const RankContext& rank) {
  Pretraining pretraining;
  return Train(pretraining, config, rank);
}

}  // namespace syntra
