// SPDX-License-Identifier: Apache-2.0
#include "data/first_records.h"

#include <algorithm>
#include <iterator>
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

// What was found in a file.
struct FileStart {
  bool has_document = false;
  std::optional<Fault> fault;
};

// What was found in the files of a split.
struct SplitStart {
  std::string field;  // that names the files
  int64_t files = 0;
  std::vector<Fault> faults;
  std::vector<Path> empty;  // files without a document
};

// Reads up to the first good record that is not empty; false if there is none. The policy decides
// as it will when the corpus is prepared, so that no file is refused here that would be accepted
// there.
bool HasDocument(const Path& path, const PrepareOptions& options) {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, options.text_field);
  BadRecordPolicy policy = options.on_bad_record;
  policy.logs = false;
  BadRecordLedger ledger(path, policy);
  Record record;
  while (NextGood(reader.get(), &ledger, &record)) {
    if (!record.text.empty()) return true;
  }
  ledger.Finish();
  return false;
}

FileStart LookAtFile(const Path& path, const PrepareOptions& options) {
  try {
    const bool has_document = HasDocument(path, options);
    CheckEnd(path);
    return {has_document, std::nullopt};
  } catch (const std::bad_alloc&) {
    return {false, Fault{ExitCode::kResources, path.string() + ": out of memory"}};
  } catch (...) {  // the faults of all files are told together
    const Failure failure = CurrentFailure();
    return {false, Fault{failure.code, failure.message}};
  }
}

SplitStart LookAtSplit(const PrepareOptions& options) {
  SplitStart split{.field = options.field};
  if (options.patterns.empty()) return split;
  const std::vector<Path> paths = ExpandPatterns(options.patterns);
  split.files = std::ssize(paths);
  std::vector<FileStart> found(paths.size());
  ParallelTasks(split.files, [&](int64_t i) { found[i] = LookAtFile(paths[i], options); });
  for (size_t i = 0; i < paths.size(); ++i) {
    if (found[i].fault) {
      split.faults.push_back(std::move(*found[i].fault));
    } else if (!found[i].has_document) {
      split.empty.push_back(paths[i]);
    }
  }
  return split;
}

[[noreturn]] void FailWith(const std::vector<Fault>& faults, int64_t files,
                           const std::string& text_field) {
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
       text_field, Join(lines, "\n  "));
}

}  // namespace

std::vector<Path> CheckFirstRecords(const DataConfig& config) {
  const SplitStart splits[] = {LookAtSplit(TrainingPreparation(config, "")),
                               LookAtSplit(ValidationPreparation(config, ""))};
  std::vector<Fault> faults;
  std::vector<Path> empty;
  int64_t files = 0;
  for (const SplitStart& split : splits) {
    std::ranges::copy(split.faults, std::back_inserter(faults));
    std::ranges::copy(split.empty, std::back_inserter(empty));
    files += split.files;
  }
  if (!faults.empty()) FailWith(faults, files, config.text_field());
  for (const SplitStart& split : splits) {
    if (split.empty.empty() || std::ssize(split.empty) < split.files) continue;
    FailWithoutDocuments(split.field, split.empty.front(), split.files);
  }
  return empty;
}

}  // namespace syntra
