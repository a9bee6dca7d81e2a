// SPDX-License-Identifier: Apache-2.0
// syntra tokenizer train: makes a model of a corpus. encode|decode|info: a line in, a line out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/arriving_lines.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/line_answers.h"
#include "cli/run_config.h"
#include "data/sentence_piece.h"
#include "data/tokenizer.h"
#include "data/tokenizer_training.h"
#include "data/training_data.h"
#include "tasks/task.h"

namespace syntra {
namespace {

struct TokenizerOptions {
  std::string model;
  int32_t extra_ids = 100;
};

std::shared_ptr<TokenizerOptions> AddTokenizerOptions(CLI::App& app) {
  auto options = std::make_shared<TokenizerOptions>();
  app.add_option("--model,--tokenizer,model", options->model, "SentencePiece model")
      ->required()
      ->type_name("FILE");
  app.add_option("--extra-ids", options->extra_ids,
                 "Number of sentinels added above the model's pieces")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  return options;
}

Tokenizer OpenNamed(const TokenizerOptions& options) {
  RequireExists(options.model);
  return Tokenizer(options.model, options.extra_ids);
}

// Prints the answer to each line of standard input, whose number it gets. Lines that come one by
// one are answered one by one.
void AnswerInputLines(
    const std::function<std::string(int64_t number, const std::string& line)>& answer) {
  constexpr double kHour = 3600;
  int64_t number = 0;
  for (ArrivingLines input(STDIN_FILENO); !input.ended(); FlushOutput()) {
    for (const std::string& line : input.Next(kHour)) fmt::print("{}\n", answer(++number, line));
  }
}

Action SetUpEncode(CLI::App& app) {
  const auto options = AddTokenizerOptions(app);
  const auto sentinels = std::make_shared<bool>(false);
  app.add_flag("--sentinels", *sentinels, "Read <extra_id_K> as a sentinel");
  return [options, sentinels] {
    const Tokenizer tokenizer = OpenNamed(*options);
    ExitCode code = ExitCode::kDone;
    AnswerInputLines([&](int64_t number, const std::string& line) -> std::string {
      if (const std::string fault = TextFault(line); !fault.empty()) {
        PrintLineError(LineError(number, fault));
        code = ExitCode::kData;
        return "";
      }
      const std::vector<int32_t> ids =
          *sentinels ? tokenizer.EncodeWithSentinels(line) : tokenizer.Encode(line);
      return fmt::format("{}", fmt::join(ids, " "));
    });
    return code;
  };
}

Action SetUpDecode(CLI::App& app) {
  const auto options = AddTokenizerOptions(app);
  return [options] {
    const Tokenizer tokenizer = OpenNamed(*options);
    AnswerInputLines([&](int64_t number, const std::string& line) {
      std::vector<int32_t> ids;
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        int64_t id = 0;
        if (!ParseInt64(word, &id) || id < 0 || id >= tokenizer.vocabulary_size()) {
          Fail(ExitCode::kData,
               "line {} of the input: \"{}\" is not a token id; those of {} are from 0 to {}",
               number, Printable(word, 40), options->model, tokenizer.vocabulary_size() - 1);
        }
        ids.push_back(static_cast<int32_t>(id));
      }
      return OneLine(tokenizer.Decode(ids));
    });
    return ExitCode::kDone;
  };
}

// A special piece's token and text.
std::string Special(const Tokenizer& tokenizer, int32_t id) {
  return id < 0 ? "none" : fmt::format("{} {}", id, tokenizer.PieceOf(id));
}

std::string Sentinels(const Tokenizer& tokenizer) {
  const int32_t count = tokenizer.extra_ids();
  if (count == 0) return "none";
  return fmt::format("{} ({} .. {})", count, tokenizer.SentinelId(count - 1),
                     tokenizer.SentinelId(0));
}

void PrintInfo(const Tokenizer& tokenizer) {
  const bool shifted = tokenizer.first_piece_id() > 0;
  fmt::print("{}\n", tokenizer.path().string());
  const auto print = [](const char* name, const std::string& value) {
    fmt::print("  {:16} {}\n", name, value);
  };
  print("pieces", fmt::format("{}", tokenizer.piece_count()));
  print("sentinels", Sentinels(tokenizer));
  print("vocabulary", fmt::format("{}", tokenizer.vocabulary_size()));
  print("piece to token", shifted ? "number + 1, since text or EOS can give piece 0"
                                  : "its number, since text cannot give piece 0");
  print("padding", shifted ? "0" : Special(tokenizer, 0));
  print("unknown", Special(tokenizer, tokenizer.unknown_id()));
  print("end (EOS)", Special(tokenizer, tokenizer.eos_id()));
  print("unused: begin", Special(tokenizer, tokenizer.bos_id()));
  if (tokenizer.own_pad_id() != 0) {
    print("unused: own pad", Special(tokenizer, tokenizer.own_pad_id()));
  }
  print("encoded by", tokenizer.HasOwnEncoder() ? "this program, as by SentencePiece 0.1.97"
                                                : "the SentencePiece library");
  print("SentencePiece", std::string(SentencePieceVersion()));
  print("xxh3-128", ToHex(tokenizer.digest()));
}

Action SetUpInfo(CLI::App& app) {
  const auto options = AddTokenizerOptions(app);
  return [options] {
    PrintInfo(OpenNamed(*options));
    return ExitCode::kDone;
  };
}

struct TrainOptions {
  std::string output;
  int64_t text_mib = 100;
  TokenizerTraining training;
};

// Where the model goes: a path at which nothing lies yet.
Path ChooseOutput(const TrainOptions& options, const DataConfig& data) {
  const Path output = options.output.empty() ? data.tokenizer() : options.output;
  if (output.empty()) {
    Fail(ExitCode::kConfig,
         "nothing says where the model goes; give --output FILE or data.tokenizer");
  }
  if (std::filesystem::exists(output)) {
    Fail(ExitCode::kConfig,
         "{} exists, and shards and checkpoints may depend on it; give another --output, or remove "
         "it",
         output.string());
  }
  // Before minutes are spent.
  RequirePlaceForFile(output);
  const Path directory = output.has_parent_path() ? output.parent_path() : Path(".");
  if (access(directory.c_str(), W_OK) != 0) {
    Fail(ExitCode::kResources, "cannot write into {}: {}", directory.string(),
         SystemErrorText(errno));
  }
  return output;
}

// Adds what the task's training examples read and answer, until the text has `most` bytes.
void AddExamples(const Task& task, const TaskFolder& folder, int64_t most, TokenizerText* text) {
  const TaskSplit* split = TrainingSplitOf(task.traits());
  if (!split) return;
  for (const TaskExample& example : ReadSplit(task, *split, folder)) {
    if (std::ssize(text->lines) >= most) return;
    text->Add(example.inputs);
    text->Add(example.targets);
  }
}

// Every task gives an equal part, as files of a corpus do.
TokenizerText TextOfTasks(const DataConfig& data, int64_t most_bytes) {
  const std::vector<std::unique_ptr<Task>> tasks = MakeTasks(data);
  TokenizerText text{.source = "the training examples of the tasks"};
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto part = static_cast<double>(i + 1) / static_cast<double>(tasks.size());
    const double most = part * static_cast<double>(most_bytes);
    AddExamples(*tasks[i], TaskFolderOf(data), static_cast<int64_t>(most), &text);
  }
  return text;
}

