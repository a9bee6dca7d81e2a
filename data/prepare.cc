// SPDX-License-Identifier: Apache-2.0
#include "data/prepare.h"

#include <unistd.h>

#include <chrono>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/staged_file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/byte_source.h"
#include "data/pattern.h"
#include "data/prepare_reporter.h"
#include "data/shard_builder.h"
#include "data/shard_claim.h"
#include "data/shard_mismatch.h"

namespace syntra {
namespace {

constexpr std::chrono::seconds kClockTick{2};
constexpr std::chrono::milliseconds kBetweenTries{20};

// A task that the previous index does not settle, and when its files had last changed as the call
// began.
struct PendingTask {
  size_t index;
  int64_t source_time;  // SettledTime
  int64_t shard_time;   // ChangeTime
};

// Whether this process had to make a shard.
enum class ShardFate { kKept, kBuilt };

class Preparation {
 public:
  Preparation(const PrepareOptions& options, const Tokenizer& tokenizer)
      : options_(options),
        tokenizer_(tokenizer),
        settings_(SettingsDigest(options.text_field, tokenizer)),
        tasks_(ShardTasks(options)),
        wanted_{tokenizer.digest(), settings_, options.on_bad_record},
        reporter_(options, std::ssize(tasks_)),
        builder_(options, tokenizer, settings_, reporter_) {}

  PrepareResult Run() {
    CreateDirectories(options_.directory);
    is_read_only_ = access(options_.directory.c_str(), W_OK) != 0;
    // Other processes may be writing here. None of them pauses for as long as an hour.
    RemoveTemporariesIn(options_.directory, std::chrono::hours(1));
    ReadPreviousIndex();
    result_.directory = options_.directory;
    result_.index = {ToHex(tokenizer_.digest()), ToHex(settings_), {}};
    result_.index.shards.resize(tasks_.size());
    std::vector<PendingTask> elsewhere;
    for (const PendingTask& pending : FinishUnchanged()) {
      const ShardTask& task = tasks_[pending.index];
      if (WasMadeMeanwhile(pending) || IsFinishedNow(task)) {
        FinishAsItIs(pending, ShardFate::kKept, pending.source_time);
      } else if (const std::optional<ShardClaim> claim = ShardClaim::Try(task.shard)) {
        Make(pending, *claim);
      } else {
        elsewhere.push_back(pending);
      }
    }
    for (const PendingTask& pending : elsewhere) {
      if (WasMadeMeanwhile(pending)) {
        FinishAsItIs(pending, ShardFate::kKept, pending.source_time);
      } else {
        Make(pending, WaitForClaim(tasks_[pending.index].shard));
      }
    }
    ReportEmpty(result_.index);
    if (!is_read_only_ && result_.index != previous_) {
      WriteIndex(options_.directory, result_.index);
    }
    return std::move(result_);
  }

 private:
  // Returns the tasks whose shards must be looked at or made.
  std::vector<PendingTask> FinishUnchanged() {
    std::vector<PendingTask> pending;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (const IndexEntry* entry = FindUnchanged(tasks_[i])) {
        Finish(i, ShardFate::kKept, *entry);
      } else {
        pending.push_back({i, SettledTime(tasks_[i].source), ChangeTime(tasks_[i].shard)});
      }
    }
    return pending;
  }

  void Finish(size_t i, ShardFate fate, IndexEntry entry) {
    ++(fate == ShardFate::kBuilt ? result_.built : result_.kept);
    reporter_.ShardDone();
    result_.index.shards[i] = std::move(entry);
  }

  // `source_time`: SettledTime, before the two files were compared.
  void FinishAsItIs(const PendingTask& pending, ShardFate fate, int64_t source_time) {
    const ShardTask& task = tasks_[pending.index];
    // However fresh: whoever opens the shard finds out if it is not the one that is read here.
    const int64_t file_time = ChangeTime(task.shard);
    IndexEntry entry = EntryOf(ReadShardSummary(task.shard), task.source);
    entry.file_time = file_time;
    entry.source_time = source_time;
    Finish(pending.index, fate, std::move(entry));
  }

  void Make(const PendingTask& pending, const ShardClaim& claim) {
    const ShardTask& task = tasks_[pending.index];
    if (claim.was_abandoned()) {
      for (const Path& path : {task.shard, AsideOf(task.shard)}) RemoveTemporariesOf(path);
    }
    reporter_.SetClaim(&claim);
    const int64_t source_time = SettledTime(task.source);
    const bool built = !WasMadeMeanwhile(pending) && BuildUnlessFinished(task);
    reporter_.SetClaim(nullptr);
    FinishAsItIs(pending, built ? ShardFate::kBuilt : ShardFate::kKept, source_time);
  }

