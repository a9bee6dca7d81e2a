// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

namespace syntra {
namespace {

thread_local const ErrorContext* innermost_context = nullptr;

}  // namespace

Error::Error(ExitCode code, const std::string& message)
    : std::runtime_error(message + ErrorContext::Lines()), code_(code) {}

std::string ErrorContext::Lines() {
  std::string lines;
  for (const ErrorContext* context = innermost_context; context; context = context->outer_) {
    lines += "\n  while " + context->describe_();
  }
  return lines;
}

ErrorContext::ErrorContext(std::function<std::string()> describe)
    : describe_(std::move(describe)), outer_(innermost_context) {
  innermost_context = this;
}

ErrorContext::~ErrorContext() { innermost_context = outer_; }

LentErrorContexts::LentErrorContexts() : innermost_(innermost_context) {}

LentErrorContexts::Borrowed::Borrowed(const ErrorContext* innermost) : own_(innermost_context) {
  innermost_context = innermost;
}

LentErrorContexts::Borrowed::~Borrowed() { innermost_context = own_; }

namespace internal {
void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  throw Error(ExitCode::kInternal, fmt::format("{}:{}: check failed: {}{}{}", file, line, condition,
                                               message.empty() ? "" : ": ", message));
}
}  // namespace internal

std::string SystemErrorText(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace syntra
