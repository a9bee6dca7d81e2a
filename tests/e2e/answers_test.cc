// SPDX-License-Identifier: Apache-2.0
// Ranks that share the lines of `generate` and `score`.
#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Answers : public TinyRun {
 protected:
  void SetUp() override {
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    TinyRun::SetUp();
    Train("run", {"train.steps=4"});
  }

  // What one rank prints is what two print, errors and exit code too.
  Outcome ExpectSharedAsAlone(const Arguments& arguments, const std::string& input) {
    const Outcome alone = Run(arguments, {.input = input});
    const Outcome shared = Run(
        arguments, {.ranks = 2, .environment = {"OMPI_MCA_orte_execute_quiet=1"}, .input = input});
    EXPECT_EQ(shared.out, alone.out);
    EXPECT_EQ(shared.code, alone.code) << shared.err;
    EXPECT_EQ(shared.err, alone.err);
    return shared;
  }
};

TEST_F(Answers, AreThoseOfOneRank) {
  std::string gaps, targets;
  for (int i = 0; i < 70; ++i) {
    const char letter = static_cast<char>('a' + i % 3);
    std::string line = fmt::format("a{} <extra_id_0>", letter);
    for (int j = 0; j < i * 7 % 25; ++j) line += fmt::format(" {}a", static_cast<char>('a' + j));
    if (i == 30) line = "";
    for (int j = 0; i == 40 && j < 100; ++j) line += " aa";
    gaps += line + "\n";
    targets += i == 50 ? "no tab\n" : line + "\t<extra_id_0> ca\tda\n";
  }
  const std::string run = Directory("run").string();
  const Outcome beams = ExpectSharedAsAlone({"generate", "--json", "--strategy", "beam", "--set",
                                             "decoding.outputs=2", "--checkpoint", run},
                                            gaps);
  EXPECT_EQ(beams.code, 3);
  EXPECT_TRUE(beams.Says("error: line 41 of the input has ")) << beams.err;
  EXPECT_EQ(Split(beams.out, '\n').size(), 71u);
  const Outcome scores = ExpectSharedAsAlone({"score", "--checkpoint", run}, targets);
  EXPECT_EQ(scores.code, 3);
  EXPECT_TRUE(scores.Says("error: line 51 of the input has no tab")) << scores.err;
  EXPECT_EQ(ExpectSharedAsAlone({"generate", "--checkpoint", run}, "").out, "");
}

// The answers are far more than a pipe takes.
TEST_F(Answers, WaitForAReaderThatPauses) {
  std::string input;
  for (int i = 0; i < 20; ++i) input += std::string(10000, 'a') + " <extra_id_0>\n";
  const Outcome outcome =
      Run({"generate", "--json", "--checkpoint", Directory("run").string()},
          {.environment = {"SYNTRA_WATCHDOG=answer=2,gather=0.5"},
           .input = input,
           .wrapper = {"bash", "-c", "set -o pipefail; \"$@\" | { sleep 4; wc -l; }", "bash"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("20"), std::string::npos) << outcome.out;
}

TEST_F(Answers, ComeFromOneModel) {
  const Arguments generate{"generate", "--checkpoint", Directory("run").string()};
  Arguments other = generate;
  other.insert(other.end(), {"--set", "decoding.max_length=3"});
  const Outcome outcome = Run(generate, {.ranks = 2,
                                         .environment = {"OMPI_MCA_orte_execute_quiet=1"},
                                         .input = "aa <extra_id_0>\n",
                                         .other_arguments = other});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(outcome.Says("decoding.max_length: nothing on rank 0, 3 on rank 1")) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace syntra
