// SPDX-License-Identifier: Apache-2.0
// The checks of the tasks that a run learns: their files, and their labels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "data/tokenizer.h"
#include "tasks/task.h"
#include "train/findings.h"

namespace syntra {

class TaskChecks {
 public:
  // The configuration must outlive this.
  explicit TaskChecks(const Config& config) : config_(config) {}

  // Each check throws an Error or returns what it found. CheckFiles must come first.
  std::string CheckFiles();
  CheckResult CheckHeldOut() const;
  // Checks the test files, which are read when all is trained; other files are read before.
  std::string CheckTestFiles() const;
  CheckResult CheckLabels(const Tokenizer& tokenizer) const;

  // How many tasks have a validation split: each of them keeps its best checkpoint.
  int64_t judged() const;

 private:
  const Config& config_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

}  // namespace syntra
