// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/tiny_run.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <random>

#include "base/digest.h"
#include "base/text.h"
#include "checkpoint/read.h"

namespace syntra {
namespace {

constexpr int kWords = 96;

constexpr const char* kModel = R"(
  encoder_layers: 2
  decoder_layers: 2
  mixer {
    attention {
      heads: 2
      head_size: 16
      dropout: 0.1
      term { random { max_length: 32 } }
      term { dot_product {} }
    }
  }
  cross_attention { heads: 2 head_size: 16 dropout: 0.1 }
  dropout: 0.1
)";

constexpr const char* kConfig = R"(
model {{
  width: 32
  feed_forward {{ width: 64 }}
  vocabulary_size: 128
  {1}
}}
data {{
  train: "{0}/corpus/train.jsonl"
  validation: "{0}/corpus/validation.jsonl"
  tokenizer: "{0}/corpus/tiny.model"
  prepared: "{0}/prepared"
  input_length: 32
  extra_ids: 20
  {2}
}}
optimizer {{ kind: ADAMW schedule {{ kind: LINEAR rate: 0.01 warmup_steps: 2 }} clip_norm: 1 }}
train {{ steps: 20 batch_size: 8 threads: 1 log_every: 1000 }}
evaluation {{ every: 5 batches: 2 }}
checkpoint {{ every: 5 }}
)";

std::string Word(int index) {
  return fmt::format("{}{}", static_cast<char>('a' + index % 26),
                     static_cast<char>('a' + index / 26));
}

// Documents of words, each of which is likely to follow from the one before it.
std::string Documents(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += "{\"text\": \"";
    const int length = 20 + static_cast<int>(random() % 60);
    int word = static_cast<int>(random() % kWords);
    for (int j = 0; j < length; ++j) {
      lines += (j > 0 ? " " : "") + Word(word);
      word = random() % 4 == 0 ? static_cast<int>(random() % kWords) : (word * 5 + 7) % kWords;
    }
    lines += "\"}\n";
  }
  return lines;
}

// Protocol buffer wire format: a field of bytes.
std::string Bytes(int field, const std::string& content) {
  return fmt::format("{}{}{}", static_cast<char>(field << 3 | 2), static_cast<char>(content.size()),
                     content);
}

std::string Piece(const std::string& text, float score, int type) {
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  std::string message = Bytes(1, text) + static_cast<char>(2 << 3 | 5);
  for (int shift = 0; shift < 32; shift += 8) message += static_cast<char>(bits >> shift & 0xff);
  message += static_cast<char>(3 << 3);
  message += static_cast<char>(type);
  return Bytes(1, message);
}

}  // namespace

void WriteSentencePieceModel(const Path& path, int words, const std::vector<std::string>& special) {
  constexpr int kNormal = 1, kUnknown = 2, kControl = 3;
  std::string model;
  for (const std::string& piece : special) {
    model += Piece(piece, 0, piece == "<unk>" ? kUnknown : kControl);
  }
  // U+2581 stands for the space before a word.
  for (int i = 0; i < words; ++i) {
    model += Piece("\u2581" + Word(i), -1.0f - 0.01f * static_cast<float>(i), kNormal);
  }
  ReplaceFileDurably(path, model);
}

TinyFiles::TinyFiles(const Path& folder)
    : config(folder / "tiny.textproto"),
      tokenizer(folder / "corpus/tiny.model"),
      training(folder / "corpus/train.jsonl"),
      validation(folder / "corpus/validation.jsonl") {
  CreateDirectories(folder / "corpus");
  WriteConfig(kModel);
  ReplaceFileDurably(training, Documents(200, 1));
  ReplaceFileDurably(validation, Documents(30, 2));
  WriteSentencePieceModel(tokenizer, kWords);
}

void TinyFiles::WriteConfig(const std::string& model, const std::string& data) const {
  ReplaceFileDurably(config, fmt::format(kConfig, config.parent_path().string(), model, data));
}

Arguments TinyFiles::Pretrain(const Path& directory, const Arguments& settings) const {
  Arguments arguments{"pretrain", "--config", config.string(), "--set",
                      "train.directory=" + directory.string()};
  for (const std::string& setting : settings) {
    arguments.push_back("--set");
    arguments.push_back(setting);
  }
  return arguments;
}

void TinyRun::SetUp() {
  ScratchTest::SetUp();
  files_.emplace(scratch_);
  config_ = files_->config;
  tokenizer_ = files_->tokenizer;
  training_ = files_->training;
  validation_ = files_->validation;
}

Arguments TinyRun::Pretrain(const std::string& name, const Arguments& settings) const {
  return files_->Pretrain(Directory(name), settings);
}

