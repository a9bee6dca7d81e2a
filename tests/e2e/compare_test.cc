// SPDX-License-Identifier: Apache-2.0
// `compare` as users run it: the table and its files; stopped and continued; with ranks and seeds;
// on tasks; a mixer that diverges; the mistakes that people make.
#include <gmock/gmock.h>

#include "run/run_status.h"
#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// The command that compares the mixers of a list, from a command that trains one of them.
Arguments ComparisonBy(Arguments command, const Path& list, const Arguments& more) {
  command.front() = "compare";
  command.insert(command.end(), {"--mixers", list.string()});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

class Compare : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    WriteMixers(
        "# name, change\n"
        "vanilla  model.mixer.attention.term=[{ dot_product {} }]\n"
        "table    model.mixer.attention.term=[{ random { max_length: 64 } }]\n");
  }

  void WriteMixers(const std::string& text) { ReplaceFileDurably(List(), text); }
  Path List() const { return scratch_ / "mixers.txt"; }

  Arguments Command(const std::string& name, const Arguments& more = {}) const {
    return ComparisonBy(Pretrain(name, {"train.steps=6", "evaluation.every=3", "train.threads=1",
                                        "data.prepared="}),
                        List(), more);
  }
  Json Results(const std::string& name) const {
    return ParseJson(ReadWholeFile(Directory(name) / "comparison.json"));
  }
};

