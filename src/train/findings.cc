// SPDX-License-Identifier: Apache-2.0
#include "train/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace syntra {

void Findings::Check(const char* subject, const std::vector<std::string>& needs,
                     const std::function<CheckResult()>& check) {
  using enum Finding::State;
  for (const Finding& finding : all_) {
    const bool needed = std::ranges::find(needs, finding.subject) != needs.end();
    if (needed && (finding.state == kFailed || finding.state == kSkipped)) {
      all_.push_back(
          {subject, kSkipped, fmt::format("needs the check of \"{}\"", finding.subject)});
      return;
    }
  }
  try {
    const CheckResult result = check();
    all_.push_back({subject, result.state, result.text});
  } catch (const Error& error) {
    AddFailure(subject, error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    AddFailure(subject,
               fmt::format("cannot look at {}: {}", error.path1().string(), error.code().message()),
               ExitCode::kResources);
  }
}

void Findings::AddFailure(const char* subject, const std::string& text, ExitCode code) {
  for (const Finding& other : all_) {
    if (other.state != Finding::State::kFailed || other.detail != text) continue;
    all_.push_back(
        {subject, Finding::State::kSkipped, fmt::format("fails as \"{}\"", other.subject)});
    return;
  }
  all_.push_back({subject, Finding::State::kFailed, text, code});
}

}  // namespace syntra
