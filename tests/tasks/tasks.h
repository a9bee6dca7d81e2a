// SPDX-License-Identifier: Apache-2.0
// Tasks as tests make them, and the small benchmark files in sample/.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace syntra {

Path TaskSample();

// The task of a text-format TaskConfig: "cola {}".
std::unique_ptr<Task> TaskOf(const std::string& text);
// The kinds of tasks, by their names in TaskConfig: all of them, those whose files have official
// names, and of these GLUE's and SuperGLUE's.
std::vector<std::string> AllKinds();
std::vector<std::string> OfficialKinds();
std::vector<std::string> BenchmarkKinds();

const TaskSplit& SplitOf(const Task& task, std::string_view name);

// The examples of a split in `directory`; any bad row is an error.
std::vector<TaskExample> Read(const Task& task, std::string_view split,
                              const Path& directory = TaskSample());

}  // namespace syntra
