// SPDX-License-Identifier: Apache-2.0
// The commands around training: eval, inspect, plan, check, prepare.
#include <map>

#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Tools : public TinyRun {
 protected:
  Json RunJson(const Arguments& arguments, const StartOptions& options = {}) const {
    const Outcome outcome = Run(arguments, options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return ParseJson(outcome.out);
  }
  // The last line of `bench --json`.
  Json Bench(const Arguments& more) const {
    Arguments arguments{"bench", "--json", "--steps", "1", "--config", config_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return ParseJson(Split(outcome.out, '\n').at(1));
  }
  double LoggedPerplexity(const std::string& name, int64_t step) const {
    for (const auto& line : Metrics(name)) {
      if (line.at("step") == step && line.contains("validation_log_perplexity")) {
        return line.at("validation_log_perplexity");
      }
    }
    ADD_FAILURE() << "no evaluation at step " << step;
    return 0;
  }
};

TEST_F(Tools, EvalGivesWhatTrainingLogged) {
  Train("run");
  for (const int64_t step : {15, 20}) {
    const Arguments arguments{"eval", "--checkpoint", CheckpointPath("run", step).string(),
                              "--json"};
    const Json first = RunJson(arguments), second = RunJson(arguments);
    EXPECT_EQ(first, second);
    EXPECT_EQ(first.at("step"), step);
    EXPECT_EQ(first.at("log_perplexity").get<double>(), LoggedPerplexity("run", step));
    EXPECT_GT(first.at("tokens").get<int64_t>(), 0);
    EXPECT_EQ(first.at("label_checksum").get<std::string>().size(), 16u);
  }
}

TEST_F(Tools, EvalDoesNotDependOnMicroBatches) {
  Train("whole");
  Train("cut", {"train.micro_batch_size=2"});
  for (const int64_t step : {0, 5}) {
    EXPECT_NEAR(LoggedPerplexity("whole", step), LoggedPerplexity("cut", step), 1e-5) << step;
  }
  const Arguments arguments{"eval", "--checkpoint", Directory("cut").string(), "--json"};
  EXPECT_EQ(RunJson(arguments).at("log_perplexity").get<double>(), LoggedPerplexity("cut", 20));
  // Another batch size, and so other examples, only if asked for.
  Arguments other = arguments;
  other.insert(other.end(), {"--set", "evaluation.batch_size=3"});
  EXPECT_NE(RunJson(other).at("label_checksum"), RunJson(arguments).at("label_checksum"));
  // More than there are is all there are.
  other.back() = "evaluation.batch_size=100000";
  EXPECT_EQ(RunJson(other).at("batches"), 1);
}

TEST_F(Tools, Inspect) {
  Train("run", {"train.steps=6"});
  const Json checkpoint = RunJson({"inspect", "checkpoint", Directory("run").string(), "--json"});
  EXPECT_EQ(checkpoint.at("step"), 6);
  int64_t parameters = 0;
  for (const Json& tensor : checkpoint.at("tensors")) {
    if (!tensor.at("name").get<std::string>().starts_with("parameters/")) continue;
    int64_t elements = 1;
    for (const int64_t dim : tensor.at("shape")) elements *= dim;
    parameters += elements;
  }
  EXPECT_EQ(RunJson({"plan", "--config", config_.string(), "--set", "train.directory=x", "--json"})
                .at("parameters"),
            parameters);
  const Json data = RunJson({"inspect", "data", "--config", config_.string(), "--set",
                             "train.directory=" + Directory("run").string(), "--json"});
  ASSERT_EQ(data.at("examples").size(), 3u);
  for (const Json& example : data.at("examples")) {
    EXPECT_NE(example.at("input").get<std::string>().find("<extra_id_0>"), std::string::npos);
    EXPECT_TRUE(example.at("target").get<std::string>().starts_with("<extra_id_0>"));
    EXPECT_EQ(example.at("encoder_ids").size(), 32u);
    EXPECT_EQ(example.at("encoder_segments").size(), 32u);
    EXPECT_EQ(example.at("encoder_segments")[0], 1);
    const auto targets = example.at("targets").get<std::vector<int32_t>>();
    EXPECT_EQ(example.at("decoder_segments").size(), targets.size());
    const auto decoder_ids = example.at("decoder_ids").get<std::vector<int32_t>>();
    ASSERT_EQ(decoder_ids.size(), targets.size());
    EXPECT_EQ(decoder_ids[0], 0);
    EXPECT_EQ(decoder_ids[1], targets[0]);
  }
}

// Means over validation examples, or what is read of a text; as text, as JSON and as a picture.
TEST_F(Tools, InspectAttention) {
  Train("run", {"train.steps=4"});
  const Path picture = scratch_ / "attention.svg";
  const Arguments arguments{"inspect", "attention",      "--checkpoint", Directory("run").string(),
                            "--svg",   picture.string(), "--positions",  "5"};
  const Outcome text = Run(arguments);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("decoder/layer_01/cross_attention"), std::string::npos) << text.out;
  const std::string svg = ReadWholeFile(picture);
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_NE(svg.find("encoder/layer_00/mixer"), std::string::npos);
  Arguments numbers = arguments;
  numbers.insert(numbers.end(), {"--json", "--weights", "--layer", "decoder/layer_01/mixer"});
  const Json json = RunJson(numbers);
  EXPECT_EQ(json.at("examples"), 8);
  ASSERT_EQ(json.at("attentions").size(), 6u);
  for (const Json& attention : json.at("attentions")) {
    ASSERT_EQ(attention.at("heads").size(), 2u);
    for (const Json& head : attention.at("heads")) {
      EXPECT_GT(head.at("queries").get<int64_t>(), 0);
      EXPECT_GE(head.at("keys_read").get<double>(), 1 - 1e-6);
      EXPECT_LE(head.at("keys_read").get<double>(), 32 + 1e-4);
      EXPECT_EQ(head.at("histogram").size(), 50u);
    }
  }
  ASSERT_EQ(json.at("first_example").size(), 1u);
  const Json weights = json.at("first_example")[0].at("weights");
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1][0][0].get<double>(), 1, 1e-6);  // there is no other
  EXPECT_EQ(weights[1][0][1], 0);
  const Json one = RunJson({"inspect", "attention", "--checkpoint", Directory("run").string(),
                            "--json", "--weights", "--layer", "encoder/layer_00", "--input",
                            "aa <extra_id_0> ba", "--target", "<extra_id_0> ca"});
  EXPECT_EQ(one.at("examples"), 1);
  // Two words, a sentinel, EOS.
  EXPECT_EQ(one.at("first_example").at(0).at("weights").at(0).size(), 4u);
  std::string many = "aa";
  for (int i = 1; i < 40; ++i) many += " aa";
  for (const auto& [input, says] :
       {std::pair{std::string(), "--input is empty"},
        {many, "the text has 41 tokens, but the model reads 32"},
        {std::string("\xff"), "the text is bad: text is not well-formed UTF-8"}}) {
    const Outcome refused =
        Run({"inspect", "attention", "--checkpoint", Directory("run").string(), "--input", input});
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_TRUE(refused.Says(says)) << refused.err;
  }
  const Outcome unknown = Run({"inspect", "attention", "--checkpoint", Directory("run").string(),
                               "--layer", "none", "--svg", picture.string()});
  EXPECT_EQ(unknown.code, 2) << unknown.err;
}

