// SPDX-License-Identifier: Apache-2.0
// Which files of a task are there, and what to say of those that are not.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "tasks/task.h"

namespace syntra {
namespace {

// "a", or "a and b".
std::string Layout(const std::vector<std::string>& files) { return Join(files, " and "); }

bool AllThere(const std::vector<std::string>& files, const Path& directory) {
  return !files.empty() &&
         std::ranges::all_of(files, [&](const auto& file) { return Exists(directory / file); });
}

bool MustBeThere(const TaskSplit& split) {
  return split.use != TaskSplit::Use::kTest || split.is_named;
}

// Adds the files that a split lacks; if it has a single layout, only those that do not exist.
void AddMissing(const TaskSplit& split, const Path& directory, std::vector<std::string>* missing) {
  if (!FilesOf(split, directory).empty()) return;
  if (split.layouts.size() == 1) {
    std::ranges::copy_if(split.layouts[0], std::back_inserter(*missing),
                         [&](const auto& file) { return !Exists(directory / file); });
    return;
  }
  std::vector<std::string> choices;
  std::ranges::transform(split.layouts, std::back_inserter(choices), Layout);
  missing->push_back(Join(choices, ", or "));
}

std::string Place(const Path& directory) {
  return directory.empty() ? "the working directory (data.directory is not set)"
                           : fmt::format("data.directory, {}{}", directory.string(),
                                         Exists(directory) ? "" : ", which does not exist");
}

// `official`: of the benchmarks' own files.
[[noreturn]] void FailMissing(const std::vector<std::string>& missing, const Path& directory,
                              bool official) {
  Fail(ExitCode::kData, "{} that the tasks need {} missing. In {}, there must be:\n  {}{}",
       missing.size() == 1 ? "A file" : fmt::format("{} files", missing.size()),
       missing.size() == 1 ? "is" : "are", Place(directory), Join(missing, "\n  "),
       official
           ? "\nThe folders are those of GLUE's and SuperGLUE's zips (gluebenchmark.com, "
             "super.gluebenchmark.com); paths of your own tasks are relative to the same folder"
           : "");
}

std::vector<Path> FilesThere(const TaskSplit& split, const Path& directory) {
  std::vector<Path> files = FilesOf(split, directory);
  if (!files.empty()) return files;
  std::vector<std::string> missing;
  AddMissing(split, directory, &missing);
  FailMissing(missing, directory, !split.is_named);
}

std::string Reading(const Task& task, const TaskSplit& split) {
  return fmt::format("reading the {} split of task {}", split.name, task.traits().name);
}

void RequireExample(bool has_one, const Path& file) {
  if (!has_one) Fail(ExitCode::kData, "{}: there is no example in it", file.string());
}

// Thrown by a sink that has what it wants.
struct Enough {};

// Files that are together no larger than this are read through in a fraction of a second.
constexpr int64_t kSmall = int64_t{16} << 20;

int64_t TotalSize(std::span<const Path> files) {
  int64_t size = 0;
  for (const Path& file : files) {
    std::error_code code;
    const auto bytes = std::filesystem::file_size(file, code);
    if (!code) size += static_cast<int64_t>(bytes);  // reading says what is wrong with it
  }
  return size;
}

// Reads large files only up to the first one.
bool HasExample(const Task& task, const TaskSplit& split, std::span<const Path> files,
                const BadRecordPolicy& policy) {
  const bool is_small = TotalSize(files) <= kSmall;
  bool has_one = false;
  try {
    task.Read(split, files, policy, [&](const TaskExample&) {
      has_one = true;
      if (!is_small) throw Enough();
    });
  } catch (const Enough&) {
  }
  return has_one;
}

}  // namespace

TaskFolder TaskFolderOf(const DataConfig& config) {
  return {.directory = config.directory(),
          .policy = {.fail = config.on_bad_record() == DataConfig::FAIL,
                     .max_fraction = config.max_bad_fraction()}};
}

std::vector<Path> FilesOf(const TaskSplit& split, const Path& directory) {
  const auto layout = std::ranges::find_if(
      split.layouts, [&](const auto& files) { return AllThere(files, directory); });
  if (layout == split.layouts.end()) return {};
  std::vector<Path> found;
  for (const std::string& file : *layout) found.push_back(directory / file);
  for (const std::string& file : split.extras) {
    if (Exists(directory / file)) found.push_back(directory / file);
  }
  return found;
}

std::vector<const TaskSplit*> TestSplits(const Task& task, const Path& directory) {
  std::vector<const TaskSplit*> splits;
  for (const TaskSplit& split : task.traits().splits) {
    if (split.use != TaskSplit::Use::kTest) continue;
    if (MustBeThere(split) || !FilesOf(split, directory).empty()) splits.push_back(&split);
  }
  return splits;
}

std::vector<std::string> MissingFiles(std::span<const std::unique_ptr<Task>> tasks,
                                      const Path& directory) {
  std::vector<std::string> missing;
  for (const std::unique_ptr<Task>& task : tasks) {
    for (const TaskSplit& split : task->traits().splits) {
      if (MustBeThere(split)) AddMissing(split, directory, &missing);
    }
  }
  // Two splits may be in one file.
  std::set<std::string> seen;
  std::erase_if(missing, [&](const auto& file) { return !seen.insert(file).second; });
  return missing;
}

void RequireFiles(std::span<const std::unique_ptr<Task>> tasks, const Path& directory) {
  const std::vector<std::string> missing = MissingFiles(tasks, directory);
  if (missing.empty()) return;
  const bool official = std::ranges::any_of(
      tasks, [](const auto& task) { return !task->traits().benchmark.empty(); });
  FailMissing(missing, directory, official);
}

std::vector<TaskExample> ReadSplit(const Task& task, const TaskSplit& split,
                                   const TaskFolder& folder, int64_t* left_out) {
  const std::vector<Path> files = FilesThere(split, folder.directory);
  const ErrorContext context([&] { return Reading(task, split); });
  std::vector<TaskExample> examples;
  const int64_t bad = task.Read(split, files, folder.policy, [&](TaskExample example) {
    examples.push_back(std::move(example));
  });
  if (left_out) *left_out = bad;
  RequireExample(!examples.empty(), files.front());
  return examples;
}

void CheckExamples(const Task& task, const TaskSplit& split, const TaskFolder& folder) {
  const std::vector<Path> files = FilesThere(split, folder.directory);
  const ErrorContext context([&] { return Reading(task, split); });
  BadRecordPolicy policy = folder.policy;
  policy.logs = false;  // reading the whole split does
  bool has_one = false;
  const size_t together = split.files_together > 0 ? split.files_together : files.size();
  for (auto rest = std::span(files); !rest.empty(); rest = rest.subspan(together)) {
    has_one |= HasExample(task, split, rest.first(together), policy);
  }
  RequireExample(has_one, files.front());
}

}  // namespace syntra
