// SPDX-License-Identifier: Apache-2.0
// The subcommands, one line each, in the order of --help.
#pragma once

#include "cli/command.h"

namespace syntra {

Action SetUpPretrain(CLI::App& app);
Action SetUpFinetune(CLI::App& app);
Action SetUpCompare(CLI::App& app);
Action SetUpPrepare(CLI::App& app);
Action SetUpEval(CLI::App& app);
Action SetUpGenerate(CLI::App& app);
Action SetUpScore(CLI::App& app);
Action SetUpMetrics(CLI::App& app);
Action SetUpConvert(CLI::App& app);
Action SetUpReport(CLI::App& app);
Action SetUpWatch(CLI::App& app);
Action SetUpPlan(CLI::App& app);
Action SetUpCheck(CLI::App& app);
Action SetUpSlurm(CLI::App& app);
Action SetUpInspect(CLI::App& app);
Action SetUpTokenizer(CLI::App& app);
Action SetUpConfig(CLI::App& app);
Action SetUpDoctor(CLI::App& app);
Action SetUpCompletion(CLI::App& app);
Action SetUpManual(CLI::App& app);
Action SetUpBench(CLI::App& app);

inline constexpr Command kCommands[] = {
    {"pretrain",
     "Train a model on corpora, or continue the run in train.directory; gives checkpoints and "
     "metrics",
     SetUpPretrain, "my.textproto --set train.steps=1000", "train", RunBy::kAllRanks},
    {"finetune",
     "Train a pretrained model on tasks, such as GLUE's; gives the best checkpoint and the metrics "
     "of each task",
     SetUpFinetune, "configs/finetune/cola.textproto --init-from runs/a --set data.directory=glue",
     "", RunBy::kAllRanks},
    {"compare",
     "Train the same recipe with several mixers, on a corpus or on tasks; gives a table of "
     "log-perplexity or the tasks' metrics, speed and sizes, and a page with their curves",
     SetUpCompare, "configs/quickstart.textproto --mixers configs/mixers/quickstart.txt", "",
     RunBy::kAllRanks},
    {"prepare", "Turn corpus files into token shards ahead of time", SetUpPrepare,
     "my.textproto --output prepared", "preprocess", RunBy::kAllRanks},
    {"eval",
     "Evaluate a checkpoint on the validation split: log-perplexity, or the metrics of its tasks",
     SetUpEval, "--checkpoint runs/a", "evaluate test", RunBy::kAllRanks},
    {"generate",
     "Fill the gaps <extra_id_0>, <extra_id_1>... in lines from standard input, continue them "
     "(language models), or label them (classifiers)",
     SetUpGenerate, "--checkpoint runs/a < lines.txt",
     "predict infer decode sample translate serve", RunBy::kAllRanks},
    {"score",
     "Print log-probabilities: each line is an input and, separated by tabs, one or more targets",
     SetUpScore, "--checkpoint runs/a < pairs.tsv", "", RunBy::kAllRanks},
    {"metrics",
     "Judge the answers of any program by the metrics of tasks: BLEU, ROUGE, F1, accuracy and "
     "others",
     SetUpMetrics, "bleu_13a --answers answers.txt --references references.txt", "bleu rouge"},
    {"convert", "Turn a model into another format: Hugging Face T5, safetensors, or a checkpoint",
     SetUpConvert, "--input runs/a --output exported --to huggingface", "export import"},
    {"report",
     "Show runs at a glance: steps, log-perplexity and its curve, throughput, goodput; as text, a "
     "web page or pictures",
     SetUpReport, "runs/a runs/b --html runs.html"},
    {"watch", "Follow a run, redrawn until q or ^C: its curve, its speed, its ranks, its log",
     SetUpWatch, "runs/a"},
    {"plan", "Print a run's parameters, FLOPs, memory and an estimate of its time; reads no data",
     SetUpPlan, "my.textproto --ranks 2", "estimate", RunBy::kAllRanks},
    {"check", "Check everything that could stop a run, before it starts", SetUpCheck,
     "my.textproto", "validate"},
    {"slurm",
     "Print a Slurm script whose job saves, is requeued and continues by itself; submits nothing",
     SetUpSlurm, "my.textproto --nodes 2 --time 12:00:00 > my.sbatch"},
    {"inspect",
     "Show training examples, what a model reads, the tensors of a checkpoint, what takes memory, "
     "or each rank's share of the parameters",
     SetUpInspect},
    {"tokenizer", "Train a SentencePiece model; turn lines into token ids and back",
     SetUpTokenizer},
    {"config", "Show the merged configuration, compare two configurations, explain fields",
     SetUpConfig},
    {"doctor", "Describe this machine and what the program finds on it, for bug reports",
     SetUpDoctor, nullptr, "", RunBy::kAllRanks},
    {"completion", "Print a script that lets a shell complete commands, fields and values",
     SetUpCompletion, "bash >> ~/.bashrc"},
    {"manual", "Print the manual page of a command", SetUpManual, "pretrain | man -l -"},
    {"bench", "Time training steps on random tokens; reads no data", SetUpBench,
     "my.textproto --ops"},
};

}  // namespace syntra
