// SPDX-License-Identifier: Apache-2.0
// Common mistakes of users: each gives the right exit code and one message that says what and
// where.
#include <filesystem>

#include "base/text.h"
#include "tests/base/strace.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Mistake : public TinyRun {
 protected:
  // The command ends with `code`, and its only error message has all of `parts`.
  static void ExpectError(const Outcome& outcome, int code, const Arguments& parts) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    for (const std::string& part : parts) {
      EXPECT_TRUE(outcome.Says(part)) << part << "\nis not in\n" << outcome.err;
    }
    int errors = 0;
    for (const std::string& line : Split(outcome.err, '\n')) {
      if (line.find("error: ") != std::string::npos) ++errors;
    }
    EXPECT_EQ(errors, 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  void Replace(const std::string& from, const std::string& to) const {
    std::string text = ReadWholeFile(config_);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    ReplaceFileDurably(config_, text.replace(at, from.size(), to));
  }
};

TEST_F(Mistake, WrongKey) {
  Replace("vocabulary_size", "vocabulary_sise");
  const Outcome outcome = Run(Pretrain("run"));
  ExpectError(outcome, 2, {"tiny.textproto:5:3: ", "did you mean \"vocabulary_size\"?"});
  EXPECT_FALSE(std::filesystem::exists(Directory("run")));
}

TEST_F(Mistake, MissingFiles) {
  ExpectError(Run(Pretrain("run", {"data.train=absent.jsonl"})), 2,
              {"absent.jsonl", "No such file"});
  ExpectError(Run(Pretrain("run", {"data.tokenizer=absent.model"})), 2, {"absent.model"});
  ExpectError(Run({"pretrain", "--config", "absent.textproto"}), 2, {"absent.textproto"});
  ExpectError(Run({"eval", "--checkpoint", "absent"}), 2, {"absent does not exist"});
}

