// SPDX-License-Identifier: Apache-2.0
// What a token costs in decoding, against the length of the prefix, for each mixer, and what of it
// is the product with the cached values. A model of T5-small's layers with first values as
// parameters; the output layer is small, since it is the same for all. Prints Markdown.
#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <numeric>
#include "base/clock.h"
#include "core/arena.h"
#include "core/thread.h"
#include "decode/session.h"
#include "kernels/backend.h"
#include "model/programs.h"
#include "nn/attention.h"
#include "program/builder.h"

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
  const Model model(config);
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
    const auto begin = Clock::now();
    session.Append(std::vector<int32_t>(kRows, static_cast<int32_t>(step % 1000)));
    session.best();
    seconds.push_back(SecondsSince(begin));
  }
  return seconds;
}

// Reads more than the caches hold, as a step of the model does with its weights.
void EmptyCaches() {
  static const std::vector<float> numbers(size_t{64} << 20, 1.0f);
  volatile float sum = std::accumulate(numbers.begin(), numbers.end(), 0.0f);
  static_cast<void>(sum);
}

// Seconds of each step's softmax and product with the cached values in every layer, and nothing
// else: attention to given scores, which are the same for all rows. The processor's caches hold
// nothing of it before.
std::vector<double> ValueProductSeconds(const ModelConfig& config) {
  const AttentionConfig& attention = config.mixer().attention();
  const int64_t heads = attention.heads(), inner = heads * attention.head_size();
  ProgramBuilder builder;
  const Value table = builder.Input("table", {DType::kF32, {heads, 1, kLength}});
  const Value start = builder.Input("start", {DType::kI32, {1}});
  for (int layer = 0; layer < config.decoder_layers(); ++layer) {
    const Value values =
        builder.Input(fmt::format("values_{}", layer), {DType::kF32, {kRows, kLength, inner}});
    builder.Output(fmt::format("mixed_{}", layer),
                   Attention(builder, heads, {.table = table, .value = values},
                             {.query_start = start, .causal = true}));
  }
  Executable program(std::move(builder).Build(), CpuBackend(), {});
  std::vector<double> seconds;
  for (int32_t step = 0; step < kLength; ++step) {
    program.SetInput("start", std::span<const int32_t>(&step, 1));
    EmptyCaches();
    const auto begin = Clock::now();
    program.Run();
    seconds.push_back(SecondsSince(begin));
  }
  return seconds;
}

// The least: other work on the machine only adds to it.
double LeastBefore(const std::vector<double>& seconds, int64_t end) {
  return *std::min_element(seconds.begin() + end - kWindow, seconds.begin() + end);
}

constexpr int64_t kPrefixes[] = {32, 128, 256, 512};

// A row of the table: the cost at each prefix, its growth, and the growth that is not `value`'s.
void PrintRow(const std::string& name, const std::vector<double>& seconds,
              const std::vector<double>& value) {
  fmt::print("| {} |", name);
  for (const int64_t prefix : kPrefixes)
    fmt::print(" {:.2f} |", 1e3 * LeastBefore(seconds, prefix));
  const auto growth = [](const std::vector<double>& of) {
    const double more = LeastBefore(of, kPrefixes[3]) - LeastBefore(of, kPrefixes[0]);
    return 1e3 * more * 100 / static_cast<double>(kPrefixes[3] - kPrefixes[0]);
  };
  const auto rest = [&](int64_t prefix) {
    return LeastBefore(seconds, prefix) - LeastBefore(value, prefix);
  };
  fmt::print(" {:.3f} |", growth(seconds));
  if (&seconds == &value) {
    fmt::print(" | |\n");
  } else {
    fmt::print(" {:.3f} | {:.2f} |\n", growth(seconds) - growth(value),
               rest(kPrefixes[3]) / rest(kPrefixes[0]));
  }
}

void Run() {
  const std::string random = "term { random { max_length: 512 } } ";
  const std::string dot = "term { dot_product {} } ";
  const std::vector<std::pair<std::string, std::string>> mixers = {
      {"random", random},
      {"factorized random", "term { factorized_random { max_length: 512 } }"},
      {"dense", "term { dense { max_length: 512 } }"},
      {"dot product", dot},
      {"random + dot product", random + dot}};
  fmt::print("Milliseconds a step of {} rows, {} threads, by the length of the prefix\n\n| mixer |",
             kRows, ThreadCount());
  for (const int64_t prefix : kPrefixes) fmt::print(" {} |", prefix);
  fmt::print(
      " growth a 100 tokens | without the values' product | its ratio of 512 to 32 |\n"
      "|---|---|---|---|---|---|---|---|\n");
  const std::vector<double> value = ValueProductSeconds(ModelWith(dot));
  PrintRow("the values' product alone", value, value);
  for (const auto& [name, terms] : mixers) PrintRow(name, StepSeconds(ModelWith(terms)), value);
}

}  // namespace
}  // namespace syntra

int main() {
  syntra::Run();
  return 0;
}