// Together the ranks update what there is; the plan is that of the rank with most.
TEST_F(Tools, InspectShards) {
  const auto report = [&](Arguments command, const std::string& kind) {
    for (const std::string& word :
         {std::string("--config"), config_.string(), std::string("--ranks"), std::string("3"),
          std::string("--json"), std::string("--set"), std::string("train.directory=x"),
          std::string("--set"), std::string("train.batch_size=9"), std::string("--set"),
          "optimizer.kind=" + kind, std::string("--set"),
          std::string("train.sharding=OPTIMIZER_STATE")}) {
      command.push_back(word);
    }
    return RunJson(command);
  };
  for (const std::string kind : {"ADAMW", "ADAFACTOR"}) {
    const Json plan = report({"plan"}, kind), shards = report({"inspect", "shards"}, kind);
    int64_t updated = 0, largest = 0;
    double bytes = 0;
    for (const Json& shard : shards.at("shards")) {
      updated += shard.at("updated").get<int64_t>();
      largest = std::max(largest, shard.at("updated").get<int64_t>());
      bytes = std::max(bytes, shard.at("optimizer_bytes").get<double>());
      EXPECT_FALSE(shard.at("parameters").empty());
    }
    EXPECT_EQ(updated, plan.at("trainable_parameters"));
    EXPECT_EQ(bytes, plan.at("optimizer_bytes"));
    EXPECT_DOUBLE_EQ(shards.at("imbalance"),
                     static_cast<double>(3 * largest) / static_cast<double>(updated));
  }
}

