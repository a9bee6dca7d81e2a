// SPDX-License-Identifier: Apache-2.0
// What stands after --set, over a configuration of the paper: it is applied, or named in the error.
#include "base/text.h"
#include "config/config.h"
#include "config/print.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

constexpr const char* kBase = "configs/paper/c4_syn_rv.textproto";

void Run(std::string_view input) {
  static const std::string base = SourceFile(kBase);
  const std::vector<std::string> overrides = {std::string(input)};
  Config config;
  try {
    config = ParseConfig("base", base, overrides, kForModel);
  } catch (const Error& error) {
    // A change of the data can also make a table of the base too short.
    for (const std::string& line : Split(error.what(), '\n')) {
      SYNTRA_CHECK(line.starts_with("error: --set ") || line.starts_with("error: base:") ||
                       line.find(" error") != line.npos || line.starts_with("(only"),
                   "{}", line);
    }
    throw;
  }
  const std::string minimal = MinimalConfigText(config);
  SYNTRA_CHECK(MinimalConfigText(ParseConfig("x", minimal, {}, kForModel)) == minimal);
}

std::vector<std::string> Seeds() {
  return {"train.steps=1000",
          "optimizer.schedule.kind=COSINE",
          "data.train=[\"a\",\"b\"]",
          "model.mixer={ attention { term { random {} } } }",
          "model { width: 8 }",
          "train.directory='runs/a'",
          "model.mixer.attention.term[0].random.max_length=600"};
}

}  // namespace

const Target fuzz_config_override = {
    .name = "config_override",
    .refusals = {ExitCode::kConfig},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"=",     ".",     "[0]",   "[1]",       "[-1]", "[",     "]",  "{",
               "}",     "model", "mixer", "attention", "term", "train", "\"", "'",
               "1e400", "nan",   "0",     "-1",        "true", "\xff"},
    .mutations = 20000,
    .longest = 4096};

}  // namespace syntra