TEST_F(Mistake, TruncatedShard) {
  const Path shard = scratch_ / "corpus/cut.json.gz";
  const std::string command =
      fmt::format("gzip -c '{}' | head -c 3000 > '{}'", training_.string(), shard.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  ExpectError(Run(Pretrain("run", {"data.train=" + shard.string()})), 3,
              {shard.string(), "byte 3000", "ends early"});
}

TEST_F(Mistake, NotATokenizer) {
  ExpectError(Run(Pretrain("run", {"data.tokenizer=" + training_.string()})), 3,
              {training_.string() + " is not a SentencePiece model"});
}

TEST_F(Mistake, TokenizerLargerThanTheModel) {
  ExpectError(Run(Pretrain("run", {"model.vocabulary_size=100"})), 2,
              {"model.vocabulary_size 100", "119", "set it to 128"});
}

TEST_F(Mistake, TokenizerWithoutAnEnd) {
  WriteSentencePieceModel(tokenizer_, 90, {"<unk>", "<s>"});
  ExpectError(Run(Pretrain("run")), 3,
              {tokenizer_.string() + " has no end-of-sentence piece", "--pad_id=0 --eos_id=1"});
  const Outcome check = Run({"check", "--config", config_.string(), "--set",
                             "train.directory=" + Directory("run").string()});
  EXPECT_EQ(check.code, 3);
  EXPECT_NE(check.out.find("has no end-of-sentence piece"), std::string::npos) << check.out;
}

TEST_F(Mistake, FilesOfATaskThatAreNotThere) {
  const Outcome check =
      Run({"check", "--config", config_.string(), "--set", "data.task=[{ cola {} }]", "--set",
           "data.directory=" + scratch_.string(), "--set",
           "train.directory=" + Directory("run").string()});
  EXPECT_EQ(check.code, 3);
  for (const char* file : {"CoLA/train.tsv", "CoLA/dev.tsv"}) {
    EXPECT_NE(check.out.find(file), std::string::npos) << check.out;
  }
}

// Told before the run begins.
TEST_F(Mistake, FilesOfATaskWithoutExamples) {
  ReplaceFileDurably(scratch_ / "a.tsv", "text\tlabel\nword\tno\n");
  ReplaceFileDurably(scratch_ / "b.tsv", "text\tlabel\n");
  for (const char* split : {"train", "validation"}) {
    const std::string other = split == std::string("train") ? "validation" : "train";
    const Outcome check =
        Run({"check", "--config", config_.string(), "--from-scratch", "--set",
             fmt::format("data.task={{ classification {{ name: 'a' {}: 'b.tsv' {}: 'a.tsv' label: "
                         "['no', 'yes'] }} }}",
                         split, other),
             "--set", "data.directory=" + scratch_.string(), "--set",
             "train.directory=" + Directory("run").string()});
    EXPECT_EQ(check.code, 3) << check.out;
    EXPECT_NE(check.out.find("b.tsv: there is no example in it"), std::string::npos) << check.out;
  }
}

TEST_F(Mistake, TasksOfACommandForCorpora) {
  const Outcome outcome = Run(Pretrain("run", {"data.task=[{ cola {} }]"}));
  ExpectError(outcome, 2, {"data.task names tasks", "run syntra finetune"});
  EXPECT_FALSE(Exists(Directory("run")));
}

TEST_F(Mistake, NoTaskForTheCommandOfTasks) {
  ExpectError(Run({"finetune", config_.string()}), 2,
              {"data.task names no task; add one, e.g. with configs/finetune/sst2.textproto"});
}

// Not that there is no task or no start.
TEST_F(Mistake, FilesOfTasksThatCannotBeRead) {
  const std::string nowhere = (scratch_ / "nowhere.textproto").string();
  ExpectError(Run({"finetune", nowhere}), 2, {nowhere});
  ExpectError(Run({"finetune", "--set", "data.tsak=[{ cola {} }]"}), 2,
              {"data has no field \"tsak\""});
  ExpectError(Run({"finetune", nowhere, "--set", "data.task=[{ cola {} }]"}), 2, {nowhere});
}

TEST_F(Mistake, FewerThanNoSentinels) {
  ExpectError(Run({"tokenizer", "info", "--model", tokenizer_.string(), "--extra-ids", "-5"}), 2,
              {"--extra-ids", "-5 not in range", "0", "10000"});
}

TEST_F(Mistake, TableShorterThanTheInput) {
  ExpectError(Run(Pretrain("run", {"data.input_length=64"})), 2,
              {"max_length 32 is shorter than data.input_length 64"});
}

TEST_F(Mistake, BatchesThatDoNotDivide) {
  ExpectError(Run(Pretrain("run", {"train.micro_batch_size=3"})), 2,
              {"train.batch_size 8 is not a multiple of train.micro_batch_size 3"});
}

TEST_F(Mistake, PrecisionThatTheProcessorLacks) {
  ExpectError(Run(Pretrain("run", {"train.precision=BF16", "train.device=CPU"}),
                  {.environment = {"ONEDNN_MAX_CPU_ISA=AVX2"}}),
              2, {"AVX-512", "train.precision: FP32"});
}

// Before anything is tokenized, saved or evaluated.
TEST_F(Mistake, BatchesThatDoNotFit) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer needs more address space than the limit";
#endif
  const Outcome outcome =
      Run(Pretrain("run", {"train.batch_size=200000"}),
          {.wrapper = {"bash", "-c", "ulimit -v 3000000; exec \"$@\"", "bash"}});
  ExpectError(outcome, 4, {"of memory, but ulimit -v leaves ", "train.micro_batch_size=", " fits"});
  EXPECT_FALSE(std::filesystem::exists(Directory("run")));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "prepared"));
}

