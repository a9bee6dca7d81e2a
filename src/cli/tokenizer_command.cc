// SPDX-License-Identifier: Apache-2.0
// syntra tokenizer encode|decode|info: a line in, a line out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/text.h"
#include "cli/commands.h"
#include "data/tokenizer.h"

namespace syntra {
namespace {

struct ModelOptions {
  std::string model;
  int32_t extra_ids = 100;
};

std::shared_ptr<ModelOptions> AddModelOptions(CLI::App& app) {
  auto options = std::make_shared<ModelOptions>();
  app.add_option("--model,--tokenizer", options->model, "SentencePiece model")
      ->required()
      ->type_name("FILE");
  app.add_option("--extra-ids", options->extra_ids, "Sentinels above the model's pieces")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  return options;
}

Action SetUpEncode(CLI::App& app) {
  const auto options = AddModelOptions(app);
  const auto sentinels = std::make_shared<bool>(false);
  app.add_flag("--sentinels", *sentinels, "Read <extra_id_K> as a sentinel");
  return [options, sentinels] {
    const Tokenizer tokenizer(options->model, options->extra_ids);
    std::string line;
    while (std::getline(std::cin, line)) {
      const std::vector<int32_t> ids =
          *sentinels ? tokenizer.EncodeWithSentinels(line) : tokenizer.Encode(line);
      fmt::print("{}\n", fmt::join(ids, " "));
    }
    return ExitCode::kDone;
  };
}

Action SetUpDecode(CLI::App& app) {
  const auto options = AddModelOptions(app);
  return [options] {
    const Tokenizer tokenizer(options->model, options->extra_ids);
    std::string line;
    for (int64_t number = 1; std::getline(std::cin, line); ++number) {
      std::vector<int32_t> ids;
      for (const std::string& word : Split(line, ' ')) {
        if (word.empty()) continue;
        int64_t id = 0;
        if (!ParseInt64(word, &id) || id < 0 || id >= tokenizer.vocabulary_size()) {
          Fail(ExitCode::kData,
               "line {} of the input: \"{}\" is not a token id; those of {} are from 0 to {}",
               number, Printable(word, 40), options->model, tokenizer.vocabulary_size() - 1);
        }
        ids.push_back(static_cast<int32_t>(id));
      }
      fmt::print("{}\n", tokenizer.Decode(ids));
    }
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

Action SetUpInfo(CLI::App& app) {
  const auto options = AddModelOptions(app);
  return [options] {
    const Tokenizer tokenizer(options->model, options->extra_ids);
    const bool shifted = tokenizer.first_piece_id() > 0;
    fmt::print("{}\n", options->model);
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
    return ExitCode::kDone;
  };
}

}  // namespace

Action SetUpTokenizer(CLI::App& app) {
  return SetUpParts(app, {{"encode", "Turn lines of text into lines of token ids", SetUpEncode},
                          {"decode", "Turn lines of token ids into text", SetUpDecode},
                          {"info", "Describe a model", SetUpInfo}});
}

}  // namespace syntra
