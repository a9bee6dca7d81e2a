// SPDX-License-Identifier: Apache-2.0
#include "data/first_records.h"

#include <algorithm>
#include <new>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/failure.h"
#include "base/text.h"
#include "configs/schema/config.pb.h"
#include "core/thread.h"
#include "data/pattern.h"
#include "data/prepare.h"
#include "data/record_reader.h"
#include "data/training_data.h"

namespace syntra {
namespace {

constexpr int64_t kFaultsNamedAtMost = 10;

struct Fault {
  ExitCode code;
  std::string message;
};

// Reads up to the first good record. The policy decides as it will when the corpus is prepared, so
// that no file is refused here that would be accepted there.
void CheckStart(const Path& path, const PrepareOptions& options) {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, options.text_field);
  BadRecordPolicy policy = options.on_bad_record;
  policy.logs = false;
  BadRecordLedger ledger(path, policy);
  Record record;
  if (!NextGood(reader.get(), &ledger, &record)) ledger.Finish();
}

std::optional<Fault> FaultOf(const Path& path, const PrepareOptions& options) {
  try {
    CheckStart(path, options);
    CheckEnd(path);
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return Fault{ExitCode::kResources, path.string() + ": out of memory"};
  } catch (...) {  // none may leave a parallel task
    const Failure failure = CurrentFailure();
    return Fault{failure.code, failure.message};
  }
}

void AppendFaults(const PrepareOptions& options, std::vector<Fault>* faults, int64_t* files) {
  if (options.patterns.empty()) return;
  const std::vector<Path> paths = ExpandPatterns(options.patterns);
  std::vector<std::optional<Fault>> found(paths.size());
  ParallelTasks(std::ssize(paths), [&](int64_t i) { found[i] = FaultOf(paths[i], options); });
  for (std::optional<Fault>& fault : found) {
    if (fault) faults->push_back(std::move(*fault));
  }
  *files += std::ssize(paths);
}

}  // namespace

void CheckFirstRecords(const DataConfig& config) {
  std::vector<Fault> faults;
  int64_t files = 0;
  AppendFaults(TrainingPreparation(config, ""), &faults, &files);
  AppendFaults(ValidationPreparation(config, ""), &faults, &files);
  if (faults.empty()) return;
  const bool resources = std::ranges::any_of(
      faults, [](const Fault& fault) { return fault.code == ExitCode::kResources; });
  const int64_t count = std::ssize(faults);
  std::vector<std::string> lines;
  for (const Fault& fault : std::span(faults).first(std::min(count, kFaultsNamedAtMost))) {
    lines.push_back(fault.message);
  }
  if (count > kFaultsNamedAtMost) {
    lines.push_back(fmt::format("... and {} more", count - kFaultsNamedAtMost));
  }
  Fail(resources ? ExitCode::kResources : ExitCode::kData,
       "{} of {} corpus files cannot be used (data.text_field is \"{}\"):\n  {}", count, files,
       config.text_field(), Join(lines, "\n  "));
}

}  // namespace syntra