// One example a row, the last ones shorter than a row: nothing of them is in a segment.
TEST_F(Tools, InspectValidation) {
  const Json data = RunJson({"inspect", "data", "--json", "--split", "validation", "--examples",
                             "10000", "--config", config_.string(), "--set", "train.directory=x"});
  EXPECT_GT(data.at("examples").size(), 10u);
  EXPECT_LT(data.at("examples").size(), 1000u);
  int padded = 0;
  for (const Json& example : data.at("examples")) {
    const auto ids = example.at("encoder_ids").get<std::vector<int32_t>>();
    const auto segments = example.at("encoder_segments").get<std::vector<int32_t>>();
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(segments[i], ids[i] != 0);
    padded += segments.back() == 0;
  }
  EXPECT_GT(padded, 0);
}

// Other files of the same names: the run whose shards lie there goes on.
TEST_F(Tools, LookingAtOtherDataCostsARunNothing) {
  Train("run", {"train.steps=4"});
  const Path shards = scratch_ / "prepared";
  const std::string training = ReadWholeFile(shards / "train/train.jsonl.tokens"),
                    validation = ReadWholeFile(shards / "validation/validation.jsonl.tokens");
  CreateDirectories(scratch_ / "other");
  std::filesystem::copy_file(validation_, scratch_ / "other/train.jsonl");
  std::filesystem::copy_file(training_, scratch_ / "other/validation.jsonl");
  const std::string train = "data.train=" + (scratch_ / "other/train.jsonl").string(),
                    other = "data.validation=" + (scratch_ / "other/validation.jsonl").string();
  const std::string directory = "train.directory=" + Directory("run").string();
  const Arguments inspect{"inspect", "data", config_.string(), "--set", directory, "--set"};
  Arguments of_train = inspect, of_validation = inspect;
  of_train.push_back(train);
  of_validation.insert(of_validation.end(), {other, "--split", "validation"});
  const Arguments eval{"eval",
                       "--checkpoint",
                       Directory("run").string(),
                       "--set",
                       "data.prepared=" + shards.string(),
                       "--set",
                       other};
  for (Arguments look : {of_train, of_validation, eval}) {
    const Outcome refused = Run(look);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_TRUE(refused.Says("Give --set data.prepared=DIRECTORY")) << refused.err;
    look.insert(look.end(), {"--set", "data.prepared=" + (scratch_ / "elsewhere").string()});
    const Outcome shown = Run(look);
    EXPECT_EQ(shown.code, 0) << shown.err;
  }
  EXPECT_EQ(ReadWholeFile(shards / "train/train.jsonl.tokens"), training);
  EXPECT_EQ(ReadWholeFile(shards / "validation/validation.jsonl.tokens"), validation);
  Train("run", {"train.steps=6"});
}