  // The index of an earlier call for the same tokenizer and settings, or an empty one.
  void ReadPreviousIndex() {
    try {
      CorpusIndex index = ReadIndex(options_.directory);
      if (index.tokenizer != ToHex(tokenizer_.digest()) || index.settings != ToHex(settings_)) {
        return;
      }
      previous_ = std::move(index);
      for (const IndexEntry& entry : previous_.shards) unchanged_.emplace(entry.file, &entry);
    } catch (const Error& error) {
      // A missing or malformed index is written below.
      if (error.code() != ExitCode::kData) throw;
    }
  }

  // The previous index's entry for a shard, if neither file has changed since and the present
  // policy allows its bad records.
  const IndexEntry* FindUnchanged(const ShardTask& task) const {
    const auto found = unchanged_.find(task.shard.filename().string());
    if (options_.reads_everything || found == unchanged_.end()) return nullptr;
    const IndexEntry& entry = *found->second;
    std::error_code code;
    const bool same =
        entry.source == task.source.string() && entry.source_time > 0 && entry.file_time > 0 &&
        ChangeTime(task.source) == entry.source_time && ChangeTime(task.shard) == entry.file_time &&
        static_cast<int64_t>(std::filesystem::file_size(task.source, code)) == entry.source_bytes;
    const int64_t records = entry.documents + entry.empty_documents + entry.bad_records;
    return same && entry.bad_records <= options_.on_bad_record.Limit(records) ? &entry : nullptr;
  }

  // The file's ChangeTime, or 0 if a change from now on might not show in it: the clocks of some
  // file systems tick every two seconds.
  static int64_t SettledTime(const Path& path) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t time = ChangeTime(path);
    const int64_t age = std::chrono::nanoseconds(now).count() - time;
    return age > std::chrono::nanoseconds(kClockTick).count() ? time : 0;
  }

  // Waits until the holder of the claim has finished or died. Polls instead of blocking in the
  // kernel, so that on_progress can stop it.
  ShardClaim WaitForClaim(const Path& shard) {
    while (true) {
      if (std::optional<ShardClaim> claim = ShardClaim::Try(shard)) return std::move(*claim);
      reporter_.Waiting(shard);
      std::this_thread::sleep_for(kBetweenTries);
    }
  }

  // Whether another process has made the shard since this call began, from the corpus file as it is
  // now. It has just compared them, so that this one need not read both.
  bool WasMadeMeanwhile(const PendingTask& before) const {
    const ShardTask& task = tasks_[before.index];
    const int64_t shard_time = ChangeTime(task.shard);
    const bool same_source =
        before.source_time > 0 && ChangeTime(task.source) == before.source_time;
    const bool same_shard = shard_time == 0 || shard_time == before.shard_time;
    return !options_.keeps_content && same_source && !same_shard && SaysItIsFinished(task);
  }

  // Whether the shard was made as it should be, from a corpus file of this size, by what it says.
  bool SaysItIsFinished(const ShardTask& task) const {
    if (!Exists(task.shard)) return false;
    try {
      const ShardSummary shard = ReadShardSummary(task.shard);
      const int64_t bytes = OpenCorpusFile(task.source).Size();
      return !MismatchOf(shard.facts, wanted_, {.bytes = bytes, .digest = {}});
    } catch (const ShardError&) {
      return false;
    }
  }

  // Returns whether the shard had to be made.
  bool BuildUnlessFinished(const ShardTask& task) {
    const ErrorContext context([&] { return "preparing " + task.source.string(); });
    try {
      RemoveAll(AsideOf(task.shard));
      const DigestedSource source = builder_.DigestNow(task.source);
      std::optional<Digest> content;
      if (IsFinished(task, {source.bytes, source.digest}, &content)) return false;
      if (content) {
        BuildIfContentIsEqual(task, source, *content);
      } else {
        builder_.Build(task.source, source, task.shard);
      }
      return true;
    } catch (const std::bad_alloc&) {
      Fail(ExitCode::kResources, "out of memory");
    }
  }

  // Compares a shard with its corpus file. This needs no claim: nothing is made. So all ranks of a
  // job compare at once, and not one after another.
  bool IsFinishedNow(const ShardTask& task) {
    // What a killed process has left beside a shard is removed under its claim.
    const bool needs_claim = !SaysItIsFinished(task) || Exists(AsideOf(task.shard));
    if (needs_claim && !is_read_only_) return false;
    const ErrorContext context([&] { return "comparing " + task.source.string(); });
    const DigestedSource source = builder_.DigestNow(task.source);
    std::optional<Digest> content;
    return IsFinished(task, {source.bytes, source.digest}, &content);
  }