void TinyRun::Train(const std::string& name, const Arguments& settings,
                    const StartOptions& options) const {
  const Outcome outcome = Run(Pretrain(name, settings), options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

std::vector<Json> TinyRun::Metrics(const std::string& name) const {
  std::vector<Json> lines;
  for (const std::string& line : Split(ReadWholeFile(Directory(name) / "metrics.jsonl"), '\n')) {
    if (!line.empty()) lines.push_back(ParseJson(line));
  }
  return lines;
}

int64_t NewestStep(const Path& run_directory) {
  int64_t newest = -1;
  std::error_code code;
  for (const auto& entry :
       std::filesystem::directory_iterator(run_directory / "checkpoints", code)) {
    const std::string file = entry.path().filename();
    int64_t step = 0;
    if (file.starts_with("step-") && ParseInt64(file.substr(5), &step)) {
      newest = std::max(newest, step);
    }
  }
  return newest;
}

int64_t LastLoggedStep(const Path& run_directory) {
  const Path path = run_directory / "metrics.jsonl";
  if (!std::filesystem::exists(path)) return -1;
  const std::string text = ReadWholeFile(path);
  const size_t at = text.rfind("{\"step\":");
  if (at == std::string::npos) return -1;
  return std::atoll(text.c_str() + at + 8);
}

Path TinyRun::CheckpointPath(const std::string& name, int64_t step) const {
  return Directory(name) / fmt::format("checkpoints/step-{:010}", step);
}

void TinyRun::ExpectSameCurve(const std::string& a, const std::string& b, int64_t steps,
                              double tolerance) const {
  const auto left = Metrics(a), right = Metrics(b);
  ASSERT_EQ(left.size(), right.size());
  double worst = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const int64_t step = left[i].at("step");
    ASSERT_EQ(step, right[i].at("step"));
    if (step > steps) break;
    for (const char* field :
         {"loss", "grad_norm", "z_loss", "ponder_loss", "validation_log_perplexity"}) {
      if (!left[i].contains(field)) continue;
      const double x = left[i].at(field), y = right[i].at(field);
      worst = std::max(worst, std::abs(x - y) / std::abs(x));
      EXPECT_NEAR(x, y, tolerance * std::abs(x)) << field << " of step " << step;
    }
  }
  RecordProperty("worst", fmt::format("{:.1e}", worst));
}

void TinyRun::ExpectSameParameters(const std::string& a, const std::string& b, int64_t step,
                                   double tolerance) const {
  Checkpoint left(CheckpointPath(a, step)), right(CheckpointPath(b, step));
  for (const auto& [name, entry] : left.tensors()) {
    if (!name.starts_with("parameters/")) continue;
    const size_t count = entry.type.shape.size();
    std::vector<float> x(count), y(count);
    left.Read(name, {reinterpret_cast<std::byte*>(x.data()), entry.type});
    right.Read(name, {reinterpret_cast<std::byte*>(y.data()), entry.type});
    double largest = 0, worst = 0;
    for (size_t i = 0; i < count; ++i) {
      largest = std::max(largest, std::abs(double{x[i]}));
      worst = std::max(worst, std::abs(double{x[i]} - y[i]));
    }
    EXPECT_LE(worst, tolerance * std::max(largest, 1e-3)) << name;
  }
}

int TinyRun::TimesOpened(const Path& path, const Arguments& arguments) const {
  const Path trace = scratch_ / "trace";
  const Outcome outcome =
      Run(arguments, {.wrapper = {"strace", "-f", "-e", "trace=openat", "-o", trace.string()}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> calls = Split(ReadWholeFile(trace), '\n');
  return static_cast<int>(std::ranges::count_if(calls, [&](const std::string& call) {
    return call.find(path.string()) != std::string::npos;
  }));
}

Path TinyRun::AbandonedFile(const Path& path) const {
  const Path file = path.string() + ".tmp-99999";
  CreateDirectories(path.parent_path());
  ReplaceFileDurably(file, "half");
  std::filesystem::last_write_time(
      file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  return file;
}

void TinyRun::Damage(const Path& checkpoint) const {
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().filename() == "MANIFEST") continue;
    std::string bytes = ReadWholeFile(entry.path());
    bytes[bytes.size() / 2] ^= 1;
    ReplaceFileDurably(entry.path(), bytes);
  }
}

void TinyRun::SetAttribute(const std::string& name, int64_t step, const std::string& attribute,
                           const std::string& text) const {
  const Path path = CheckpointPath(name, step) / "MANIFEST";
  std::string manifest = ReadWholeFile(path);
  const std::string key = "\"" + attribute + "\": \"";
  const size_t at = manifest.find(key);
  ASSERT_NE(at, std::string::npos) << manifest;
  const size_t begin = at + key.size();
  manifest.replace(begin, manifest.find('"', begin) - begin, text);
  manifest.resize(manifest.rfind("xxh3-128 "));
  ReplaceFileDurably(path, manifest + "xxh3-128 " + ToHex(DigestOf(manifest)) + "\n");
}

std::string MetricsTrace(const Path& run_directory) {
  std::string trace;
  for (const std::string& line : Split(ReadWholeFile(run_directory / "metrics.jsonl"), '\n')) {
    if (line.empty()) continue;
    const Json json = ParseJson(line);
    Json equal = Json::object();
    for (const auto& [name, value] : json.items()) {
      const bool is_time = name == "time" || name.ends_with("second") ||
                           name.ends_with("seconds") || name == "mfu" || name == "slowest_rank";
      if (!is_time) equal[name] = value;
    }
    trace += JsonText(equal) + "\n";
  }
  return trace;
}

std::string CheckpointTrace(const Path& run_directory, int64_t step) {
  std::vector<Path> files;
  const Path checkpoint = run_directory / fmt::format("checkpoints/step-{:010}", step);
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    // MANIFEST holds the id of the run.
    if (entry.path().filename() != "MANIFEST") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::string trace;
  for (const Path& file : files) {
    trace += file.filename().string() + " " + ToHex(DigestOf(ReadWholeFile(file))) + "\n";
  }
  return trace;
}

std::string Trace(const Path& run_directory, int64_t step) {
  return MetricsTrace(run_directory) + CheckpointTrace(run_directory, step);
}

}  // namespace syntra
