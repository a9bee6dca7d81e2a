// SPDX-License-Identifier: Apache-2.0
// Configuration text: a refusal names a place; what is accepted means the same to protobuf's own
// parser, and survives printing and parsing.
#include "config/config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdio>

#include "base/text.h"
#include "config/presets.h"
#include "config/print.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = fmt::format("{}:{}: {}", line + 1, column + 1, message);
  }
  std::string text;
};

// "error: x:LINE:COLUMN: ...", or of a text that is none of configuration "error: x: ... line LINE:
// ...".
bool NamesAPlace(const std::string& line) {
  int row = 0, column = 0;
  if (line.starts_with("error: x: this is no configuration (")) {
    return line.find("; line ") != line.npos;
  }
  return std::sscanf(line.c_str(), "error: x:%d:%d:", &row, &column) == 2 && row > 0 && column > 0;
}

void CheckRefusal(const Error& error) {
  const std::vector<std::string> lines = Split(error.what(), '\n');
  SYNTRA_CHECK(lines.size() >= 2);
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    SYNTRA_CHECK(NamesAPlace(lines[i]) || lines[i].starts_with("(only"), "{}", lines[i]);
  }
}

void Run(std::string_view input) {
  Config config;
  try {
    config = ParseConfig("x", input, {}, kForModel);
  } catch (const Error& error) {
    CheckRefusal(error);
    throw;
  }
  const std::string minimal = MinimalConfigText(config);
  SYNTRA_CHECK(MinimalConfigText(ParseConfig("x", minimal, {}, kForModel)) == minimal);
  const std::string full = FullConfigText(config);
  SYNTRA_CHECK(MinimalConfigText(ParseConfig("x", full, {}, kForModel)) == minimal);
  // Protobuf does not know the former names of one field's values, nor what the other stands for,
  // and tells -0 from 0.
  for (const char* text : {"recompute", "attention_dropout", "-0", "-."}) {
    if (input.find(text) != std::string_view::npos) return;
  }
  FirstError protobuf_error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&protobuf_error);
  Config other;
  SYNTRA_CHECK(parser.ParseFromString(std::string(input), &other), "protobuf refuses it: {}",
               protobuf_error.text);
  SYNTRA_CHECK(config.SerializeAsString() == other.SerializeAsString());
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const std::string& path : PresetPaths()) {
    const std::string text = ReadWholeFile(path);
    // Parts of a configuration refer to others.
    if (Accepts({.name = "", .refusals = {ExitCode::kConfig}, .run = Run}, text)) {
      seeds.push_back(text);
    }
  }
  return seeds;
}

}  // namespace

const Target fuzz_config = {
    .name = "config",
    .refusals = {ExitCode::kConfig},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"{",      "}",           "<",    ">",        "[",
               "]",      ":",           ",",    ";",        "#",
               "\"",     "'",           "\\",   "\n",       "-",
               "nan",    "inf",         "010",  "0x1",      "1e400",
               "1e-400", "99999999999", "\xff", "\xc3\xa9", "model",
               "term",   "width: 8",    "{}",   "true",     "3.5",
               "\\x41",  "\\777",       "a\"b", "RELU",     "+1",
               "\t",     "1.",          ".5",   "5.e1",     "\r\n",
               "_",      "0",           "00",   "1f",       "layers { repeat: 2 }"},
    .mutations = 20000};

}  // namespace syntra