TokenizerText TextOf(const DataConfig& data, int64_t most_bytes) {
  if (data.task_size() > 0) return TextOfTasks(data, most_bytes);
  const PrepareOptions corpus = TrainingPreparation(data, {});
  return ReadTokenizerText({.patterns = corpus.patterns,
                            .text_field = corpus.text_field,
                            .on_bad_record = corpus.on_bad_record,
                            .most_bytes = most_bytes});
}

void MakeModel(const TrainOptions& options, const DataConfig& data) {
  const Path output = ChooseOutput(options, data);
  const std::string model = TrainTokenizer(options.training, TextOf(data, options.text_mib << 20));
  const Tokenizer tokenizer(output, model, data.extra_ids());
  WriteChosenFile(output, model);
  PrintInfo(tokenizer);
}

Action SetUpTrain(CLI::App& app) {
  const auto config = AddConfigOptions(app);
  const auto options = std::make_shared<TrainOptions>();
  TokenizerTraining& training = options->training;
  app.add_option("--output", options->output,
                 "File to write the model to; by default the configuration's data.tokenizer")
      ->type_name("FILE");
  app.add_option("--pieces,--vocab-size", training.pieces,
                 "Number of the model's pieces, special ones included")
      ->check(CLI::Range(8, 1000000))
      ->capture_default_str();
  app.add_option("--kind,--model-type", training.kind, "How to cut words into pieces")
      ->check(CLI::IsMember({"unigram", "bpe"}))
      ->capture_default_str();
  app.add_option("--normalization", training.normalization,
                 "How to normalize the text first; cf also makes it lowercase")
      ->check(CLI::IsMember({"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}))
      ->capture_default_str();
  app.add_option("--coverage", training.character_coverage,
                 "Share of the text's characters that get pieces; 1 for small alphabets, 0.9995 "
                 "for Chinese or Japanese")
      ->check(CLI::Range(0.9, 1.0))
      ->capture_default_str();
  app.add_flag("--byte-fallback", training.byte_fallback,
               "Cut other characters into pieces for their bytes; by default they are unknown");
  app.add_option("--text", options->text_mib,
                 "MiB of text to read, an equal part from the beginning of each file or task")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  return [config, options] {
    const ConfigPurpose purpose{.training_data = !NamesTasks(*config)};
    MakeModel(*options, config->Load(purpose).data());
    return ExitCode::kDone;
  };
}

}  // namespace

Action SetUpTokenizer(CLI::App& app) {
  return SetUpParts(app, {{"train", "Train a SentencePiece model on a corpus or the texts of tasks",
                           SetUpTrain, "my.textproto --pieces 16000 --output pieces.model"},
                          {"encode", "Turn lines of text into lines of token ids", SetUpEncode,
                           "pieces.model < text > ids"},
                          {"decode", "Turn lines of token ids into text", SetUpDecode,
                           "pieces.model < ids > text"},
                          {"info", "Describe a model", SetUpInfo, "pieces.model"}});
}

}  // namespace syntra
