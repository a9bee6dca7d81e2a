// SPDX-License-Identifier: Apache-2.0
// Problems of a configuration and their places. All problems are collected and reported together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace syntra {

struct Location {
  std::string source;  // a file, "--set a.b=v", or empty
  int line = 0;        // from 1; 0 means the source as a whole
  int column = 0;      // from 1, in characters

  std::string Text() const;  // "file:3:5", "--set a.b=v" or ""
};

struct Problem {
  Location where;
  std::string message;
};

// Error(kConfig) that still knows each problem, for those who read them by program.
class ConfigError : public Error {
 public:
  ConfigError(const std::string& text, std::vector<Problem> problems)
      : Error(ExitCode::kConfig, text), problems_(std::move(problems)) {}
  // By source and line.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

class Problems {
 public:
  void Add(Location where, std::string message);
  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const { return list_; }

  // "error: file:3:5: ..." for each problem, by source and line, and "N errors" at the end.
  std::string Text() const;
  // Throws ConfigError with Text() unless there are none.
  void ThrowIfAny() const;

 private:
  std::vector<Problem> InOrder() const;

  std::vector<Problem> list_;
};

// The first 40 characters, printable, in double quotes.
std::string Quoted(std::string_view text);

}  // namespace syntra
