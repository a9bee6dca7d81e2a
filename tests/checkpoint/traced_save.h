// SPDX-License-Identifier: Apache-2.0
// Runs checkpoint_save_once under strace, which can kill it or fail its n-th system call of a name.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/base/strace.h"
#include "tests/checkpoint/process.h"
#include "tests/checkpoint/sample.h"

namespace syntra {

// The `ordinal`-th call of `name` in the life of the process.
struct SystemCall {
  std::string name;
  int ordinal;
};

// A checkpoint directory with steps 5 and 10, in which a child process saves another step.
class TracedSave : public testing::Test {
 protected:
  TracedSave()
      : root_(ScratchInMemory("traced")),
        output_(root_.string() + ".stderr"),
        trace_(root_.string() + ".trace") {}
  ~TracedSave() override {
    for (const Path& path : {root_, output_, trace_}) std::filesystem::remove_all(path);
  }

  void SetUp() override {
    if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
  }

  void Reset() {
    std::filesystem::remove_all(root_);
    Sample(5).Save(root_);
    Sample(10).Save(root_);
  }

  int Save(int64_t step, const std::vector<std::string>& strace_options) {
    return Save(step, strace_options, root_);
  }
  int Save(int64_t step, const std::vector<std::string>& strace_options, const Path& root) {
    std::vector<std::string> arguments = {"strace", "-o", trace_.string()};
    arguments.insert(arguments.end(), strace_options.begin(), strace_options.end());
    if (!exchanges_) arguments.insert(arguments.end(), {"-e", "inject=renameat2:error=EINVAL"});
    arguments.insert(arguments.end(), {SYNTRA_SAVE_ONCE, root.string(), std::to_string(step),
                                       std::to_string(writers_)});
    return RunProcess(arguments, output_);
  }

  int SaveInjected(int64_t step, const SystemCall& call, const std::string& effect,
                   const char* when = "") {
    return Save(step,
                {"-e", "trace=renameat2," + call.name, "-e",
                 fmt::format("inject={}:{}:when={}{}", call.name, effect, call.ordinal, when)});
  }

  // Every system call of an undisturbed save.
  std::vector<SystemCall> CallsOfSave(int64_t step) {
    Reset();
    EXPECT_EQ(Save(step, {}), 0);
    std::vector<SystemCall> calls;
    std::map<std::string, int> counts;
    std::ifstream trace(trace_);
    bool saving = false;
    for (std::string line; std::getline(trace, line);) {
      const size_t name_end = line.find('(');
      if (name_end == line.npos || line.starts_with("+++") || line.starts_with("---")) continue;
      const std::string name = line.substr(0, name_end);
      const int ordinal = ++counts[name];
      if (line.find("/save-ends") != line.npos) return calls;
      if (saving) calls.push_back({name, ordinal});
      if (line.find("/save-begins") != line.npos) saving = true;
    }
    ADD_FAILURE() << "the trace has no end mark";
    return calls;
  }

  Path root_, output_, trace_;
  int writers_ = 1;        // of the child's saves
  bool exchanges_ = true;  // directories change places, as the file system of the child allows
};

}  // namespace syntra