TEST_F(Mistake, SeveralAtOnce) {
  ReplaceFileDurably(Directory("run"), "");
  const Outcome outcome = Run(Pretrain("run", {"data.text_field=body"}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(outcome.Says("data.text_field is \"body\"")) << outcome.err;
  EXPECT_TRUE(outcome.Says("run is a file; set another train.directory")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "prepared"));
}

TEST_F(Mistake, NotACheckpointDirectory) {
  ExpectError(Run({"generate", "--checkpoint", (scratch_ / "corpus").string()}), 5,
              {"holds no checkpoint"});
  // That of a comparison, or of several seeds.
  const Path run = Directory("several") / "a";
  CreateDirectories(run / "checkpoints");
  const std::string several = Directory("several").string();
  const std::vector<std::string> says{"holds no checkpoint itself, but these in it do; name one",
                                      run.string()};
  ExpectError(Run({"generate", "--checkpoint", several}), 5, says);
  ExpectError(Run(Pretrain("run", {"checkpoint.initial=" + several})), 5, says);
}

// It would count as not given, and the command would do something else.
TEST_F(Mistake, EmptyPaths) {
  const std::string run = scratch_.string();
  const std::pair<Arguments, std::string> cases[] = {
      {{"report", run, "--html", ""}, "--html"},
      {{"report", ""}, "directory"},
      {{"plan", config_.string(), "--measure", ""}, "--measure"},
      {{"prepare", config_.string(), "--output", ""}, "--output"},
      {{"manual", "--write", ""}, "--write"},
      {{"convert", "--input", run, "--output", "", "--to", "syntra"}, "--output"},
      {{"convert", "--input", run, "--output", run + "/x", "--to", "syntra", "--tokenizer", ""},
       "--tokenizer"},
      {{"finetune", config_.string(), "--init-from", ""}, "--init-from"},
      {{"pretrain", "--config", ""}, "--config"},
  };
  for (const auto& [arguments, option] : cases) {
    ExpectError(Run(arguments), 2, {option + ": must not be empty"});
  }
}

TEST_F(Mistake, FilesThatAreNotWhatTheyShouldBe) {
  const std::string folder = (scratch_ / "corpus").string();
  for (const Arguments& command :
       {Arguments{"tokenizer", "encode", "--model", "absent"},
        {"metrics", "f1", "--answers", "absent", "--references", "absent"}}) {
    ExpectError(Run(command), 2, {"absent does not exist"});
  }
  ExpectError(Run({"tokenizer", "info", "--model", folder}), 3, {folder, "a directory"});
  for (const Arguments& command :
       {Arguments{"report"}, {"watch"}, {"eval"}, {"generate"}, {"inspect", "checkpoints"}}) {
    Arguments of_nothing = command;
    of_nothing.push_back("nowhere");
    ExpectError(Run(of_nothing), 2, {"nowhere does not exist"});
  }
  // Of which a part was copied.
  const std::string part = (scratch_ / "part").string();
  CreateDirectories(part);
  ReplaceFileDurably(scratch_ / "part/metrics.jsonl", "{\"step\":1,\"loss\":5}\n");
  for (const char* command : {"report", "watch"}) {
    ExpectError(Run({command, part}), 2,
                {part + " is not the directory of a run: it has no config.textproto"});
  }
}

// No shell replaces "~" in the middle of a word.
TEST_F(Mistake, AHomeDirectoryThatOnlyShellsKnow) {
  for (const std::string field : {"train.directory", "data.prepared", "data.tokenizer"}) {
    ExpectError(Run(Pretrain("run", {field + "=~/x"}), {.environment = {"HOME=/home/ann"}}), 2,
                {field, "\"~/x\" begins with \"~\"", "write the whole path, \"/home/ann/x\""});
  }
  const std::string config = config_.string(), run = scratch_.string();
  const std::string task =
      R"(data.task=[{ text_to_text { name: "a" train: "~/x" validation: "b.tsv" } }])";
  const std::string pairs =
      R"(data.task=[{ parallel_text { name: "a" train { input: "~/x" target: "b" } } }])";
  const std::pair<Arguments, std::string> cases[] = {
      {{"finetune", config, "--set", task, "--set", "train.directory=run", "--from-scratch"},
       "text_to_text.train[0]"},
      {{"plan", config, "--set", pairs}, "parallel_text.train[0].input"},
      {{"plan", config, "--set", "data.directory=~/x"}, "data.directory"},
      {{"finetune", config, "--init-from=~/x"}, "--init-from"},
      {{"eval", "--checkpoint=~/x"}, "--checkpoint"},
      {{"convert", run, "--output=~/x", "--to", "syntra"}, "--output"},
  };
  for (const auto& [arguments, place] : cases) {
    ExpectError(Run(arguments, {.environment = {"HOME=/home/ann"}}), 2,
                {place, "write the whole path, \"/home/ann/x\""});
  }
  EXPECT_FALSE(std::filesystem::exists("~"));
}

TEST_F(Mistake, EnvironmentVariablesThatMeanNothing) {
  const Arguments plan{"plan", config_.string()};
  ExpectError(Run(plan, {.environment = {"SYNTRA_BINDING=nome"}}), 2,
              {"SYNTRA_BINDING is \"nome\"", "set it to none, or unset it"});
  ExpectError(Run(plan, {.environment = {"SYNTRA_HOPPER=on"}}), 2,
              {"SYNTRA_HOPPER is \"on\"", "set it to off or two_passes"});
  ExpectError(Run(plan, {.environment = {"SYNTRA_ALGORITHMS=0"}}), 2, {"first or own"});
  EXPECT_EQ(Run(plan, {.environment = {"SYNTRA_BINDING=", "SYNTRA_HOPPER=off"}}).code, 0);
}

TEST_F(Mistake, PointersOfGitLfs) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 12345\n";
  Train("run", {"train.steps=3"});
  const Path shard = [&] {
    for (const Path& file : ListDirectory(CheckpointPath("run", 3))) {
      if (file.extension() == ".h5") return file;
    }
    return Path();
  }();
  const std::string told =
      " is a Git LFS pointer, not the file that it stands for; run git lfs pull";
  for (const auto& [file, code] : {std::pair{shard, 4}, {tokenizer_, 3}, {training_, 3}}) {
    const std::string content = ReadWholeFile(file);
    ReplaceFileDurably(file, pointer);
    const Arguments command = code == 4 ? Arguments{"eval", CheckpointPath("run", 3).string()}
                                        : Pretrain("new", {"train.steps=3", "data.prepared="});
    ExpectError(Run(command), code, {file.string() + told});
    ReplaceFileDurably(file, content);
  }
  // A run that finds one does not rename the checkpoint as if it were damaged.
  ReplaceFileDurably(shard, pointer);
  const Outcome again = Run(Pretrain("run", {"train.steps=3"}));
  EXPECT_TRUE(again.Says(shard.string() + told)) << again.err;
  EXPECT_FALSE(again.Says("renamed the damaged checkpoint")) << again.err;
}