  // `content`: what a shard that is made in its place must say, if that matters.
  bool IsFinished(const ShardTask& task, const CorpusFileState& source,
                  std::optional<Digest>* content) {
    if (!Exists(task.shard)) return false;
    std::optional<Mismatch> mismatch;
    try {
      const TokenShard shard(task.shard, tokenizer_.vocabulary_size());
      shard.Verify([this] { reporter_.Compared(); });
      const ShardFacts& facts = shard.summary().facts;
      mismatch = MismatchOf(facts, wanted_, source);
      const bool is_comparable =
          facts.tokenizer == tokenizer_.digest() && facts.settings == settings_;
      if (options_.keeps_content && is_comparable) *content = shard.summary().content;
    } catch (const ShardError& error) {
      ReportAgain("making a token shard again: " + error.problem());
      return false;
    }
    if (mismatch && !options_.replaces_shards) RefuseToReplace(*mismatch, task);
    if (mismatch) {
      ReportAgain(MismatchText(*mismatch, task.shard, task.source) + "; making it again");
    }
    return !mismatch;
  }

  [[noreturn]] void RefuseToReplace(Mismatch mismatch, const ShardTask& task) const {
    Fail(ExitCode::kConfig,
         "{}; a run may need it, so it is not replaced here. Give --set data.prepared=DIRECTORY to "
         "put other token shards elsewhere, or make it again with `syntra prepare`",
         MismatchText(mismatch, task.shard, task.source));
  }

  // Warns once for all shards of the corpus.
  void ReportAgain(const std::string& text) {
    Log().log(warned_ ? spdlog::level::info : spdlog::level::warn, "{}", text);
    warned_ = true;
  }

  // Where a shard is made that may not replace the one there. A process that is killed leaves it.
  static Path AsideOf(const Path& shard) { return shard.string() + ".again"; }

  void BuildIfContentIsEqual(const ShardTask& task, const DigestedSource& source,
                             const Digest& content) {
    const Path aside = AsideOf(task.shard);
    builder_.Build(task.source, source, aside);
    if (ReadShardSummary(aside).content == content) return RenameDurably(aside, task.shard);
    RemoveAll(aside);
    Fail(ExitCode::kCheckpoint,
         "{} no longer contains the text that this run was trained on ({}), so the run cannot "
         "continue; restore the file, or choose another train.directory",
         task.source.string(), task.shard.string());
  }

  void ReportEmpty(const CorpusIndex& index) const {
    for (const IndexEntry& entry : index.shards) {
      if (entry.documents == 0) Log().warn("{} holds no document", entry.source);
    }
    if (index.documents() > 0) return;
    if (index.shards.empty()) Fail(ExitCode::kData, "{} names no files", options_.field);
    FailWithoutDocuments(options_.field, index.shards.front().source, std::ssize(index.shards));
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  Digest settings_;
  std::vector<ShardTask> tasks_;
  ShardSettings wanted_;
  PrepareReporter reporter_;
  ShardBuilder builder_;
  PrepareResult result_;
  CorpusIndex previous_;
  bool is_read_only_ = false;                           // the directory, to this process
  bool warned_ = false;                                 // that shards are made again
  std::map<std::string, const IndexEntry*> unchanged_;  // entries of previous_ by shard name
};

}  // namespace

std::vector<ShardTask> ShardTasks(const PrepareOptions& options) {
  std::vector<ShardTask> tasks;
  std::map<std::string, Path> sources;
  for (const Path& source : ExpandPatterns(options.patterns)) {
    const std::string name = source.filename().string() + ".tokens";
    if (!IsUtf8(name)) {  // the index and manifests are JSON
      Fail(ExitCode::kData, "the name of {} is not UTF-8; rename the file", source.string());
    }
    const auto [other, is_new] = sources.emplace(name, source);
    if (!is_new) {
      Fail(ExitCode::kData,
           "{} and {} have the same name, and token shards are named after their files; rename one "
           "of them, or let {} name a link to it under another name",
           other->second.string(), source.string(), options.field);
    }
    tasks.push_back({source, options.directory / name});
  }
  return tasks;
}

void FailWithoutDocuments(const std::string& field, const Path& first, int64_t files) {
  Fail(ExitCode::kData, "{}: no document in {}{}", field, first.string(),
       files == 1 ? "" : " and " + Counted(files - 1, "other file"));
}

PrepareResult PrepareCorpus(const PrepareOptions& options, const Tokenizer& tokenizer) {
  return Preparation(options, tokenizer).Run();
}

}  // namespace syntra
