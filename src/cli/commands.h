// The subcommands, one line each, in the order of --help.
#pragma once

#include "cli/command.h"

namespace syntra {

Action SetUpPretrain(CLI::App& app);
Action SetUpPrepare(CLI::App& app);
Action SetUpEval(CLI::App& app);
Action SetUpGenerate(CLI::App& app);
Action SetUpReport(CLI::App& app);
Action SetUpPlan(CLI::App& app);
Action SetUpCheck(CLI::App& app);
Action SetUpInspect(CLI::App& app);
Action SetUpTokenizer(CLI::App& app);
Action SetUpConfig(CLI::App& app);
Action SetUpDoctor(CLI::App& app);
Action SetUpCompletion(CLI::App& app);
Action SetUpBench(CLI::App& app);

inline constexpr Command kCommands[] = {
    {"pretrain", "Train a model by span corruption, or continue a run", SetUpPretrain},
    {"prepare", "Turn corpus files into token shards", SetUpPrepare},
    {"eval", "Log-perplexity of a checkpoint on the validation split", SetUpEval},
    {"generate", "Fill the gaps <extra_id_N> of input lines", SetUpGenerate},
    {"report", "Show runs at a glance: steps, log-perplexity, its curve, throughput", SetUpReport},
    {"plan", "Parameters, arithmetic and memory of a configuration", SetUpPlan},
    {"check", "Everything that can fail, before it costs anything", SetUpCheck},
    {"inspect", "Look into data, checkpoints and memory", SetUpInspect},
    {"tokenizer", "Encode and decode lines with a SentencePiece model", SetUpTokenizer},
    {"config", "Show, compare and explain configurations", SetUpConfig},
    {"doctor", "Report this machine and what the program finds on it", SetUpDoctor},
    {"completion", "Print a shell's completion script", SetUpCompletion},
    {"bench", "Time the training step of a configuration, op by op", SetUpBench},
};

}  // namespace syntra
