// SPDX-License-Identifier: Apache-2.0
// What a token costs in decoding, against the length of the prefix, for each mixer. A model of
// T5-small's layers with first values as parameters; the output layer is small, since it is the
// same for all. Prints Markdown.
#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/arena.h"
#include "core/thread.h"
#include "decode/session.h"
#include "kernels/backend.h"
#include "model/programs.h"
#include "nn/layers.h"

namespace syntra {
namespace {

constexpr int64_t kRows = 8, kInputs = 64, kLength = 512;
constexpr int64_t kWindow = 32;  // steps that a figure is taken from

ModelConfig ModelWith(const std::string& terms) {
  const std::string text =
      "width: 512 feed_forward { width: 2048 } vocabulary_size: 1024 "
      "cross_attention { heads: 8 head_size: 64 } "
      "mixer { attention { heads: 8 head_size: 64 " +
      terms + " } }";
  ModelConfig config;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), "{}", text);
  return config;
}

// Seconds of each step.
std::vector<double> StepSeconds(const ModelConfig& config) {
  const EncoderDecoder model(config);
  ParameterStore parameters = DeclareParameters(model);
  Arena values(Host(), parameters.arena_elements(), "parameters");
  for (const Parameter& parameter : parameters.all()) {
    Initialize(parameter, 1, values.host().subspan(parameter.offset, parameter.shape.size()));
  }
  DecodeSession session({model, parameters, values.data(), DType::kF32, CpuBackend()},
                        {kRows, 1, kInputs, kLength}, NextTokens::kBest);
  session.Start(std::vector<int32_t>(kRows * kInputs, 7), std::vector<int32_t>(kRows * kInputs, 1));
  std::vector<double> seconds;
  for (int64_t step = 0; step < kLength; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    session.Append(std::vector<int32_t>(kRows, static_cast<int32_t>(step % 1000)));
    session.best();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return seconds;
}

// The least: other work on the machine only adds to it.
double LeastBefore(const std::vector<double>& seconds, int64_t end) {
  return *std::min_element(seconds.begin() + end - kWindow, seconds.begin() + end);
}

void Run() {
  const std::string random = "term { random { max_length: 512 } } ";
  const std::string dot = "term { dot_product {} } ";
  const std::vector<std::pair<std::string, std::string>> mixers = {
      {"dot product", dot},
      {"random", random},
      {"factorized random", "term { factorized_random { max_length: 512 } }"},
      {"dense", "term { dense { max_length: 512 } }"},
      {"random + dot product", random + dot}};
  const std::vector<int64_t> prefixes{32, 128, 256, 512};
  fmt::print("Milliseconds a step of {} rows, {} threads, by the length of the prefix\n\n| mixer |",
             kRows, ThreadCount());
  for (const int64_t prefix : prefixes) fmt::print(" {} |", prefix);
  fmt::print(" growth a 100 tokens |\n|---|---|---|---|---|---|\n");
  for (const auto& [name, terms] : mixers) {
    const std::vector<double> seconds = StepSeconds(ModelWith(terms));
    fmt::print("| {} |", name);
    for (const int64_t prefix : prefixes)
      fmt::print(" {:.2f} |", 1e3 * LeastBefore(seconds, prefix));
    const double growth =
        LeastBefore(seconds, prefixes.back()) - LeastBefore(seconds, prefixes.front());
    fmt::print(" {:.3f} |\n",
               1e3 * growth / static_cast<double>(prefixes.back() - prefixes.front()) * 100);
  }
}

}  // namespace
}  // namespace syntra

int main() {
  syntra::Run();
  return 0;
}