// reduction EXACT keeps one more buffer of gradients for each level of a rank's tree.
TEST_F(Tools, PlanShowsTheBuffersOfATree) {
  const auto plan = [&](const Arguments& more) {
    Arguments arguments{"plan", "--json", "--config", config_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunJson(arguments);
  };
  const Json fast = plan({"--set", "train.micro_batch_size=1"});
  EXPECT_EQ(fast.at("gradient_buffers"), 1);
  const double bytes = fast.at("gradient_bytes");
  for (const auto& [ranks, buffers] : {std::pair{"1", 4}, {"2", 3}, {"4", 2}, {"8", 1}}) {
    const Json exact = plan(
        {"--set", "train.micro_batch_size=1", "--set", "train.reduction=EXACT", "--ranks", ranks});
    EXPECT_EQ(exact.at("gradient_buffers"), buffers);
    EXPECT_EQ(exact.at("gradient_bytes"), buffers * bytes);
    EXPECT_EQ(exact.at("total_bytes"),
              fast.at("total_bytes").get<double>() + (buffers - 1) * bytes);
  }
}

// Of a run on a GPU, which need not be there.
TEST_F(Tools, PlanCountsTheBf16CopiesOfParametersOnGpus) {
  const auto plan = [&](const char* device) {
    return RunJson({"plan", "--json", "--config", config_.string(), "--set", "train.precision=BF16",
                    "--set", std::string("train.device=") + device});
  };
  const Json cpu = plan("CPU"), gpu = plan("CUDA");
  EXPECT_EQ(cpu.at("rounded_parameter_bytes"), 0);
  EXPECT_EQ(gpu.at("rounded_parameter_bytes"), gpu.at("parameter_bytes").get<double>() / 2);
  double total = 0;
  for (const char* part : {"parameter_bytes", "rounded_parameter_bytes", "gradient_bytes",
                           "optimizer_bytes", "activation_bytes"}) {
    total += gpu.at(part).get<double>();
  }
  EXPECT_EQ(gpu.at("total_bytes"), total);
}

TEST_F(Tools, CheckAndDoctor) {
  const Arguments arguments{"check",    "--json",
                            "--config", config_.string(),
                            "--set",    "train.directory=" + Directory("run").string()};
  const Json findings = RunJson(arguments);
  for (const auto& [subject, finding] : findings.items()) {
    EXPECT_TRUE(finding.at("ok")) << subject << finding;
  }
  EXPECT_FALSE(std::filesystem::exists(Directory("run")));
  Arguments wrong = arguments;
  wrong.insert(wrong.end(), {"--set", "model.vocabulary_size=100"});
  const Outcome outcome = Run(wrong);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_FALSE(ParseJson(outcome.out).at("tokenizer").at("ok"));
  // One that needs what has failed was not looked at.
  EXPECT_EQ(ParseJson(outcome.out).at("token shards").at("state"), "skipped");
  wrong = arguments;
  wrong.insert(wrong.end(), {"--set", "model.width=-1"});
  const Outcome misconfigured = Run(wrong);
  EXPECT_EQ(misconfigured.code, 2);
  EXPECT_EQ(ParseJson(misconfigured.out).at("errors").size(), 1u);
  // Of four ranks on four hosts each has a host's memory to itself.
  const auto memory = [&](const Arguments& options) {
    Arguments all = arguments;
    all.insert(all.end(), options.begin(), options.end());
    return RunJson(all).at("memory").at("detail").get<std::string>();
  };
  const std::string together = memory({"--ranks", "4"});
  EXPECT_EQ(memory({"--ranks", "4", "--ranks-per-node", "4"}), together);
  EXPECT_EQ(memory({"--ranks", "4", "--ranks-per-node", "9"}), together);
  const std::string apart = memory({"--ranks", "4", "--ranks-per-node", "1"});
  EXPECT_NE(apart, together);
  const Json machine = RunJson({"doctor", "--json"});
  EXPECT_TRUE(machine.at("libraries").at("SentencePiece").is_string()) << machine;
  for (const char* peak : {"peak fp32", "peak bf16"}) {
    EXPECT_TRUE(machine.at("cpu").at(peak).is_string()) << machine;
  }
}

TEST_F(Tools, PreparationCountsOneAsOne) {
  ReplaceFileDurably(training_, "{\"text\": \"aa ba\"}\n{\"text\": 7}\n");
  const Outcome outcome = Run({"prepare", "--config", config_.string(), "--output",
                               (scratch_ / "one").string(), "--set", "data.max_bad_fraction=0.5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(": 1 document, "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" tokens in 1 shard (1 made, 0 kept); 1 bad record, 0 empty\n"),
            std::string::npos)
      << outcome.out;
}

// data.prepared=X uses the directory that `prepare --output X` makes.
TEST_F(Tools, PrepareThenTrainFindsThemMade) {
  const Path prepared = scratch_ / "elsewhere";
  const Arguments arguments{"prepare", "--config", config_.string(), "--output", prepared.string()};
  const Outcome first = Run(arguments), second = Run(arguments);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("200 documents"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("(1 made, 0 kept)"), std::string::npos) << first.out;
  EXPECT_EQ(second.out.find("(1 made"), std::string::npos) << second.out;
  const auto made_at = [&](const char* shard) {
    return std::filesystem::last_write_time(prepared / shard);
  };
  const auto training = made_at("train/train.jsonl.tokens");
  const auto validation = made_at("validation/validation.jsonl.tokens");
  Train("run", {"train.steps=6", "data.prepared=" + prepared.string()});
  EXPECT_EQ(made_at("train/train.jsonl.tokens"), training);
  EXPECT_EQ(made_at("validation/validation.jsonl.tokens"), validation);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "prepared"));

  const Outcome nowhere = Run({"prepare", "--config", config_.string(), "--set", "data.prepared="});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(nowhere.Says("nothing says where the token shards go")) << nowhere.err;
}

