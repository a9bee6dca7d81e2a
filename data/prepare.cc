#include "data/prepare.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/pattern.h"
#include "data/record_reader.h"
#include "data/shard_claim.h"

namespace syntra {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDocumentsBetweenReports = 1000;
constexpr std::chrono::seconds kBetweenLines{10};
constexpr std::chrono::milliseconds kBetweenTries{20};

struct Task {
  Path source, shard;
};

class Preparation {
 public:
  Preparation(const PrepareOptions& options, const Tokenizer& tokenizer)
      : options_(options),
        tokenizer_(tokenizer),
        settings_(SettingsDigest(options.text_field, tokenizer)) {}

  PrepareResult Run() {
    const std::vector<Task> tasks = ListTasks();
    CreateDirectories(options_.directory);
    progress_.shards_total = static_cast<int64_t>(tasks.size());
    PrepareResult result;
    result.index = {ToHex(tokenizer_.digest()), ToHex(settings_), {}};
    result.index.shards.resize(tasks.size());
    std::vector<size_t> elsewhere;
    const auto finish = [&](size_t i, bool built) {
      ++(built ? result.built : result.kept);
      ++progress_.shards_done;
      Report();
      result.index.shards[i] =
          EntryOf(TokenShard(tasks[i].shard, /*verify=*/false), tasks[i].source);
    };
    for (size_t i = 0; i < tasks.size(); ++i) {
      const std::optional<ShardClaim> claim = ShardClaim::Try(tasks[i].shard);
      if (claim) {
        finish(i, BuildUnlessFinished(tasks[i]));
      } else {
        elsewhere.push_back(i);
      }
    }
    for (const size_t i : elsewhere) {
      const ShardClaim claim = WaitForClaim(tasks[i].shard);
      finish(i, BuildUnlessFinished(tasks[i]));
    }
    ReportEmpty(result.index);
    WriteIndex(options_.directory, result.index);
    return result;
  }

 private:
  // Shards are named after their sources, so a corpus may be moved without being prepared again.
  std::vector<Task> ListTasks() const {
    std::vector<Task> tasks;
    std::map<std::string, Path> sources;
    for (const Path& source : ExpandPatterns(options_.patterns)) {
      const std::string name = source.filename().string() + ".tokens";
      const auto [other, is_new] = sources.emplace(name, source);
      if (!is_new) {
        Fail(ExitCode::kData,
             "{} and {} have the same name; token shards are named after their files",
             other->second.string(), source.string());
      }
      tasks.push_back({source, options_.directory / name});
    }
    return tasks;
  }

  // Once the holder has finished or died. Not by the kernel's waiting: the caller may want to stop.
  ShardClaim WaitForClaim(const Path& shard) {
    while (true) {
      if (std::optional<ShardClaim> claim = ShardClaim::Try(shard)) return std::move(*claim);
      Report();
      std::this_thread::sleep_for(kBetweenTries);
    }
  }

  // Returns whether the shard had to be made.
  bool BuildUnlessFinished(const Task& task) {
    const ErrorContext context([&] { return "preparing " + task.source.string(); });
    const Digest source = DigestOfFile(task.source);
    if (IsFinished(task, source)) return false;
    Build(task, source);
    return true;
  }

  bool IsFinished(const Task& task, const Digest& source) const {
    if (!std::filesystem::exists(task.shard)) return false;
    try {
      const TokenShard shard(task.shard);
      const ShardFacts& facts = shard.facts();
      if (facts.source == source && facts.tokenizer == tokenizer_.digest() &&
          facts.settings == settings_ && IsAllowed(facts)) {
        return true;
      }
      Log().info("{} was made from other data or settings; making it again", task.shard.string());
    } catch (const Error& error) {
      Log().warn("making a token shard again: {}", error.what());
    }
    return false;
  }

  // A shard kept from a run with a laxer policy must not smuggle its bad records in.
  bool IsAllowed(const ShardFacts& facts) const {
    const BadRecordPolicy& policy = options_.on_bad_record;
    if (facts.bad_records == 0) return true;
    const auto records =
        static_cast<double>(facts.documents + facts.empty_documents + facts.bad_records);
    return !policy.fail && policy.max_fraction > 0 &&
           static_cast<double>(facts.bad_records) <= std::max(1.0, policy.max_fraction * records);
  }

  void Build(const Task& task, const Digest& source) {
    RemoveLeftovers(task.shard);
    const std::unique_ptr<RecordReader> reader = OpenRecordReader(task.source, options_.text_field);
    BadRecordLedger ledger(task.source, options_.on_bad_record);
    TokenShardWriter writer(task.shard, tokenizer_.vocabulary_size());
    std::vector<int32_t> ids;
    for (Record record; reader->Next(&record);) {
      if (record.fault != RecordFault::kNone) {
        ledger.CountBad(record.offset, record.line, record.fault);
        continue;
      }
      ledger.CountGood();
      tokenizer_.Encode(record.text, &ids);
      std::erase(ids, tokenizer_.pad_id());
      writer.AddDocument(ids);
      progress_.text_bytes += static_cast<int64_t>(record.text.size());
      progress_.tokens += static_cast<int64_t>(ids.size());
      if (++progress_.documents % kDocumentsBetweenReports == 0) Report();
    }
    ledger.Finish();
    ShardFacts facts{.bad_records = static_cast<uint64_t>(ledger.bad()),
                     .source_bytes = std::filesystem::file_size(task.source),
                     .source = source,
                     .tokenizer = tokenizer_.digest(),
                     .settings = settings_};
    writer.Commit(&facts);
  }

  // Temporary files of processes that died while making this shard; the claim is ours, so none
  // lives.
  void RemoveLeftovers(const Path& shard) const {
    const std::string prefix = shard.filename().string() + ".tmp-";
    for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
      if (entry.path().filename().string().starts_with(prefix)) RemoveAll(entry.path());
    }
  }

  static void ReportEmpty(const CorpusIndex& index) {
    for (const IndexEntry& entry : index.shards) {
      if (entry.documents == 0) Log().warn("{} holds no document", entry.source);
    }
    if (index.documents() == 0) {
      Fail(ExitCode::kData, "none of the {} corpus files holds a document", index.shards.size());
    }
  }

  void Report() {
    if (options_.on_progress) options_.on_progress(progress_);
    const auto now = Clock::now();
    if (now - logged_ < kBetweenLines) return;
    logged_ = now;
    Log().info("{}: {} of {} shards, {} documents, {} tokens made here",
               options_.directory.string(), progress_.shards_done, progress_.shards_total,
               WithThousands(progress_.documents), WithThousands(progress_.tokens));
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  Digest settings_;
  PrepareProgress progress_;
  Clock::time_point logged_ = Clock::now();
};

}  // namespace

PrepareResult PrepareCorpus(const PrepareOptions& options, const Tokenizer& tokenizer) {
  return Preparation(options, tokenizer).Run();
}

}  // namespace syntra
