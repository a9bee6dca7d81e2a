// syntra prepare
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "core/thread.h"
#include "data/prepare.h"
#include "train/signals.h"

namespace syntra {

Action SetUpPrepare(CLI::App& app) {
  struct Options {
    PrepareOptions prepare;
    std::string tokenizer, output;
    int32_t extra_ids = 100;
    int threads = 0;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("--input", options->prepare.patterns, "Corpus files or glob patterns")
      ->required()
      ->type_name("FILE_OR_PATTERN");
  app.add_option("--tokenizer", options->tokenizer, "SentencePiece model")
      ->required()
      ->type_name("MODEL");
  app.add_option("--output", options->output, "Directory for the token shards")
      ->required()
      ->type_name("DIR");
  app.add_option("--text-field", options->prepare.text_field,
                 "JSON field, feature or column with the text")
      ->capture_default_str();
  app.add_option("--extra-ids", options->extra_ids, "Sentinels above the model's pieces")
      ->capture_default_str();
  app.add_option("--max-bad-fraction", options->prepare.on_bad_record.max_fraction,
                 "Largest share of bad records that are skipped in a file")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--fail-on-bad-record", options->prepare.on_bad_record.fail,
               "Stop at the first bad record");
  app.add_option("--threads", options->threads, "Threads; all cores by default")
      ->check(CLI::Range(1, 4096));
  return [options] {
    if (options->threads > 0) SetThreadCount(options->threads);
    options->prepare.directory = options->output;
    options->prepare.on_progress = [](const PrepareProgress&) {
      if (PollSignals() != StopRequest::kSaveAndStop) return;
      Fail(ExitCode::kRequeue, "stopped on request; the same command goes on with the shards left");
    };
    const Tokenizer tokenizer(options->tokenizer, options->extra_ids);
    const PrepareResult result = PrepareCorpus(options->prepare, tokenizer);
    fmt::print(
        "{}: {} documents, {} tokens in {} shards ({} made, {} kept); {} bad records, {} empty\n",
        options->output, WithThousands(result.index.documents()),
        WithThousands(result.index.tokens()), result.index.shards.size(), result.built, result.kept,
        result.index.bad_records(), result.index.empty_documents());
    return ExitCode::kDone;
  };
}

}  // namespace syntra