// How it begins, and where no terminal is, one progress line for the end of a short run.
TEST_F(Tools, TrainingSaysWhatItDoes) {
  const Outcome outcome = Run(Pretrain("run", {"train.steps=6"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& part :
       {"info run " + Directory("run").string() + ": 6 steps of 8 rows",
        std::string("info model: 2+2 layers of width 32, random + dot_product; "),
        std::string("info data: 200 documents, "),
        std::string("info machine: 1 rank on 1 host, 1 thread each, FP32 on cpu")}) {
    EXPECT_TRUE(outcome.Says(part)) << part << "\n" << outcome.err;
  }
  // Of the processor's precisions `check` says the same.
  std::vector<std::string> checks = Pretrain("run", {});
  checks.front() = "check";
  const Outcome check = Run(checks);
  EXPECT_EQ(outcome.Says("on cpu, which is faster with train.precision=BF16\n"),
            check.out.find("FP32; BF16 would be faster on this processor") != std::string::npos)
      << check.out << outcome.err;
  int progress = 0;
  for (const std::string& line : Split(outcome.err, '\n')) progress += line.starts_with("ETA ");
  EXPECT_EQ(progress, 1) << outcome.err;
  EXPECT_FALSE(outcome.Says("\033")) << outcome.err;
  EXPECT_TRUE(Run(Pretrain("run", {"train.steps=8"})).Says(": 6 of 8 steps are done"));
}

// FLOPs of the plan over seconds over one peak for the whole run.
TEST_F(Tools, UtilizationIsOfThePlansArithmetic) {
  const auto peak_of = [](const Json& line, double flops) {
    return flops / (line.at("seconds").get<double>() * line.at("mfu").get<double>());
  };
  const auto plan = [&](int ranks) {
    return RunJson({"plan", "--json", "--config", config_.string(), "--set", "train.directory=x",
                    "--set", "train.micro_batch_size=2", "--ranks", std::to_string(ranks)})
        .at("flops_per_step")
        .get<double>();
  };
  for (const int ranks : {1, 2}) {
    if (ranks > 1 && MpirunPath().empty()) break;
    const std::string name = "ranks-" + std::to_string(ranks);
    Train(name, {"train.steps=6", "train.micro_batch_size=2"}, {.ranks = ranks});
    const Json first = Metrics(name)[1];
    ASSERT_TRUE(first.at("mfu").is_number()) << first << " (has this processor no FMA?)";
    for (const Json& line : Metrics(name)) {
      if (!line.contains("mfu")) continue;
      EXPECT_NEAR(peak_of(line, plan(ranks)), peak_of(first, plan(ranks)), 1);
      EXPECT_GT(line.at("mfu"), 0);
      EXPECT_LT(line.at("mfu"), 1);
    }
  }
  EXPECT_EQ(plan(1), plan(2));
  // `bench` steps one of the four micro-batches.
  const Json result = Bench({"--ops", "--set", "train.micro_batch_size=2"});
  EXPECT_EQ(4 * result.at("flops").get<double>(), plan(1));
  EXPECT_GT(result.at("mfu"), 0);
  EXPECT_GT(result.at("phases").at("update"), 0);
}

// Every op that is timed is one of the plan, with its calls and its work.
TEST_F(Tools, TimedOpsAreThePlans) {
  const auto key = [](const Json& op) {
    return std::pair<std::string, std::string>(op.at("op"), op.value("operands", ""));
  };
  std::map<std::pair<std::string, std::string>, Json> planned;
  const Json plan = RunJson({"plan", "--json", "--ops", "--config", config_.string()});
  for (const Json& op : plan.at("ops")) planned[key(op)] = op;
  std::map<std::string, double> calls;
  const Json by_operands = Bench({"--ops", "--by-operands"}).at("ops");
  for (const Json& op : by_operands) {
    const auto found = planned.find(key(op));
    ASSERT_NE(found, planned.end()) << op;
    const double count = op.at("calls");
    EXPECT_EQ(count, found->second.at("calls")) << op;
    EXPECT_EQ(op.at("flops"), count * found->second.at("flops_per_call").get<double>()) << op;
    EXPECT_EQ(op.at("bytes"), count * found->second.at("bytes_per_call").get<double>()) << op;
    EXPECT_GT(op.at("seconds"), 0) << op;
    calls[op.at("op")] += count;
  }
  const Json by_name = Bench({"--ops"}).at("ops");
  EXPECT_EQ(by_name.size(), calls.size());
  EXPECT_LT(by_name.size(), by_operands.size());
  for (const Json& op : by_name) EXPECT_EQ(op.at("calls"), calls[op.at("op")]) << op;
}

TEST_F(Tools, ABenchmarkWithoutStepsHasNoTimes) {
  const Outcome outcome = Run({"bench", "--wait-for-line", config_.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = ParseJson(Split(outcome.out, '\n')[1]);
  for (const char* time : {"median", "best", "mfu"}) EXPECT_TRUE(result.at(time).is_null()) << time;
}

// The examples after the last whole batch are never used.
TEST_F(Tools, EvalReadsAsMuchAsItIsTold) {
  Train("run", {"train.steps=4"});
  const std::string run = Directory("run").string(), two = "evaluation.batch_size=2";
  const auto judged = [&](const std::string& batches) {
    return RunJson({"eval", "--json", run, "--set", two, "--set", "evaluation.batches=" + batches});
  };
  const Json part = judged("3"), all = judged("0");
  EXPECT_EQ(part.at("examples"), 6);
  const int64_t read = all.at("examples"), unread = all.at("left_out_examples");
  EXPECT_EQ(read, 2 * all.at("batches").get<int64_t>());
  EXPECT_EQ(judged("1000000").at("batches"), all.at("batches"));
  EXPECT_TRUE(Run({"eval", run, "--set", two, "--set", "evaluation.batches=3"})
                  .out.ends_with(fmt::format(
                      "\n6 examples in 3 batches; {} more are left out (evaluation.batches)\n",
                      read + unread - 6)));
}

class ToolsOfRanks : public Tools {};

TEST_F(ToolsOfRanks, EvalIsTheSameWithTwo) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("run");
  const Arguments arguments{"eval",
                            "--checkpoint",
                            Directory("run").string(),
                            "--json",
                            "--set",
                            "evaluation.batch_size=5",
                            "--set",
                            "evaluation.batches=3"};
  // The second outside its run directory.
  Arguments moved = arguments;
  moved[2] = scratch_ / "moved";
  std::filesystem::copy(CheckpointPath("run", 20), moved[2]);
  moved.insert(moved.end(), {"--set", "data.prepared=" + (scratch_ / "prepared").string()});
  const Json one = RunJson(arguments), two = RunJson(moved, {.ranks = 2});
  const double value = one.at("log_perplexity");
  EXPECT_NEAR(value, two.at("log_perplexity").get<double>(), 1e-9 * value);
  EXPECT_EQ(one.at("label_checksum"), two.at("label_checksum"));
  EXPECT_EQ(one.at("tokens"), two.at("tokens"));
}

}  // namespace
}  // namespace syntra
