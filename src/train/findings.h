// SPDX-License-Identifier: Apache-2.0
// What checks found, in their order, and which of them could not be made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace syntra {

struct Finding {
  enum class State { kGood, kWarning, kFailed, kSkipped };

  std::string subject;  // "model", "disk", ...
  State state = State::kGood;
  std::string detail;               // what was found, and what to do about it
  ExitCode code = ExitCode::kDone;  // of a failure
};

struct CheckResult {
  std::string text;
  Finding::State state = Finding::State::kGood;

  // A check that is all right returns its text.
  CheckResult(const char* text) : text(text) {}                                // NOLINT
  CheckResult(std::string text, Finding::State state = Finding::State::kGood)  // NOLINT
      : text(std::move(text)), state(state) {}
};

class Findings {
 public:
  // Adds what `check` returns or throws as the finding about `subject`. It is skipped if one of the
  // subjects that it needs failed or was skipped. A mistake that several checks meet is told once.
  void Check(const char* subject, const std::vector<std::string>& needs,
             const std::function<CheckResult()>& check);

  std::vector<Finding> Take() && { return std::move(all_); }

 private:
  void AddFailure(const char* subject, const std::string& text, ExitCode code);

  std::vector<Finding> all_;
};

}  // namespace syntra
