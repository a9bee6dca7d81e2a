// SPDX-License-Identifier: Apache-2.0
// Uses of a checkpoint outside its run: its tokenizer, old formats, starting other runs. And what
// must never be in a checkpoint.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "checkpoint/finite.h"
#include "checkpoint/recover.h"
#include "tests/base/strace.h"
#include "tests/checkpoint/forged.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using testing::HasSubstr;

class Portable : public TinyRun {
 protected:
  Outcome Eval(const Path& checkpoint, const Arguments& settings = {}) const {
    return Run(With({"eval", "--json", "--checkpoint", checkpoint.string()}, settings));
  }
  // Without --json, errors are text.
  Outcome FailedEval(const Path& checkpoint, const Arguments& settings = {}) const {
    return Run(With({"eval", "--checkpoint", checkpoint.string()}, settings));
  }
  Outcome Generate(const Path& checkpoint, const Arguments& settings = {}) const {
    return Run(With({"generate", "--checkpoint", checkpoint.string()}, settings),
               {.input = "aa ba <extra_id_0> ca\n"});
  }
  static Arguments With(Arguments arguments, const Arguments& settings) {
    for (const std::string& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    return arguments;
  }
  // A tokenizer of the same size, whose words are others.
  Path OtherTokenizer() const {
    std::string model = ReadWholeFile(tokenizer_);
    const size_t word = model.find("aa");
    model.replace(word, 2, "zz");
    const Path path = scratch_ / "other.model";
    ReplaceFileDurably(path, model);
    return path;
  }
  static double Perplexity(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? ParseJson(outcome.out).at("log_perplexity").get<double>() : 0;
  }
  static std::string ValuesOf(Checkpoint& checkpoint, const std::string& name) {
    std::string bytes(checkpoint.Find(name)->bytes(), '\0');
    checkpoint.Read(name, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  // Those names of `a` that `b` holds with the same bytes.
  static std::vector<std::string> Same(Checkpoint a, Checkpoint b) {
    std::vector<std::string> same;
    for (const auto& [name, entry] : a.tensors()) {
      const TensorType* other = b.Find(name);
      if (!name.starts_with("parameters/") || !other || *other != entry.type) continue;
      if (ValuesOf(a, name) == ValuesOf(b, name)) same.push_back(name.substr(11));
    }
    return same;
  }
  static int64_t Parameters(const Checkpoint& checkpoint) {
    int64_t count = 0;
    for (const auto& tensor : checkpoint.tensors())
      count += tensor.first.starts_with("parameters/");
    return count;
  }
};

TEST_F(Portable, ACheckpointIsCompleteWhereverItIs) {
  Train("run", {"train.steps=6"});
  const double perplexity = Perplexity(Eval(Directory("run")));
  const std::string text = Generate(Directory("run")).out;
  const Path moved = scratch_ / "else where" / "best";
  CreateDirectories(moved.parent_path());
  std::filesystem::copy(CheckpointPath("run", 6), moved);
  std::filesystem::remove(tokenizer_);
  std::filesystem::rename(scratch_ / "prepared", scratch_ / "prepared-before");

  EXPECT_EQ(Generate(moved).out, text);
  // The shards of validation data need a place that is not a guess.
  const Outcome nowhere = FailedEval(moved);
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(nowhere.Says("lies in no run directory")) << nowhere.err;
  EXPECT_EQ(Perplexity(Eval(moved, {"data.prepared=" + (scratch_ / "again").string()})),
            perplexity);
  EXPECT_EQ(Perplexity(Eval(Directory("run"))), perplexity);
  EXPECT_TRUE(std::filesystem::exists(Directory("run") / "prepared/validation"));
  // Its file is what any tool for SentencePiece reads.
  const Outcome info = Run({"tokenizer", "info", "--model", (moved / "tokenizer.model").string()});
  EXPECT_EQ(info.code, 0) << info.err;
  const Outcome inspect = Run({"inspect", "checkpoint", moved.string()});
  EXPECT_NE(inspect.out.find(", in tokenizer.model"), std::string::npos) << inspect.out;
}

TEST_F(Portable, ItsRunIsFoundHoweverItIsNamed) {
  Train("run", {"train.steps=6"});
  const double perplexity = Perplexity(Eval(Directory("run")));
  const Path step = CheckpointPath("run", 6), latest = scratch_ / "latest", all = scratch_ / "all";
  std::filesystem::create_directory_symlink(step, latest);
  std::filesystem::create_directory_symlink(step.parent_path(), all);
  for (const Path& path : {step / ".", step.parent_path() / ".", step / "..", latest, all}) {
    EXPECT_EQ(Perplexity(Eval(path)), perplexity) << path;
  }
  for (const Path& here : {step, step.parent_path()}) {
    const Outcome outcome = Run({"eval", "--json", "."}, {.wrapper = {"env", "-C", here.string()}});
    EXPECT_EQ(Perplexity(outcome), perplexity) << here;
  }
  // The checkpoints may lie on another disk.
  std::filesystem::rename(step.parent_path(), scratch_ / "disk");
  std::filesystem::create_directory_symlink(scratch_ / "disk", step.parent_path());
  EXPECT_EQ(Perplexity(Eval(step)), perplexity);
  std::filesystem::remove(latest);
  std::filesystem::create_directory_symlink(step, latest);
  EXPECT_EQ(Run({"inspect", "checkpoint", latest.string()}).code, 0);
}

// All of a run's, each read whole; looking changes none of them.
TEST_F(Portable, CheckpointsAreListedWithTheirStates) {
  Train("run", {"train.steps=6", "checkpoint.every=3"});
  const Path best = Directory("run") / "best" / "toy" / "step-0000000003";
  CreateDirectories(best.parent_path());
  std::filesystem::copy(CheckpointPath("run", 3), best);
  const auto list = [&](const Path& place) {
    return Run({"inspect", "checkpoints", "--json", place.string()});
  };
  const Outcome good = list(Directory("run"));
  EXPECT_EQ(good.code, 0) << good.err;
  const Json all = ParseJson(good.out).at("checkpoints");
  ASSERT_EQ(all.size(), 3u);
  for (const auto& [i, step] : {std::pair{0, 6}, {1, 3}, {2, 3}}) {
    EXPECT_EQ(all[i].at("step"), step);
    EXPECT_EQ(all[i].at("intact"), true);
  }
  EXPECT_EQ(all[2].at("path"), best.string());
  Damage(CheckpointPath("run", 6));
  const Outcome bad = list(Directory("run"));
  EXPECT_EQ(bad.code, 5);
  const Json states = ParseJson(bad.out).at("checkpoints");
  EXPECT_THAT(states[0].at("problem").get<std::string>(), HasSubstr("step-0000000006"));
  EXPECT_EQ(states[1], all[1]);
  const Outcome text = Run({"inspect", "checkpoints", Directory("run").string()});
  EXPECT_EQ(text.code, 5);
  EXPECT_THAT(text.out, HasSubstr("step 3, intact"));
  EXPECT_THAT(text.out, testing::Not(HasSubstr("while verifying")));
  EXPECT_THAT(text.out, HasSubstr("2 of 3 checkpoints intact"));
  EXPECT_EQ(list(CheckpointPath("run", 3)).code, 0);
  EXPECT_EQ(list(scratch_).code, 5);
  EXPECT_TRUE(HasCheckpoint("run", 6));
}

TEST_F(Portable, AnotherTokenizerIsAnError) {
  Train("run", {"train.steps=6"});
  const double perplexity = Perplexity(Eval(Directory("run")));
  const Path shard = scratch_ / "prepared/validation/validation.jsonl.tokens";
  const auto made = std::filesystem::last_write_time(shard);
  const Path other = OtherTokenizer(), larger = scratch_ / "larger.model";
  WriteSentencePieceModel(larger, 300);
  for (const Path& path : {other, larger}) {
    for (const Outcome& outcome :
         {FailedEval(Directory("run"), {"data.tokenizer=" + path.string()}),
          Generate(Directory("run"), {"data.tokenizer=" + path.string()})}) {
      EXPECT_EQ(outcome.code, 3) << outcome.err;
      EXPECT_TRUE(outcome.Says(path.string() + " (XXH3-128 ")) << outcome.err;
      EXPECT_TRUE(outcome.Says("is not the tokenizer that " + CheckpointPath("run", 6).string()))
          << outcome.err;
    }
  }
  const Outcome missing = FailedEval(Directory("run"), {"data.tokenizer=nowhere.model"});
  EXPECT_EQ(missing.code, 2) << missing.err;
  EXPECT_EQ(std::filesystem::last_write_time(shard), made);
  // The right one, given by another name, is right.
  std::filesystem::copy(tokenizer_, scratch_ / "same.model");
  const std::string same = "data.tokenizer=" + (scratch_ / "same.model").string();
  EXPECT_EQ(Perplexity(Eval(Directory("run"), {same})), perplexity);
  const Outcome sentinels = Generate(Directory("run"), {"data.extra_ids=60"});
  EXPECT_EQ(sentinels.code, 2);
  EXPECT_TRUE(sentinels.Says("but the model, which has been trained, has rows for 128"))
      << sentinels.err;
}

TEST_F(Portable, Version1IsEvaluatedAndContinued) {
  const Path golden = Path(SYNTRA_SOURCE_DIR) / "tests/checkpoint/version_1";
  const Path checkpoint = golden / "step-0000000020";
  const Arguments data{"data.validation=" + (golden / "validation.jsonl").string(),
                       "data.prepared=" + (scratch_ / "tokens").string()};
  Arguments settings = data;
  const Outcome without = FailedEval(checkpoint, settings);
  EXPECT_EQ(without.code, 2);
  EXPECT_TRUE(without.Says("data.tokenizer: cannot read \"tiny.model\"")) << without.err;
  settings.push_back("data.tokenizer=" + tokenizer_.string());
  const Outcome wrong = FailedEval(checkpoint, settings);
  EXPECT_EQ(wrong.code, 3);
  EXPECT_TRUE(wrong.Says("set data.tokenizer to that one")) << wrong.err;
  settings.back() = "data.tokenizer=" + (golden / "tiny.model").string();
  EXPECT_NEAR(Perplexity(Eval(checkpoint, settings)), 2.5066842079162597, 1e-5);

  settings.insert(settings.end(),
                  {"train.directory=" + Directory("run").string(),
                   "data.train=" + (golden / "train.jsonl").string(), "train.steps=22"});
  CreateDirectories(Directory("run") / "checkpoints");
  std::filesystem::copy(checkpoint, CheckpointPath("run", 20));
  const Outcome more =
      Run(With({"pretrain", "--config", (golden / "config.textproto").string()}, settings));
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_TRUE(more.Says("continuing from")) << more.err;
  EXPECT_TRUE(std::filesystem::exists(CheckpointPath("run", 22) / "tokenizer.model"));
}

TEST_F(Portable, ARunGoesOnWithTheTokenizerOfItsCheckpoints) {
  const Arguments settings{"train.steps=6", "checkpoint.every=3"};
  const Arguments without{"train.steps=6", "checkpoint.every=3", "data.tokenizer="};
  const Outcome neither = Run(Pretrain("run", without));
  EXPECT_EQ(neither.code, 2) << neither.err;
  EXPECT_TRUE(neither.Says("no tokenizer: set data.tokenizer to a SentencePiece model"))
      << neither.err;
  EXPECT_FALSE(std::filesystem::exists(Directory("run")));

  Train("run", settings);
  const std::string straight = Trace(Directory("run"), 6);
  std::filesystem::rename(tokenizer_, scratch_ / "elsewhere.model");
  const auto continues = [&] {
    RemoveAll(CheckpointPath("run", 6));
    Train("run", without);
    EXPECT_EQ(Trace(Directory("run"), 6), straight);
  };
  continues();
  // The newest checkpoint whose tokenizer is whole is enough.
  const Path newest = CheckpointPath("run", 3) / "tokenizer.model";
  const std::string model = ReadWholeFile(newest);
  ReplaceFileDurably(CheckpointPath("run", 6) / "tokenizer.model", model.substr(1));
  EXPECT_EQ(Run({"prepare", "--config", config_.string(), "--set", "data.tokenizer=", "--set",
                 "train.directory=" + Directory("run").string()})
                .code,
            0);
  // Where none is whole, nothing is guessed.
  ReplaceFileDurably(newest, model.substr(1));
  const Outcome damaged = Run(Pretrain("run", without));
  EXPECT_EQ(damaged.code, 5) << damaged.err;
  EXPECT_TRUE(damaged.Says("no checkpoint gives its tokenizer")) << damaged.err;
  ReplaceFileDurably(newest, model);
  continues();
}

class NotFiniteState : public Portable {};

TEST_F(NotFiniteState, NeverTakesThePlaceOfAGoodOne) {
  for (const std::string setting :
       {"optimizer.schedule.rate=1e308", "optimizer.weight_decay=1e300"}) {
    std::filesystem::remove_all(Directory("run"));
    const Outcome outcome =
        Run(Pretrain("run", {setting, "checkpoint.every=2", "checkpoint.keep=2"}));
    EXPECT_EQ(outcome.code, 6) << setting << outcome.err;
    EXPECT_TRUE(outcome.Says("the state is not finite and is not saved: parameters/"))
        << outcome.err;
    Checkpoint last = *FindNewestValid(Directory("run") / "checkpoints", Recovery::kReadOnly);
    EXPECT_TRUE(outcome.Says("The last good checkpoint is " + last.path().string())) << outcome.err;
    for (const auto& [name, entry] : last.tensors()) {
      const std::string bytes = ValuesOf(last, name);
      const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
      EXPECT_EQ(CountNotFinite({name, entry.type, data}), 0) << setting << name;
    }
  }
}

TEST_F(NotFiniteState, ShowsInAnEvaluation) {
  const Outcome outcome =
      Run(Pretrain("run", {"optimizer.schedule.rate=1e308", "evaluation.every=1"}));
  EXPECT_EQ(outcome.code, 6);
  EXPECT_TRUE(outcome.Says("the validation log-perplexity after step ")) << outcome.err;
  EXPECT_FALSE(outcome.Says("nan")) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

// All ranks leave together, and none ends the job while another writes.
TEST_F(NotFiniteState, EndsAllRanksTogether) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Outcome outcome =
      Run(Pretrain("run", {"optimizer.schedule.rate=1e308", "checkpoint.every=2"}), {.ranks = 2});
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_TRUE(outcome.Says("the state is not finite and is not saved")) << outcome.err;
}

// Older versions saved such states.
TEST_F(NotFiniteState, InACheckpointIsAnError) {
  Train("run", {"train.steps=6"});
  const Path path = CheckpointPath("run", 6);
  const TensorEntry entry = Checkpoint(path).tensors().find("parameters/embedding")->second;
  std::string shard = ReadWholeFile(path / entry.file);
  std::string manifest = Unsigned(ReadWholeFile(path / "MANIFEST"));
  const std::string before = ToHex(DigestOf(shard));
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(shard.data() + entry.offset, &bad, sizeof(bad));
  manifest.replace(manifest.find(before), before.size(), ToHex(DigestOf(shard)));
  ReplaceFileDurably(path / entry.file, shard);
  ReplaceFileDurably(path / "MANIFEST", Signed(manifest));
  for (const Outcome& outcome : {FailedEval(path), Generate(path), Run(Pretrain("run")),
                                 Run(Pretrain("new", {"checkpoint.initial=" + path.string()}))}) {
    EXPECT_EQ(outcome.code, 5) << outcome.out << outcome.err;
    EXPECT_TRUE(outcome.Says("holds values that are not finite")) << outcome.err;
    EXPECT_TRUE(outcome.Says("embedding (1 of 4,096 values)")) << outcome.err;
  }
}

class Initial : public Portable {
 protected:
  Arguments From(const Path& path, Arguments settings = {}) const {
    settings.insert(settings.end(), {"optimizer.schedule.kind=CONSTANT",
                                     "checkpoint.initial=" + path.string(), "train.steps=1"});
    return settings;
  }
};

TEST_F(Initial, EveryFormOfAPath) {
  Train("a", {"train.steps=6"});
  const Path step = CheckpointPath("a", 6), link = scratch_ / "latest";
  std::filesystem::create_directory_symlink(step, link);
  for (const Path& path : {Directory("a"), step.parent_path(), step, step / ".", link,
                           step / "MANIFEST", step / "tensors.h5", step / "shard-00000.h5"}) {
    std::filesystem::remove_all(Directory("b"));
    Train("b", From(path));
    const Checkpoint start(CheckpointPath("b", 0));
    EXPECT_EQ(static_cast<int64_t>(Same(Checkpoint(step), Checkpoint(start.path())).size()),
              Parameters(start))
        << path;
    const std::string source = ParseJson(ReadWholeFile(Directory("b") / "run.json")).at("initial");
    EXPECT_THAT(source, HasSubstr(Directory("a").string())) << path;
    EXPECT_EQ(start.info().attributes.at("initial"), source);
  }
  // A run that has begun no longer needs it, and remembers.
  std::filesystem::remove_all(Directory("a"));
  Arguments settings = From(step / "shard-00000.h5");
  settings.back() = "train.steps=2";
  Train("b", settings);
  EXPECT_TRUE(Checkpoint(CheckpointPath("b", 2)).info().attributes.contains("initial"));
  EXPECT_TRUE(ParseJson(ReadWholeFile(Directory("b") / "run.json")).contains("initial"));
}

TEST_F(Initial, BringsItsTokenizer) {
  Train("a", {"train.steps=6"});
  std::filesystem::remove(tokenizer_);
  const Path prepared = scratch_ / "again";
  const Arguments settings = From(CheckpointPath("a", 6) / "MANIFEST",
                                  {"data.tokenizer=", "data.prepared=" + prepared.string()});
  const Outcome made =
      Run(With({"prepare", "--config", config_.string(), "--output", prepared.string()}, settings));
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find("(1 made, 0 kept)"), std::string::npos) << made.out;
  Train("b", settings);
  EXPECT_EQ(ReadWholeFile(CheckpointPath("b", 0) / "tokenizer.model"),
            ReadWholeFile(CheckpointPath("a", 6) / "tokenizer.model"));
  // A file of tensors has none.
  const Outcome tensors =
      Run(Pretrain("c", From(CheckpointPath("a", 6) / "shard-00000.h5", {"data.tokenizer="})));
  EXPECT_EQ(tensors.code, 2) << tensors.err;
  EXPECT_TRUE(tensors.Says("set data.tokenizer to a SentencePiece model")) << tensors.err;
}

// Verifying reads every byte of it.
TEST_F(Initial, IsOpenedOnce) {
  if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
  Train("a", {"train.steps=6"});
  EXPECT_EQ(
      TimesOpened(CheckpointPath("a", 6) / "shard-00000.h5", Pretrain("b", From(Directory("a")))),
      1);
}

TEST_F(Initial, AnythingElseIsOneErrorBeforeAnyWork) {
  const Path text = scratch_ / "text", empty = scratch_ / "empty", pipe = scratch_ / "pipe";
  ReplaceFileDurably(text, "weights");
  CreateDirectories(empty);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::pair<Path, std::string> cases[] = {
      {scratch_ / "missing", "does not exist"},
      {text, "is neither a checkpoint nor an HDF5 file"},
      {empty, "holds no checkpoint"},
      {pipe, "is not a directory"},
      {Path(SYNTRA_SOURCE_DIR) / "tests/golden/optimizers.h5", "has no parameter of this model"},
  };
  for (const auto& [path, reason] : cases) {
    std::filesystem::remove_all(Directory("b"));
    const Outcome outcome = Run(Pretrain("b", From(path)));
    EXPECT_EQ(outcome.code, Exists(path) ? 5 : 2) << path << outcome.err;
    EXPECT_TRUE(outcome.Says(path.string())) << outcome.err;
    EXPECT_TRUE(outcome.Says(reason)) << outcome.err;
    EXPECT_EQ(NewestStep("b"), -1);
  }
}

TEST_F(Initial, PartlyMatchingModel) {
  const std::string dense =
      "model.mixer={ attention { heads: 2 head_size: 16 dropout: 0.1 term { dense { max_length: 32 "
      "} "
      "} term { dot_product {} } } }";
  Train("a", {"train.steps=6"});
  Train("fresh", {dense, "train.steps=3"});
  const Outcome refused = Run(Pretrain("b", From(Directory("a"), {dense})));
  EXPECT_EQ(refused.code, 5) << refused.err;
  for (const char* part : {"missing there (", "dense",
                           "not in this model (4): ", "decoder/layer_00/mixer/random/table",
                           "checkpoint.initial_missing", "INITIALIZE"}) {
    EXPECT_TRUE(refused.Says(part)) << part << refused.err;
  }
  const Outcome taken =
      Run(Pretrain("b", From(Directory("a"), {dense, "checkpoint.initial_missing=INITIALIZE"})));
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_TRUE(taken.Says("the rest is initialised")) << taken.err;
  const Path start = CheckpointPath("b", 0);
  const auto from_a = Same(Checkpoint(start), Checkpoint(CheckpointPath("a", 6)));
  const auto fresh = Same(Checkpoint(start), Checkpoint(CheckpointPath("fresh", 0)));
  EXPECT_THAT(from_a, testing::Contains("embedding"));
  EXPECT_THAT(from_a, testing::Contains("encoder/layer_01/mixer/value"));
  // Each parameter is of one or the other; trained ones differ from initial ones.
  EXPECT_EQ(static_cast<int64_t>(from_a.size() + fresh.size()), Parameters(Checkpoint(start)));
  EXPECT_THAT(Checkpoint(start).info().attributes.at("initial"),
              HasSubstr(fmt::format(": {} of {} parameters", from_a.size(),
                                    Parameters(Checkpoint(start)))));
}

TEST_F(Initial, AnotherTokenizer) {
  Train("a", {"train.steps=6"});
  const std::string other = "data.tokenizer=" + OtherTokenizer().string();
  const std::string prepared = "data.prepared=" + (scratch_ / "tokens").string();
  const Outcome refused = Run(Pretrain("b", From(Directory("a"), {other, prepared})));
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_TRUE(refused.Says("the same ids mean other pieces")) << refused.err;
  EXPECT_TRUE(refused.Says("leave data.tokenizer out")) << refused.err;
  EXPECT_FALSE(refused.Says("parameters that match")) << refused.err;
  // Before anything is tokenized.
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "tokens"));
  EXPECT_FALSE(std::filesystem::exists(Directory("b")));
  const Outcome taken = Run(
      Pretrain("b", From(Directory("a"), {other, prepared, "checkpoint.initial_missing=INITIALIZE",
                                          "checkpoint.initial_state=CONTINUED"})));
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_TRUE(taken.Says("the same ids mean other pieces")) << taken.err;
  EXPECT_TRUE(taken.Says("does not match this run:\n  tokenizer: ")) << taken.err;
}

}  // namespace
}  // namespace syntra
