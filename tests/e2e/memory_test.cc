// SPDX-License-Identifier: Apache-2.0
// If an allocation fails, the command ends with code 4 and a message, whatever code made it.
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Memory : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer needs the memory that this test takes away";
#endif
  }
  // It is done, or it says once that memory is short.
  static void ExpectDoneOrShort(const Outcome& outcome, const std::string& where) {
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 4)
        << where << " ended with " << outcome.code << ":\n"
        << outcome.err;
    EXPECT_EQ(outcome.code == 4, outcome.Says("error: ")) << where << "\n" << outcome.err;
  }
  static StartOptions Limited(int64_t mebibytes) {
    return {
        .wrapper = {"bash", "-c", "ulimit -v $0 && exec \"$@\"", std::to_string(mebibytes << 10)}};
  }
  static StartOptions Failing(int64_t request, bool once) {
    StartOptions options{.environment = {"LD_PRELOAD=" SYNTRA_FAILING_MALLOC,
                                         "FAIL_MALLOC=" + std::to_string(request)}};
    if (once) options.environment.push_back("FAIL_MALLOC_ONCE=1");
    return options;
  }
};

// Whether the program began: the loader had room for the libraries, and so had what these do when
// they are loaded. Where an exception ends them, C++ says so in the words of its own library, which
// are never the program's.
bool Began(const Outcome& outcome) {
  constexpr int kNotLoaded = 127;
  return outcome.code != kNotLoaded && !outcome.Says("terminate called after throwing");
}

// Limits from one where the loader barely has room for the libraries to one that suffices.
TEST_F(Memory, TooLittleAddressSpace) {
  for (int64_t mebibytes = 85; mebibytes <= 205; mebibytes += 30) {
    for (const Arguments& command :
         {Arguments{"plan", "--config", config_.string()}, Pretrain("run", {"train.steps=3"})}) {
      const Outcome outcome = Run(command, Limited(mebibytes));
      if (!Began(outcome)) continue;
      ExpectDoneOrShort(outcome, fmt::format("{} in {} MiB", command.front(), mebibytes));
    }
    RemoveAll(Directory("run"));
  }
}

// Of a whole run, from its start to its end, and of a plan.
TEST_F(Memory, RefusedAtSampledRequests) {
  const Arguments plan{"plan", "--config", config_.string()};
  const Arguments train = Pretrain("run", {"train.steps=4", "checkpoint.every=2"});
  for (const Arguments& command : {plan, train}) {
    for (const bool once : {false, true}) {
      for (int64_t request = 1; request < 100000; request = request * 3 + 1) {
        RemoveAll(Directory("run"));
        ExpectDoneOrShort(
            Run(command, Failing(request, once)),
            fmt::format("{}, request {}{}", command.front(), request, once ? " alone" : ""));
      }
    }
  }
}

}  // namespace
}  // namespace syntra
