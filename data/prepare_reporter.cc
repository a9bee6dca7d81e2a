// SPDX-License-Identifier: Apache-2.0
#include "data/prepare_reporter.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr std::chrono::seconds kBetweenLines{10};
constexpr std::chrono::seconds kBetweenTouches{1};
constexpr double kLongSilence = 30;  // seconds, many times kBetweenTouches

}  // namespace

PrepareReporter::PrepareReporter(const PrepareOptions& options, int64_t shards)
    : options_(options) {
  progress_.shards_total = shards;
}

void PrepareReporter::Compared() {
  ++progress_.compared_blocks;
  Report();
}

void PrepareReporter::Made(int64_t documents, int64_t tokens) {
  progress_.documents += documents;
  progress_.tokens += tokens;
  Report();
}

void PrepareReporter::ShardDone() {
  ++progress_.shards_done;
  Report();
}

void PrepareReporter::Waiting(const Path& shard) {
  progress_.sign_of_life = ShardClaim::TouchedAt(shard);
  awaited_ = shard;
  Report();
  awaited_.clear();
}

void PrepareReporter::Report() {
  if (options_.on_progress) options_.on_progress(progress_);
  const auto now = Clock::now();
  if (claim_ && now - touched_ > kBetweenTouches) {
    claim_->Touch();
    touched_ = now;
  }
  if (now - logged_ < kBetweenLines) return;
  logged_ = now;
  Log().info("{}: {} of {}, {}, {} made here", options_.directory.string(), progress_.shards_done,
             Counted(progress_.shards_total, "shard"), Counted(progress_.documents, "document"),
             Counted(progress_.tokens, "token"));
  if (!awaited_.empty()) LogWait();
}

// The holder shows every second that it works; one that is suspended holds its claim for ever.
void PrepareReporter::LogWait() const {
  if (progress_.sign_of_life == 0) return;  // it has just finished
  const double touched = 1e-9 * static_cast<double>(progress_.sign_of_life);
  const double silent = std::max(0.0, UnixSeconds() - touched);
  const std::string name = awaited_.filename().string(), holder = ShardClaim::HolderOf(awaited_);
  if (silent < kLongSilence) {
    Log().info("waiting for {}, which {} is making", name, holder);
    return;
  }
  Log().warn(
      "waiting for {}, which {} has claimed but not worked on for {}; if it is suspended or stuck, "
      "end it, and this process makes the shard",
      name, holder, HumanDuration(silent));
}

}  // namespace syntra