TEST_F(Compare, EachMixerIsARunOfTheSameRecipe) {
  const Outcome outcome = Run(Command("all"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("relative to vanilla"));
  const Json results = Results("all");
  ASSERT_THAT(results.at("mixers"), SizeIs(2));
  for (const Json& mixer : results.at("mixers")) {
    // What `pretrain` alone gives with the same change, to the bit.
    const std::string name = mixer.at("name");
    Train("alone_" + name,
          {"train.steps=6", "evaluation.every=3", "train.threads=1",
           name == "table" ? "model.mixer.attention.term=[{ random { max_length: 64 } }]"
                           : "model.mixer.attention.term=[{ dot_product {} }]"});
    EXPECT_EQ(Trace(Directory("all") / name, 6), Trace(Directory("alone_" + name), 6));
    const Json curve = mixer.at("curve");
    ASSERT_THAT(curve, SizeIs(2));
    EXPECT_EQ(curve[1].at("step"), 6);
    EXPECT_EQ(curve[1].at("log_perplexity"), mixer.at("log_perplexity").at("mean"));
    EXPECT_EQ(mixer.at("log_perplexity").at("deviation"), 0);
    EXPECT_GT(mixer.at("steps_per_second").at("mean").get<double>(), 0);
  }
  EXPECT_EQ(results.at("mixers")[0].at("relative_speed"), 1);
  const std::string page = ReadWholeFile(Directory("all") / "comparison.html");
  EXPECT_THAT(page, HasSubstr("<td>table</td>"));
  EXPECT_THAT(page, HasSubstr("<svg "));
  // The corpus was prepared once.
  EXPECT_TRUE(std::filesystem::exists(Directory("all") / "prepared"));
  EXPECT_FALSE(std::filesystem::exists(Directory("all") / "table" / "prepared"));
}

TEST_F(Compare, SeedsSpreadAndTheCommandContinues) {
  const Arguments command = Command("all", {"--seeds", "2"});
  const Outcome stopped = Run(command, {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@3"}});
  EXPECT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_FALSE(std::filesystem::exists(Directory("all") / "comparison.json"));
  const Outcome outcome = Run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json results = Results("all");
  EXPECT_EQ(results.at("seeds"), 2);
  for (const Json& mixer : results.at("mixers")) {
    EXPECT_GT(mixer.at("log_perplexity").at("deviation").get<double>(), 0);
  }
  EXPECT_TRUE(HasCheckpoint("all/table/seed-2", 6));
  // All is done: the same table, nothing is trained.
  const Outcome again = Run(command);
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, outcome.out);
  EXPECT_EQ(Results("all"), results);
  const Outcome single = Run(Command("all"));
  EXPECT_EQ(single.code, 2);
  EXPECT_TRUE(single.Says("holds the runs of several seeds")) << single.err;
  EXPECT_EQ(Results("all"), results);
  const Outcome report = Run({"report", Directory("all").string()});
  EXPECT_EQ(report.code, 2);
  EXPECT_TRUE(report.Says((Directory("all") / "table/seed-1").string())) << report.err;
}

TEST_F(Compare, NeedsADirectoryOfItsOwn) {
  Train("run", {"train.steps=3"});
  const Outcome mixed = Run(Command("run"));
  EXPECT_EQ(mixed.code, 2);
  EXPECT_TRUE(mixed.Says("is that of a single run, which several would mix with")) << mixed.err;
  ASSERT_EQ(Run(Command("all", {"--set", "train.steps=3"})).code, 0);
  const Outcome seeds = Run(Command("all", {"--set", "train.steps=3", "--seeds", "2"}));
  EXPECT_EQ(seeds.code, 2);
  EXPECT_TRUE(seeds.Says("all/vanilla is that of a single run")) << seeds.err;
  const Outcome report = Run({"report", Directory("all").string()});
  EXPECT_EQ(report.code, 2);
  EXPECT_TRUE(report.Says("it holds those of several: " + (Directory("all") / "table").string()))
      << report.err;
}

TEST_F(Compare, AMixerThatDivergesLeavesTheOthers) {
  WriteMixers(
      "wild   optimizer={ kind: ADAMW schedule { kind: CONSTANT rate: 1e20 warmup_steps: 0 } }\n"
      "table  model.mixer.attention.term=[{ random { max_length: 64 } }]\n");
  const auto expect_both = [&](const std::string& name, int ranks) {
    const Outcome outcome =
        Run(Command(name, {"--set", "train.max_skipped_steps=1"}), {.ranks = ranks});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("1 of 1 diverged"));
    const Json mixers = Results(name).at("mixers");
    EXPECT_EQ(mixers[0].at("diverged"), 1);
    EXPECT_TRUE(mixers[0].at("log_perplexity").at("mean").is_null());
    EXPECT_GT(mixers[1].at("log_perplexity").at("mean").get<double>(), 0);
  };
  expect_both("one", 1);
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  // In the end it is no longer even started.
  for (int time = 0; time <= RunStatus::kMaxStartsWithoutProgress; ++time) expect_both("two", 2);
}

// Only rank 0 looks at what it saves.
TEST_F(Compare, RanksGoOnBehindAStateThatIsNotFinite) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  WriteMixers("bad optimizer.schedule.rate=1e308\ngood optimizer.schedule.rate=0.01\n");
  const Outcome outcome =
      Run(Command("all", {"--set", "checkpoint.every=2", "--set", "evaluation.every=0"}),
          {.ranks = 2, .environment = {"SYNTRA_WATCHDOG=save=20,prepare=20"}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json mixers = Results("all").at("mixers");
  EXPECT_EQ(mixers[0].at("diverged"), 1);
  EXPECT_EQ(mixers[1].at("diverged"), 0);
}

// What was trained before says so beside what is trained now.
TEST_F(Compare, ResultsOfOtherSettingsAreMarked) {
  const auto command = [&](const std::string& rate) {
    return Command("all", {"--set", "optimizer.schedule.rate=" + rate, "--set",
                           "optimizer.schedule.kind=CONSTANT"});
  };
  const std::string both = ReadWholeFile(List());
  WriteMixers(both.substr(0, both.find("table")));
  const Outcome first = Run(command("0.01"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, Not(HasSubstr("other settings")));
  WriteMixers(both);
  const Outcome second = Run(command("0.02"));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("vanilla (other settings)"));
  EXPECT_THAT(second.out, Not(HasSubstr("table (other settings)")));
  const std::string note = (Directory("all") / "vanilla").string() +
                           " was done before with other settings (optimizer.schedule.rate: 0.01 -> "
                           "0.02); to train it with these, set another train.directory";
  EXPECT_THAT(second.out, HasSubstr(note));
  const Json mixers = Results("all").at("mixers");
  EXPECT_EQ(mixers[0].at("other_settings"), Json{note});
  EXPECT_EQ(mixers[1].at("other_settings"), Json::array());
  EXPECT_THAT(ReadWholeFile(Directory("all") / "comparison.html"), HasSubstr("other settings ("));
}

// Before any of them is trained.
TEST_F(Compare, AMixerThatCannotContinueIsFoundAtTheStart) {
  ASSERT_EQ(Run(Command("all")).code, 0);
  const std::string both = ReadWholeFile(List());
  WriteMixers("new model.mixer.attention.term=[{ dense { max_length: 64 } }]\n" + both);
  const Outcome outcome = Run(Command("all", {"--set", "optimizer.clip_norm=0.5"}));
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_TRUE(outcome.Says("was made with other settings")) << outcome.err;
  EXPECT_TRUE(outcome.Says("optimizer.clip_norm")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(Directory("all") / "new"));
}

TEST_F(Compare, MistakesSayWhatToDo) {
  struct Mistake {
    std::string list, says;
  };
  for (const Mistake& mistake : {
           Mistake{"", "lists no mixer"},
           Mistake{"../up a.b=1\n", ":1: \"../up\" cannot name a mixer"},
           Mistake{"a\nb\na\n", ":3: there is a mixer a already"},
           Mistake{"a\ncomparison.html\n", ":2: a mixer cannot be called comparison.html"},
           Mistake{"prepared\n", ":1: a mixer cannot be called prepared"},
           Mistake{"a model.mixr={}\n", "did you mean"},
           // The table would compare other things than mixers.
           Mistake{"a\nb train.steps=3\n", ":2: a mixer may not change \"train.steps=3\""},
           Mistake{"a evaluation { batches: 1 }\n",
                   ":1: a mixer may not change \"evaluation { batches: 1 }\""},
           Mistake{"a data.packs=false\n", ":1: a mixer may not change \"data.packs=false\""},
       }) {
    WriteMixers(mistake.list);
    const Outcome outcome = Run(Command("all"));
    EXPECT_EQ(outcome.code, 2) << mistake.list;
    EXPECT_THAT(outcome.err, HasSubstr(mistake.says));
  }
  std::filesystem::remove(List());
  const Outcome outcome = Run(Command("all"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(List().string()));
  EXPECT_FALSE(std::filesystem::exists(Directory("all")));
}

constexpr char kDot[] = "model.mixer.attention.term=[{ dot_product {} }]";
constexpr char kTable[] = "model.mixer.attention.term=[{ factorized_random { max_length: 32 } }]";

class CompareOnTasks : public ToyTask {
 protected:
  // From a command of `finetune`.
  Arguments With(const std::string& mixers, Arguments command, const Arguments& more = {}) const {
    const Path list = scratch_ / "mixers.txt";
    ReplaceFileDurably(list, mixers);
    std::erase(command, "--from-scratch");
    return ComparisonBy(std::move(command), list, more);
  }
  static std::string TwoMixers() { return fmt::format("dot {}\ntable {}\n", kDot, kTable); }
  Json Comparison(const std::string& name) const {
    return ParseJson(File(name, "comparison.json"));
  }
};

// What `finetune --from-scratch` alone gives with the same change.
TEST_F(CompareOnTasks, EachMixerLearnsTheTasks) {
  const Outcome outcome = Run(With(TwoMixers(), Alone("all")));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json mixers = Comparison("all").at("mixers");
  ASSERT_THAT(mixers, SizeIs(2));
  for (const Json& mixer : mixers) {
    const std::string name = mixer.at("name");
    ASSERT_EQ(Run(Alone("alone_" + name, {name == "dot" ? kDot : kTable})).code, 0);
    EXPECT_EQ(mixer.at("results"), Results("alone_" + name));
    EXPECT_EQ(Trace(Directory("all") / name, 12), Trace(Directory("alone_" + name), 12));
    const Json curves = mixer.at("curves");
    ASSERT_THAT(curves, SizeIs(2));
    ASSERT_THAT(curves.at("toy/accuracy"), SizeIs(3));
    EXPECT_EQ(curves.at("toy/accuracy")[2].at("step"), 12);
    const Json values = mixer.at("results").at("tasks").at("toy");
    EXPECT_THAT(outcome.out,
                HasSubstr(fmt::format("  {:.1f}/{:.1f}  ", values.at("accuracy").get<double>(),
                                      values.at("f1").get<double>())));
  }
  EXPECT_THAT(outcome.out, HasSubstr("mixer           average  toy accuracy/f1  "));
  EXPECT_THAT(outcome.out, HasSubstr("majority class "));
  EXPECT_THAT(outcome.out, HasSubstr("relative to dot"));
  EXPECT_THAT(File("all", "comparison.html"), HasSubstr("toy/f1"));
}

TEST_F(CompareOnTasks, SeedsSpreadAndTheCommandContinues) {
  const Arguments command = With(TwoMixers(), Alone("all"), {"--seeds", "2"});
  const Path abandoned = AbandonedFile(Directory("all") / "comparison.json");
  const Outcome stopped = Run(command, {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@8"}});
  EXPECT_EQ(stopped.code, 75) << stopped.err;
  const Outcome outcome = Run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(Exists(abandoned));
  EXPECT_THAT(outcome.out, HasSubstr("±"));
  const Json results = Comparison("all").at("mixers")[1].at("results");
  std::vector<double> values;
  for (const char* seed : {"all/table/seed-1", "all/table/seed-2"}) {
    values.push_back(Results(seed)["tasks"]["toy"]["accuracy"]);
  }
  EXPECT_DOUBLE_EQ(results["tasks"]["toy"]["accuracy"], (values[0] + values[1]) / 2);
  EXPECT_EQ(Run(command).out, outcome.out);
}

TEST_F(CompareOnTasks, TwoRanksAreOne) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  ASSERT_EQ(Run(With(TwoMixers(), Alone("one"))).code, 0);
  const Outcome two = Run(With(TwoMixers(), Alone("two")), {.ranks = 2});
  ASSERT_EQ(two.code, 0) << two.err;
  for (const int mixer : {0, 1}) {
    EXPECT_EQ(Comparison("one")["mixers"][mixer]["results"],
              Comparison("two")["mixers"][mixer]["results"]);
  }
}

// Each mixer starts from the model that was pretrained with it.
TEST_F(CompareOnTasks, MixersHaveStartsOfTheirOwn) {
  Train("table", {kTable, "train.steps=4", "evaluation.every=0"});
  Arguments command = Command("all");
  command.erase(command.begin() + 3, command.begin() + 5);  // --init-from
  const std::string list = fmt::format("dot checkpoint.initial={}\ntable checkpoint.initial={}\n",
                                       Directory("base").string(), Directory("table").string());
  const Outcome outcome = Run(With(list, command));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(Run(Command("alone")).code, 0);
  const Json mixers = Comparison("all").at("mixers");
  EXPECT_EQ(mixers[0].at("results"), Results("alone"));
  EXPECT_THAT(mixers[1].at("model").get<std::string>(), HasSubstr("factorized_random"));
}

// Though the model that they start from is trained further meanwhile.
TEST_F(CompareOnTasks, MixersStartFromOneCheckpoint) {
  Arguments command = Command("all", {"train.steps=4"});
  command.erase(command.begin() + 3, command.begin() + 5);  // --init-from
  command.insert(command.end(), {"--set", "checkpoint.initial=" + Directory("base").string()});
  const Arguments compare = With("steady model.dropout=0\nnoisy model.dropout=0.2\n", command);
  ASSERT_EQ(Run(Command("alone", {"train.steps=4", "model.dropout=0.2"})).code, 0);
  ASSERT_EQ(Run(compare, {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@4"}}).code, 75);
  EXPECT_FALSE(Exists(Directory("all") / "noisy"));
  Train("base", {"train.steps=6", "evaluation.every=0"});
  const Outcome continued = Run(compare);
  ASSERT_EQ(continued.code, 0) << continued.err;
  EXPECT_EQ(Trace(Directory("all/noisy"), 4), Trace(Directory("alone"), 4));
}

TEST_F(CompareOnTasks, OnlyMistakesOfAMixerBearItsName) {
  const Outcome common = Run(With(TwoMixers(), Alone("all", {"train.batch_size=0"})));
  EXPECT_EQ(common.code, 2);
  EXPECT_THAT(common.err, HasSubstr("train.batch_size"));
  EXPECT_THAT(common.err, testing::Not(HasSubstr("the mixer")));
  const Outcome own = Run(With("dot model.width=0\n", Alone("all")));
  EXPECT_EQ(own.code, 2);
  EXPECT_THAT(own.err, HasSubstr("the mixer dot"));
  EXPECT_FALSE(std::filesystem::exists(Directory("all")));
}

}  // namespace
}  // namespace syntra
