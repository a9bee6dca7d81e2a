// SPDX-License-Identifier: Apache-2.0
// syntra prepare
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "data/training_data.h"
#include "run/signals.h"
#include "train/run_directory.h"
#include "train/run_tokenizer.h"
#include "train/threads.h"

namespace syntra {
namespace {

void Prepare(PrepareOptions options, const Tokenizer& tokenizer) {
  options.on_progress = [](const PrepareProgress&) {
    if (PollSignals() != StopRequest::kSaveAndStop) return;
    Fail(ExitCode::kRequeue, "stopped on request; the same command goes on with the shards left");
  };
  const PrepareResult result = PrepareCorpus(options, tokenizer);
  const CorpusIndex& index = result.index;
  fmt::print("{}: {}, {} in {} ({} made, {} kept); {}, {} empty\n", options.directory.string(),
             Counted(index.documents(), "document"), Counted(index.tokens(), "token"),
             Counted(std::ssize(index.shards), "shard"), result.built, result.kept,
             Counted(index.bad_records(), "bad record"), index.empty_documents());
}

}  // namespace

Action SetUpPrepare(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto output = std::make_shared<std::string>();
  const auto verify = std::make_shared<bool>(false);
  app.add_option("--output", *output,
                 "Directory to write the token shards to, for data.prepared of the runs that use "
                 "them; by default the configuration's own")
      ->type_name("DIR");
  app.add_flag("--verify", *verify,
               "Read all corpus files and token shards, even those that have not changed since "
               "the last time, and make damaged shards again");
  return [options, output, verify] {
    InstallSignalHandlers(kStopping);
    const Config config = options->Load(kForPreparing);
    const DataConfig& data = config.data();
    const RunDirectory run{config.train().directory()};
    if (output->empty() && data.prepared().empty()) {
      if (run.root.empty()) {
        Fail(ExitCode::kConfig,
             "nothing says where the token shards go; give --output DIR, data.prepared or "
             "train.directory");
      }
      options->RequireOwnDirectory();
    }
    ChooseThreads(config.train());
    const Tokenizer tokenizer = OpenTokenizer(config);
    const Path prepared = output->empty() ? run.Prepared(data) : Path(*output);
    for (PrepareOptions split : Preparations(data, prepared)) {
      split.reads_everything = *verify;
      Prepare(split, tokenizer);
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
