// SPDX-License-Identifier: Apache-2.0
// The programs of one kind, one for each shape of batch that is asked for.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "program/program.h"

namespace syntra {

// Each program is recorded once, when it is first asked for, so the code that plans its memory and
// the code that runs it have the same program.
class RecordedPrograms {
 public:
  using Record = std::function<Program(const BatchShape& shape)>;
  explicit RecordedPrograms(Record record) : record_(std::move(record)) {}

  std::shared_ptr<const Program> Get(const BatchShape& shape) const;

 private:
  Record record_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<BatchShape, std::shared_ptr<const Program>>> programs_;
};

}  // namespace syntra
