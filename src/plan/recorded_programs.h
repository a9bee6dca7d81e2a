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

// Each is recorded when it is first asked for, once, whoever asks: what planned its memory and what
// runs it have the same one.
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