// Token shards that cannot go to the run directory can go elsewhere.
TEST_F(Mistake, RunDirectoriesThatCannotBeWritten) {
  Train("run", {"train.steps=4"});
  ReplaceFileDurably(Directory("run") / "prepared", "in the way");
  const Outcome outcome = Run({"eval", "--checkpoint", Directory("run").string()});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(outcome.Says("give --set data.prepared=DIRECTORY")) << outcome.err;
}

// As where the disk that it leads to is not mounted.
TEST_F(Mistake, ARunDirectoryThatIsALinkToNothing) {
  std::filesystem::create_symlink("nowhere", Directory("link"));
  for (const char* run : {"link", "link/run"}) {
    ExpectError(Run(Pretrain(run)), 4,
                {Directory("link").string() + " is a link to nowhere, which does not exist",
                 "set another train.directory"});
  }
}

TEST_F(Mistake, AFileSystemWithoutLocks) {
  if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
  for (const char* error : {"ENOLCK", "ENOSYS"}) {
    const Outcome outcome =
        Run(Pretrain("run"), {.wrapper = {"strace", "-f", "-o", "/dev/null", "-e", "trace=flock",
                                          "-e", fmt::format("inject=flock:error={}", error)}});
    EXPECT_EQ(outcome.code, 4);
    EXPECT_TRUE(outcome.Says("cannot lock " + (Directory("run") / "LOCK").string()));
    EXPECT_TRUE(outcome.Says("its file system must have flock(2)")) << outcome.err;
  }
}

