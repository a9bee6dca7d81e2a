// SPDX-License-Identifier: Apache-2.0
// Runs the program and checks exit codes and messages.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "tests/base/scratch.h"
#include "tests/cli/shell.h"

namespace syntra {
namespace {

const std::string kPresets = SYNTRA_SOURCE_DIR "/configs/";

TEST(Cli, HelpAndVersion) {
  const Outcome help = Syntra("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* name : {"config", "doctor", "completion"}) EXPECT_TRUE(Has(help.out, name));
  EXPECT_TRUE(
      Has(Syntra("config show --help").out, "Example:\n  syntra config show my.textproto --full"));
  EXPECT_EQ(Syntra("config show --help").code, 0);
  const Outcome version = Syntra("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("syntra 0.")) << version.out;
}

// What can be given with its name or without is not said to be required twice.
TEST(Cli, HelpExplainsAnArgumentOnce) {
  const std::string help = Syntra("inspect checkpoint --help").out;
  EXPECT_TRUE(Has(help, "  checkpoint DIR REQUIRED ")) << help;
  EXPECT_TRUE(Has(help, "  --checkpoint DIR ")) << help;
  EXPECT_TRUE(Has(help, " The same as checkpoint above\n")) << help;
  EXPECT_FALSE(Has(help, "--checkpoint DIR REQUIRED")) << help;
  const std::string encode = Syntra("tokenizer encode --help").out;
  EXPECT_TRUE(Has(encode, "  --model,--tokenizer FILE    The same as model above\n")) << encode;
  EXPECT_TRUE(Has(encode, "Example:\n  syntra tokenizer encode pieces.model < text > ids"));
}

TEST(Cli, UsageErrorsSuggestAndExitWith2) {
  struct Case {
    const char* arguments;
    const char* message;
  };
  const Case cases[] = {
      {"", "error: syntra needs a command: pretrain, "},
      {"confg show", "error: syntra has no command \"confg\"; did you mean \"config\"?"},
      {"config shw", "error: syntra config has no command \"shw\"; did you mean \"show\"?"},
      {"config", "error: syntra config needs a command: show, diff, explain"},
      {"--versoin", "error: syntra has no option \"--versoin\"; did you mean \"--version\"?"},
      {"config show --confg=x",
       "error: syntra config show has no option \"--confg\"; did you mean \"--config\"?"},
      {"''", "error: syntra has no command \"\"\n"},
      {"config show -- --foo",
       "error: file: must have a value before --foo; if --foo is its name, "
       "write ./--foo\n"},
      {"config show", "error: no configuration; give a file, e.g. my.textproto"},
      {"config show --config a --config", "error: --config needs a value: Configuration file"},
      {"--set train.steps=5 config show",
       "error: --set must come after the command: syntra config show --set ..."},
      {"config show --train.steps=5",
       "error: syntra config show has no option \"--train.steps\"; to set a field of the "
       "configuration: --set train.steps=5"},
      {"pretrain my.textproto --lr 0.1",
       "error: syntra pretrain has no option \"--lr\"; to set a field of the configuration: --set "
       "optimizer.schedule.rate=..."},
      {"pretrain my.textproto --steps 5",
       "error: syntra pretrain has no option \"--steps\"; to set a field of the configuration: "
       "--set train.steps=...\n"},
      {"pretrain my.textproto --nothing 0.1",
       "error: syntra pretrain has no option \"--nothing\"\n"},
      // The name of a field before a name that is only like it; both where it is very like it.
      {"finetune my.textproto --steps 5",
       "error: syntra finetune has no option \"--steps\"; to set a field of the configuration: "
       "--set train.steps=...\n"},
      {"finetune my.textproto --seed 5",
       "error: syntra finetune has no option \"--seed\"; did you mean \"--seeds\"? Or, to set a "
       "field of the configuration: --set train.seed=..."},
      {"pretrain my.textproto --epochs 5", "--set train.steps=... (steps, not epochs)\n"},
      {"pretrain my.textproto --resume runs/a",
       "--set checkpoint.initial=... (for a new run; the same command again continues one)\n"},
      {"metrics --metric bleu",
       "error: syntra metrics has no option \"--metric\"; write what it names without "
       "\"--metric\""},
      {"help", "error: syntra has no command \"help\"; did you mean \"--help\"?"},
      {"help pretrain",
       "error: syntra pretrain has no argument \"help\"; did you mean \"--help\"?"},
      {"version", "error: syntra has no command \"version\"; did you mean \"--version\"?"},
      {"config diff my.textproto",
       "error: syntra config diff needs b: Second configuration file, or run directory\n"},
      {"eval", "error: syntra eval needs --checkpoint: Checkpoint, or a directory of checkpoints"},
      {"train my.textproto", "error: syntra has no command \"train\"; did you mean \"pretrain\"?"},
      {"preprocess", "error: syntra has no command \"preprocess\"; did you mean \"prepare\"?"},
      {"checkpoints runs/a",
       "error: syntra has no command \"checkpoints\"; did you mean \"inspect checkpoints\"?"},
      {"show x", "error: syntra has no command \"show\"; did you mean \"config show\"?"},
      {"config show train.steps=5",
       "error: train.steps=5 is not a file; to set a field, write --set train.steps=5\n"},
      // What is to be written is quoted for the shell.
      {"config show \"data.train=['a b']\"", "write --set 'data.train=['\\''a b'\\'']'\n"},
      {"config show '--data.train=a b'", "configuration: --set 'data.train=a b'\n"},
      {"config show --set train.steps = 5", "error: \"=\" stands alone; write --set FIELD=VALUE"},
      {"doctor now", "error: syntra doctor has no argument \"now\""},
      {"completion csh", "error: shell: csh not in {bash,zsh,fish}"},
      {"report runs/a --json --html x", "error: --json excludes --html"},
      // Not the file of that name, not octal, not nothing.
      {"report run --html --json", "error: --html: must have a value before --json; if --json is"},
      {"plan x --ranks 010", "error: --ranks: \"010\" is not a decimal number"},
      {"plan x --ranks abc", "error: --ranks: \"abc\" is not a decimal number"},
      {"plan x --ranks 0", "error: --ranks: Value 0 not in range"},
      {"plan x --ranks 2.0", "error: --ranks: \"2.0\" is not a whole number\n"},
      {"plan x --ranks 1e2", "error: --ranks: \"1e2\" is not a whole number\n"},
      {"plan x --ranks", "error: --ranks needs a value: Ranks that share the batch\n"},
      {"plan x --ranks 2 --ranks 3", "error: --ranks is given 2 times; give it once\n"},
      {"eval runs/a --checkpoint runs/b", "error: --checkpoint is given 2 times; give it once\n"},
      {"tokenizer train x --coverage nan", "error: --coverage: \"nan\" is not a decimal number"},
      {"finetune", "error: no configuration; give a file, e.g. my.textproto"},
      {"compare --mixers x", "error: no configuration; give a file, e.g. my.textproto"},
  };
  for (const Case& each : cases) {
    const Outcome outcome = Syntra(each.arguments);
    EXPECT_EQ(outcome.code, 2) << each.arguments;
    EXPECT_TRUE(Has(outcome.err, each.message)) << each.arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << each.arguments;
  }
}

TEST(Cli, ANumberMayHaveAnyNumberOfDigits) {
  const Outcome outcome = RunShell("\"$syntra\" plan x --ranks $(printf '%0120000d' 0 | tr 0 1)");
  EXPECT_EQ(outcome.code, 2) << outcome.code;
  EXPECT_TRUE(Has(outcome.err, "error: --ranks: ")) << outcome.err.substr(0, 200);
}

// Two that write the same file at once would spoil it.
TEST(Cli, OneRankOfAJobDoesWhatOneProcessCanDo) {
  const std::string preset = kPresets + "quickstart.textproto";
  const std::string commands[] = {"config explain train.steps", "inspect memory " + preset,
                                  "plan --json " + preset,
                                  "tokenizer info " SYNTRA_SOURCE_DIR "/data/sample/spiece.model"};
  const std::pair<std::string, std::string> launchers[] = {
      {"mpirun", "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK="},
      {"srun", "SLURM_STEP_NUM_TASKS=3 SLURM_PROCID="}};
  for (const auto& [launcher, variables] : launchers) {
    for (const std::string& command : commands) {
      const Outcome first = RunShell(variables + "0 \"$syntra\" " + command);
      EXPECT_EQ(first.code, 0) << first.err;
      EXPECT_NE(first.out, "") << command;
      EXPECT_EQ(std::ranges::count(first.err, '\n'), 1) << first.err;
      EXPECT_TRUE(Has(first.err, " works in one process; " + launcher +
                                     " started 3, and the others end at once"))
          << first.err;
      EXPECT_EQ(Has(first.err, "start it with srun --ntasks=1"), launcher == "srun") << first.err;
      const Outcome second = RunShell(variables + "1 \"$syntra\" " + command);
      EXPECT_EQ(second.code, 0) << command;
      EXPECT_EQ(second.out + second.err, "") << command;
    }
    // Each describes the machine that it is on.
    EXPECT_NE(RunShell(variables + "1 \"$syntra\" doctor").out, "") << launcher;
  }
  EXPECT_EQ(Syntra(commands[0]).err, "");
}

// What every rank finds is said once.
TEST(Cli, RankZeroSaysWhatIsWrongWithACommandLine) {
  const std::string mpirun = "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=",
                    srun = "SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=",
                    train = "\"$syntra\" pretrain " + kPresets + "quickstart.textproto",
                    wrong = train + " --nothing",
                    message = "error: syntra pretrain has no option \"--nothing\"\n";
  for (const std::string& launcher : {mpirun, srun}) {
    const Outcome first = RunShell(launcher + "0 " + wrong);
    EXPECT_EQ(first.code, 2);
    EXPECT_TRUE(first.err.starts_with(message)) << first.err;
    for (const char* question : {"--help", "--version", "plan --help"}) {
      const std::string asks = "\"$syntra\" " + std::string(question);
      EXPECT_NE(RunShell(launcher + "0 " + asks).out, "");
      const Outcome second = RunShell(launcher + "1 " + asks);
      EXPECT_EQ(second.code, 0);
      EXPECT_EQ(second.out + second.err, "");
    }
  }
  // mpirun ends the other ranks. One that it does not end has a command line of its own.
  const Outcome own = RunShell(mpirun + "1 " + wrong);
  EXPECT_EQ(own.code, 2);
  EXPECT_TRUE(own.err.starts_with("rank 1: " + message)) << own.err;
  // srun ends none, and its tasks have one command line.
  EXPECT_TRUE(Has(RunShell(srun + "0 " + train).err, "srun started 3 tasks without PMIx"));
  for (const std::string& command : {wrong, train}) {
    const Outcome other = RunShell(srun + "1 " + command);
    EXPECT_EQ(other.code, 2);
    EXPECT_EQ(other.out + other.err, "");
  }
}

TEST(Cli, ConfigErrorsAreListedOnce) {
  const Outcome outcome = Syntra("config show --config " + kPresets +
                                 "t5_v1_0_small.textproto --set model.witdh=3 --set train.steps=0");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.err,
      "error: --set model.witdh=3: model has no field \"witdh\"; did you mean \"width\"?\n"
      "error: --set train.steps=0: train.steps: 0 is not allowed; must be greater than 0, at most "
      "1000000000000\n"
      "2 errors\n");
  EXPECT_EQ(outcome.out, "");
  const Outcome missing = Syntra("config diff no-such-file no-other");
  EXPECT_EQ(missing.code, 2);
  EXPECT_TRUE(Has(missing.err, "error: cannot read no-such-file: No such file")) << missing.err;
}

TEST(Cli, ShowReadsBack) {
  const std::string preset = kPresets + "paper/c4_syn_rv.textproto";
  const Outcome shown =
      Syntra("config show --full --config " + preset + " --set 'data.train=[\"a\", \"b\"]'");
  ASSERT_EQ(shown.code, 0) << shown.err;
  const std::string file = ScratchDirectory("shown") / "file";
  ReplaceFileDurably(file, shown.out);
  const Outcome outcome = Syntra("config diff " + preset + " '" + file + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "data.train[0]: (none) -> \"a\"\ndata.train[1]: (none) -> \"b\"\n");
}

TEST(Cli, ShowIsMinimalUnlessAskedForAll) {
  const std::string arguments = "config show --config " + kPresets + "t5_v1_0_small.textproto";
  const Outcome minimal = Syntra(arguments), full = Syntra(arguments + " --full");
  EXPECT_TRUE(minimal.out.starts_with("# digest "));
  EXPECT_FALSE(Has(minimal.out, "width: 512"));
  EXPECT_TRUE(Has(full.out, "width: 512"));
  EXPECT_EQ(minimal.out.substr(0, 42), full.out.substr(0, 42));
}

TEST(Cli, Explain) {
  const Outcome outcome = Syntra("config explain model.dropout");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(Has(outcome.out, "at most 0.99")) << outcome.out;
  EXPECT_EQ(Syntra("config explain model.dropuot").code, 2);
  EXPECT_TRUE(Syntra("config explain").out.starts_with("model ")) << Syntra("config explain").out;
}

TEST(Cli, DoctorAsTextAndJson) {
  const Outcome text = RunShell("ulimit -S -n 1024; \"$syntra\" doctor");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(Has(text.out, "oneDNN")) << text.out;
  EXPECT_FALSE(Has(text.out, "open files are allowed")) << text.out;
  const Outcome json = Syntra("doctor --json");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto report = ParseJson(json.out);
  for (const char* section : {"program", "cpu", "topology", "memory", "libraries", "accelerators",
                              "limits", "system", "disk", "warnings"}) {
    EXPECT_TRUE(report.contains(section)) << section;
  }
  EXPECT_EQ(report["accelerators"]["this build found"], SYNTRA_CUDA_SUMMARY);
  // The first of them, or why there is none.
  EXPECT_TRUE(report["accelerators"].contains("GPU 0") || report["accelerators"].contains("GPU"));
}

// In /proc no file can be made, so its disk is full.
TEST(Cli, DoctorWarnsOfWhatARunWillLack) {
  const Outcome outcome = RunShell(
      "ulimit -S -n 1023; ulimit -S -f 2048; cd /proc; OMP_NUM_THREADS=5000 \"$syntra\" doctor");
  for (const char* warning :
       {"5000 threads share", "only 1023 open files are allowed; raise it with ulimit -n",
        "files may not grow beyond 2.0 MiB; checkpoints are larger: ulimit -f unlimited",
        "less than 1 GiB is free in .\n"}) {
    EXPECT_TRUE(Has(outcome.out, warning)) << warning << "\n" << outcome.out;
  }
}

TEST(Cli, FilesWithoutConfigComeInTheirOrder) {
  const Path directory = ScratchDirectory("layer");
  const auto file_of = [&](const char* width) {
    const Path path = directory / width;
    ReplaceFileDurably(path, fmt::format("model {{ width: {} }}", width));
    return "'" + path.string() + "'";
  };
  const auto width_of = [&](const std::string& files) {
    const Outcome outcome = Syntra("config show " + files);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out.substr(outcome.out.find('\n') + 1);
  };
  const std::string a = file_of("16"), b = file_of("32"), c = file_of("64");
  EXPECT_EQ(width_of(a), "model {\n  width: 16\n}\n");
  EXPECT_EQ(width_of(a + " " + b), width_of("--config " + a + " --config " + b));
  EXPECT_EQ(width_of(a + " --config " + b + " " + c), width_of(c));
  EXPECT_EQ(width_of("--config " + c + " " + a + " --config " + b), width_of(b));
  EXPECT_EQ(width_of(a + " --set model.width=64 " + b), width_of(c));
  // A file, not a field that was meant to be set.
  const Path named_like_a_field = directory / "model.width=8";
  ReplaceFileDurably(named_like_a_field, "model { width: 64 }");
  EXPECT_EQ(width_of("'" + named_like_a_field.string() + "'"), width_of(c));
}

TEST(Cli, ARunDirectoryStandsForItsConfiguration) {
  const Path scratch = ScratchDirectory("runs"), run = scratch / "run", other = scratch / "other";
  CreateDirectories(run);
  ReplaceFileDurably(run / "config.textproto", "model { width: 32 }");
  ReplaceFileDurably(other, "model { width: 64 }");
  const Outcome shown = Syntra(fmt::format("config show '{}'", run.string()));
  EXPECT_TRUE(Has(shown.out, "width: 32")) << shown.err;
  const Outcome differences =
      Syntra(fmt::format("config diff '{}' '{}'", run.string(), other.string()));
  EXPECT_EQ(differences.out, "model.width: 32 -> 64\n") << differences.err;
  const Outcome plan = Syntra(fmt::format(
      "plan --json --nodes 1 --model '{}/' {}clusters/h200.textproto --set train.precision=BF16",
      run.string(), kPresets));
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_TRUE(Has(plan.out, "\"model\":\"run\"")) << plan.out;
  for (const char* command : {"config show '{}'", "config diff '{}' x"}) {
    const Outcome none = Syntra(fmt::format(fmt::runtime(command), scratch.string()));
    EXPECT_EQ(none.code, 2);
    EXPECT_TRUE(Has(none.err, "is not the directory of a run: it has no config.textproto"))
        << none.err;
  }
}

// A list would swallow the arguments that follow, so help must not promise one.
TEST(Cli, OptionsThatMayBeRepeatedTakeOneValueEach) {
  for (const char* command : {"metrics", "pretrain", "eval", "inspect attention", "plan"}) {
    const Outcome help = Syntra(std::string(command) + " --help");
    EXPECT_TRUE(Has(help.out, "; may be repeated")) << command;
    for (const std::string& line : Split(help.out, '\n')) {
      EXPECT_FALSE(line.starts_with("  --") && Has(line.substr(0, 28), " ...")) << line;
    }
  }
}

TEST(Cli, ErrorsAreJsonWhereJsonWasAskedFor) {
  const std::string file = ScratchDirectory("wrong") / "file";
  ReplaceFileDurably(file, "model {\n  d_model: 5\n}\n");
  const Json in_file = {{"file", file},
                        {"line", 2},
                        {"column", 3},
                        {"message", "model has no field \"d_model\"; did you mean \"width\"?"}};
  const Json in_override = {{"file", nullptr},
                            {"line", nullptr},
                            {"column", nullptr},
                            {"message",
                             "--set train.steps=0: train.steps: 0 is not allowed; must be greater "
                             "than 0, at most 1000000000000"}};
  for (const char* command : {"check", "plan", "inspect memory", "inspect data", "bench"}) {
    const Outcome outcome =
        Syntra(std::string(command) + " --json '" + file + "' --set train.steps=0");
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.err, "") << command;
    const Json errors = ParseJson(outcome.out).at("errors");
    for (const Json& error : {in_file, in_override}) {
      EXPECT_EQ(std::ranges::count(errors, error), 1) << command << errors << error;
    }
  }
  const Outcome missing = Syntra("inspect checkpoint --json no-such-directory");
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(ParseJson(missing.out).at("errors").size(), 1u) << missing.out;
}

TEST(Cli, PlanEstimatesTheTime) {
  const std::string arguments = "plan " + kPresets + "quickstart.textproto --set train.device=CPU";
  const Outcome json = Syntra(arguments + " --json");
  ASSERT_EQ(json.code, 0) << json.err;
  const Json plan = ParseJson(json.out);
  const Outcome text = Syntra(arguments + " --ranks 2");
  EXPECT_EQ(text.err, "");
  if (plan.at("peak_flops").is_null()) {
    EXPECT_TRUE(Has(text.out, "no estimate")) << text.out;
    GTEST_SKIP() << "the peak of this processor is not known";
  }
  const double share = plan.at("assumed_share_of_peak"), peak = plan.at("peak_flops");
  EXPECT_DOUBLE_EQ(plan.at("estimated_step_seconds").get<double>(),
                   plan.at("flops_per_step").get<double>() / (share * peak));
  const std::string assumed = fmt::format("estimates: {:.0f} % of the", 100 * share);
  for (const char* part : {"time of a step", "time of the run", "with 2 ranks", " steps of ",
                           "each on a machine like this one", assumed.c_str(), "syntra bench"}) {
    EXPECT_TRUE(Has(text.out, part)) << part << "\n" << text.out;
  }
}

TEST(Cli, PlanTellsWhetherTheRunFits) {
  const std::string arguments = "plan " + kPresets + "quickstart.textproto --set train.device=CPU";
  const Outcome small = Syntra(arguments + " --set train.batch_size=1");
  EXPECT_TRUE(Has(small.out, "\nfits: needs ")) << small.out << small.err;
  // In one micro-batch; a smaller one is named.
  const std::string large = arguments + " --set train.batch_size=1048576";
  EXPECT_TRUE(Has(Syntra(large).out, "\ndoes not fit: the run needs ")) << Syntra(large).out;
  EXPECT_TRUE(Has(Syntra(large).out, " fits\n"));
  EXPECT_EQ(ParseJson(Syntra(large + " --json").out).at("fits"), false);
  EXPECT_EQ(ParseJson(Syntra(arguments + " --json").out).at("fits"), true);
}

// From what costs least to what takes least memory; the rest of the plan is of the one that is set.
TEST(Cli, PlanTellsWhatRecomputationCosts) {
  const std::string arguments = "plan " + kPresets + "t5_v1_0_small.textproto" +
                                " --set train.batch_size=2 --set train.device=CPU" +
                                " --set train.recompute=FEED_FORWARD";
  const Json plan = ParseJson(Syntra(arguments + " --json").out);
  const Json& choices = plan.at("recompute_choices");
  ASSERT_EQ(choices.size(), 3u);
  for (size_t i = 1; i < choices.size(); ++i) {
    const auto more = [&](const char* what, size_t a, size_t b) {
      return choices[a].at(what).get<double>() > choices[b].at(what).get<double>();
    };
    EXPECT_TRUE(more("activation_bytes", i - 1, i)) << choices;
    EXPECT_TRUE(more("total_bytes", i - 1, i)) << choices;
    EXPECT_TRUE(more("added_flops_per_step", i, i - 1)) << choices;
  }
  EXPECT_EQ(choices[1].at("activation_bytes"), plan.at("activation_bytes"));
  EXPECT_EQ(choices[1].at("total_bytes"), plan.at("total_bytes"));
  EXPECT_TRUE(Has(Syntra(arguments).out, "FEED_FORWARD (set)"));
}

TEST(Cli, PlanSaysNothingOfKernels) {
  for (const char* gate : {"SIGMOID", "SOFTMAX"}) {
    const Outcome outcome = Syntra("plan " + kPresets + "paper/c4_syn_rv.textproto --set " +
                                   "model.mixer.attention.gate=" + gate +
                                   " --set train.batch_size=1 --set train.device=CPU");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_FALSE(Has(outcome.out, "kernel")) << outcome.out;
  }
}

TEST(Cli, AbsurdSizesAreRefusedAtOnce) {
  for (const char* sizes :
       {"--set model.cross_attention.heads=65536 --set model.cross_attention.head_size=65536",
        "--set model.width=2147483647 --set model.vocabulary_size=2147483646",
        "--set model.encoder_layers=10000", "--set train.batch_size=2147483647"}) {
    for (const char* command : {"plan ", "check "}) {
      const Outcome outcome = Syntra(command + kPresets + "quickstart.textproto " + sizes);
      EXPECT_EQ(outcome.code, 2) << command << sizes << outcome.err;
      EXPECT_TRUE(Has(outcome.err, "is not allowed; must be greater than 0, at most"))
          << outcome.err;
    }
  }
}

TEST(Cli, FullDiskIsAnError) {
  const Outcome outcome = RunShell("\"$syntra\" doctor > /dev/full");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(Has(outcome.err, "error: cannot write to standard output")) << outcome.err;
  // More than a buffer, so that printing fails and not only its end.
  const Outcome large = RunShell("\"$syntra\" completion bash > /dev/full");
  EXPECT_EQ(large.code, 4);
  EXPECT_EQ(large.err, "error: cannot write to standard output: No space left on device\n");
  const Outcome limited = RunShell(
      "ulimit -f 0; \"$syntra\" completion bash > out.$$; code=$?; "
      "rm -f out.$$; exit $code");
  EXPECT_EQ(limited.code, 4);
}

TEST(Cli, ErrorsKeepTheirCodeWhereNobodyHears) {
  EXPECT_EQ(RunShell("\"$syntra\" nonsense 2>/dev/full").code, 2);
  EXPECT_EQ(RunShell("\"$syntra\" nonsense 2>&-").code, 2);
  EXPECT_EQ(
      RunShell("{ sleep 0.1; \"$syntra\" nonsense; } 2>&1 | true; exit ${PIPESTATUS[0]}").code, 2);
}

// The convention of programs in pipes: SIGPIPE, of which the shell makes 141.
TEST(Cli, AReaderThatIsGoneEndsItQuietly) {
  const Outcome outcome =
      RunShell("{ sleep 0.1; \"$syntra\" completion bash; } | true; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(outcome.code, 141);
  EXPECT_EQ(outcome.err, "");
}

TEST(Cli, ClosedDescriptorsAreNoError) {
  EXPECT_EQ(RunShell("\"$syntra\" config explain model.dropout <&- >&- 2>&-").code, 0);
}

TEST(Cli, ErrorsCommandNoTerminal) {
  const Outcome outcome = RunShell("\"$syntra\" $'non\\x1b[2Jsense'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(Has(outcome.err, "\"non\\x1b[2Jsense\"")) << outcome.err;
  EXPECT_FALSE(Has(outcome.err, "\x1b")) << outcome.err;
}

}  // namespace
}  // namespace syntra
