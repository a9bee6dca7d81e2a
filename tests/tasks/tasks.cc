// SPDX-License-Identifier: Apache-2.0
#include "tests/tasks/tasks.h"

#include <google/protobuf/text_format.h>

#include "base/error.h"
#include "tests/base/source_directory.h"

namespace syntra {

Path TaskSample() { return Path(SourceDirectory()) / "tests/tasks/sample"; }

std::unique_ptr<Task> TaskOf(const std::string& text) {
  TaskConfig config;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), "{}", text);
  return MakeTask(config);
}

std::vector<std::string> AllKinds() {
  std::vector<std::string> kinds;
#define SYNTRA_TASK(kind) kinds.push_back(#kind);
#include "tasks/tasks.def"
#undef SYNTRA_TASK
  return kinds;
}

std::vector<std::string> OfficialKinds() {
  std::vector<std::string> kinds = AllKinds();
  std::erase_if(kinds, [](const std::string& kind) {
    const auto* message = TaskConfig::descriptor()->FindFieldByName(kind)->message_type();
    return message->FindFieldByName("train") != nullptr;
  });
  return kinds;
}

std::vector<std::string> BenchmarkKinds() {
  std::vector<std::string> kinds = OfficialKinds();
  std::erase_if(kinds, [](const std::string& kind) {
    return TaskOf(kind + " {}")->traits().benchmark.empty();
  });
  return kinds;
}

const TaskSplit& SplitOf(const Task& task, std::string_view name) {
  for (const TaskSplit& split : task.traits().splits) {
    if (split.name == name) return split;
  }
  SYNTRA_CHECK(false, "{} has no split {}", task.traits().name, name);
  std::abort();
}

std::vector<TaskExample> Read(const Task& task, std::string_view split, const Path& directory) {
  return ReadSplit(task, SplitOf(task, split),
                   {.directory = directory, .policy = {.fail = true, .max_fraction = 0}});
}

}  // namespace syntra