class MistakeOfAllRanks : public Mistake {
 protected:
  void SetUp() override {
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    Mistake::SetUp();
  }
};

TEST_F(MistakeOfAllRanks, BatchNotDivisibleIsSaidOnce) {
  ExpectError(Run(Pretrain("run"), {.ranks = 3}), 2,
              {"train.batch_size 8 cannot be shared equally by 3 ranks"});
}

TEST_F(MistakeOfAllRanks, RanksThatCannotShareATree) {
  ExpectError(Run(Pretrain("run", {"train.batch_size=12", "train.micro_batch_size=1",
                                   "train.reduction=EXACT"}),
                  {.ranks = 2}),
              2, {"2 ranks cannot share one tree of 12 micro-batches", "start 1, 3, 6, 12 ranks"});
}

TEST_F(MistakeOfAllRanks, WrongKeyIsSaidOnce) {
  Replace("vocabulary_size", "vocabulary_sise");
  ExpectError(Run(Pretrain("run"), {.ranks = 2}), 2, {"did you mean \"vocabulary_size\"?"});
}

TEST_F(MistakeOfAllRanks, WrongOptionIsSaidOnce) {
  Arguments wrong = Pretrain("run");
  wrong.push_back("--nothing");
  const std::string says = "error: syntra pretrain has no option \"--nothing\"";
  const Outcome of_all = Run(wrong, {.ranks = 3});
  ExpectError(of_all, 2, {says});
  EXPECT_FALSE(of_all.Says("rank ")) << of_all.err;
  ExpectError(Run(Pretrain("run"), {.ranks = 2, .other_arguments = wrong}), 2, {"rank 1: " + says});
}

// Its ranks work without MPI.
TEST_F(MistakeOfAllRanks, AFileThatPrepareLacksIsSaidOnce) {
  ExpectError(Run({"prepare", "nowhere.textproto", "--output", Directory("prepared").string()},
                  {.ranks = 3}),
              2, {"cannot read nowhere.textproto"});
}

// dist/README.md promises this for orte_execute_quiet.
TEST_F(MistakeOfAllRanks, QuietlyItIsAllThatIsSaid) {
  if (std::system((MpirunPath() + " --version | grep -q 'Open MPI) 4'").c_str()) != 0) {
    GTEST_SKIP() << "Open MPI 5 cannot be told to be quiet";
  }
  Program program(scratch_, Pretrain("run"),
                  {.ranks = 3, .environment = {"OMPI_MCA_orte_execute_quiet=1"}});
  EXPECT_EQ(program.Wait().code, 2);
  EXPECT_EQ(program.Errors(),
            "error: train.batch_size 8 cannot be shared equally by 3 ranks; start a number of "
            "ranks that divides it, or change train.batch_size\n");
}

TEST_F(MistakeOfAllRanks, TruncatedShardIsSaidOnce) {
  const Path shard = scratch_ / "corpus/cut.json.gz";
  const std::string command =
      fmt::format("gzip -c '{}' | head -c 3000 > '{}'", training_.string(), shard.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  ExpectError(Run(Pretrain("run", {"data.train=" + shard.string()}), {.ranks = 2}), 3,
              {"byte 3000"});
}

}  // namespace
}  // namespace syntra
