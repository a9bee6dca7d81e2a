// SPDX-License-Identifier: Apache-2.0
// syntra inspect attention: how the attentions of a model read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "cli/checkpoint_options.h"
#include "cli/config_options.h"
#include "cli/inspect.h"
#include "cli/line_answers.h"
#include "cli/pictures.h"
#include "cli/ranks.h"
#include "cli/request_reader.h"
#include "cli/text_table.h"
#include "config/config.h"
#include "data/row_layout.h"
#include "data/table_source.h"
#include "data/validation_data.h"
#include "decode/attention_weights.h"
#include "dist/communicator.h"
#include "run/watchdog.h"
#include "train/task_data.h"

namespace syntra {
namespace {

// Means over the queries of all examples that read anything, of one head.
struct HeadSummary {
  static constexpr size_t kBins = 50;

  int64_t queries = 0;
  // exp of the entropy of a query's weights: how many keys it would read if it read them equally.
  double keys_read = 0;
  double largest = 0;   // weight
  double distance = 0;  // from query to key, by weight; within a sequence
  // How many weights that are not 0 lie in each of kBins equal parts of [0, 1].
  std::array<int64_t, kBins> histogram{};
};

struct AttentionSummary {
  std::string name;
  bool within_sequence = false;
  std::vector<HeadSummary> heads;
};

// How the attentions of a model read: sums over examples of what their weights say.
class AttentionReport {
 public:
  // Adds the weights of another batch; all are of the same model.
  void Add(std::span<const AttentionWeights> attentions);

  // One line for each attention: means over its heads, and from the least to the most of a head.
  std::string Text() const;
  Json ToJson() const;

 private:
  std::vector<AttentionSummary> Means() const;

  std::vector<AttentionSummary> sums_;
};

void AddQuery(std::span<const float> weights, int64_t query, HeadSummary* sums) {
  double entropy = 0, largest = 0, distance = 0;
  for (int64_t key = 0; key < std::ssize(weights); ++key) {
    const double weight = weights[key];
    if (weight <= 0) continue;
    entropy -= weight * std::log(weight);
    largest = std::max(largest, weight);
    distance += weight * static_cast<double>(std::abs(key - query));
    const auto bin = static_cast<size_t>(weight * HeadSummary::kBins);
    ++sums->histogram[std::min(bin, HeadSummary::kBins - 1)];
  }
  if (largest == 0) return;
  ++sums->queries;
  sums->keys_read += std::exp(entropy);
  sums->largest += largest;
  sums->distance += distance;
}

// "12.3 (4.0 to 30.1)" of a number of each head.
std::string LeastToMost(const AttentionSummary& attention, double HeadSummary::*number) {
  double sum = 0, least = INFINITY, most = -INFINITY;
  for (const HeadSummary& head : attention.heads) {
    const double value = head.*number;
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", sum / static_cast<double>(attention.heads.size()),
                     least, most);
}

// Names of attentions, in order: their scopes, with a number where a layer is applied repeatedly.
std::vector<std::string> AttentionNames(std::span<const AttentionWeights> attentions) {
  std::map<std::string, int> times, seen;
  for (const AttentionWeights& attention : attentions) ++times[attention.scope];
  std::vector<std::string> names;
  for (const AttentionWeights& attention : attentions) {
    const int number = ++seen[attention.scope];
    names.push_back(times[attention.scope] == 1 ? attention.scope
                                                : fmt::format("{} ({})", attention.scope, number));
  }
  return names;
}

void AttentionReport::Add(std::span<const AttentionWeights> attentions) {
  if (sums_.empty()) {
    for (const std::string& name : AttentionNames(attentions)) sums_.push_back({name});
  }
  for (size_t i = 0; i < attentions.size(); ++i) {
    const AttentionWeights& weights = attentions[i];
    sums_[i].heads.resize(weights.heads);
    sums_[i].within_sequence = weights.within_sequence;
    for (int64_t row = 0; row < weights.rows; ++row) {
      for (int64_t head = 0; head < weights.heads; ++head) {
        for (int64_t query = 0; query < weights.queries; ++query) {
          AddQuery(weights.Of(row, head, query), query, &sums_[i].heads[head]);
        }
      }
    }
  }
}

std::vector<AttentionSummary> AttentionReport::Means() const {
  std::vector<AttentionSummary> means = sums_;
  for (AttentionSummary& attention : means) {
    for (HeadSummary& head : attention.heads) {
      const auto queries = static_cast<double>(std::max<int64_t>(head.queries, 1));
      for (double* sum : {&head.keys_read, &head.largest, &head.distance}) *sum /= queries;
    }
  }
  return means;
}

std::string AttentionReport::Text() const {
  std::vector<TableRow> rows{{"attention", "heads", "keys read", "largest weight", "distance"}};
  for (const AttentionSummary& attention : Means()) {
    rows.push_back(
        {attention.name, std::to_string(attention.heads.size()),
         LeastToMost(attention, &HeadSummary::keys_read),
         LeastToMost(attention, &HeadSummary::largest),
         attention.within_sequence ? LeastToMost(attention, &HeadSummary::distance) : "-"});
  }
  return TextTable(rows);
}

Json AttentionReport::ToJson() const {
  Json list = Json::array();
  for (const AttentionSummary& attention : Means()) {
    Json heads = Json::array();
    for (const HeadSummary& head : attention.heads) {
      heads.push_back({{"queries", head.queries},
                       {"keys_read", head.keys_read},
                       {"largest_weight", head.largest},
                       {"distance", attention.within_sequence ? Json(head.distance) : Json()},
                       {"histogram", head.histogram}});
    }
    list.push_back({{"attention", attention.name}, {"heads", heads}});
  }
  return list;
}

struct AttentionOptions {
  std::shared_ptr<CheckpointOptions> checkpoint;
  std::optional<std::string> input;
  std::string target;
  int64_t examples = 8, positions = 40;
  std::vector<std::string> layers;
  std::string svg;
  bool json = false, weights = false;
};

ValidationData ExamplesOf(const LoadedModel& loaded, std::span<const TextPair> pairs) {
  const DataConfig& data = loaded.config.data();
  return {MakeTable("examples", pairs, data, *loaded.tokenizer),
          RowPacking::OfExamples(data, ArchitectureOf(loaded.config.model()).layout())};
}

// The first validation examples of the model's tasks.
std::vector<TextPair> PairsOfTasks(std::span<const TaskData> tasks, int64_t count) {
  std::vector<TextPair> pairs;
  for (const TaskData& task : tasks) {
    for (const TaskSplitData& split : task.validation) {
      const int64_t more = std::min(count - std::ssize(pairs), std::ssize(split.examples));
      const auto first = std::span(split.examples).first(more);
      std::ranges::move(PairsOf(first, task.first_class), std::back_inserter(pairs));
    }
  }
  if (pairs.empty()) FailWithoutSplit(TaskSplit::Use::kValidation);
  return pairs;
}

// Batches of one example each.
struct ShownExamples {
  int64_t count = 0;
  std::function<Batch(int64_t)> example;
};

// The tokens of an input and its target, as `score` reads them.
struct GivenTokens {
  std::vector<int32_t> input, target;
};

GivenTokens TokensOf(const LoadedModel& loaded, const std::string& input,
                     const std::string& target) {
  const ModelConfig& model = loaded.config.model();
  if (!HasSide(model, Side::kDecoder)) {
    Fail(ExitCode::kConfig,
         "--input needs a model with a decoder, and this one is of architecture {}; without it its "
         "validation examples are shown",
         NameOf(model.architecture()));
  }
  if (input.empty()) Fail(ExitCode::kConfig, "--input is empty; write what the model reads");
  CheckHasEos(*loaded.tokenizer);
  RequestReader reader(loaded, nullptr);
  GivenTokens tokens;
  std::string error = TextFault(input + target);
  if (const auto request = error.empty() ? reader.Read(input, &error) : std::nullopt) {
    tokens.input = request->ids;
    if (auto ids = reader.ReadTarget(input, tokens.input, target, &error)) tokens.target = *ids;
  }
  if (!error.empty()) Fail(ExitCode::kConfig, "the text {}", error);
  // So that a language model reads the last token of the text, too, where there is room.
  if (reader.goes_on() && std::ssize(tokens.target) < reader.RoomAfter(tokens.input)) {
    tokens.target.push_back(loaded.tokenizer->eos_id());
  }
  return tokens;
}

ShownExamples GivenExample(const LoadedModel& loaded, const AttentionOptions& options) {
  const GivenTokens tokens = TokensOf(loaded, *options.input, options.target);
  const ExampleLengths lengths{std::ssize(tokens.input), std::ssize(tokens.target)};
  const RowLayout& layout = ArchitectureOf(loaded.config.model()).layout();
  const ExampleLengths slots = layout.SlotsOf(lengths);
  Batch batch(1, slots.inputs, slots.targets);
  RowWriter(layout, 0, &batch).Append(lengths, [&](const ExampleSlots& example) {
    std::ranges::copy(tokens.input, example.inputs.begin());
    std::ranges::copy(tokens.target, example.targets.begin());
  });
  return {1, [batch](int64_t) { return batch; }};
}

ShownExamples ValidationExamples(const LoadedModel& loaded, const AttentionOptions& options,
                                 Communicator& ranks, Watchdog& watchdog) {
  ValidationData data =
      HasTasks(loaded.config.data())
          ? ExamplesOf(loaded, PairsOfTasks(OpenTasks(loaded, ranks, watchdog), options.examples))
          : OpenValidationData(loaded, ranks, watchdog);
  const int64_t count = std::min(options.examples, data.example_count());
  return {count, [data = std::move(data)](int64_t i) { return data.Examples(i, 1); }};
}

// Attentions whose names differ only in numbers do the same in other layers.
std::string WithoutNumbers(std::string name) {
  std::erase_if(name, [](unsigned char c) { return std::isdigit(c); });
  return name;
}

// The indices of the names that contain one of `layers`; if `layers` is empty, those of the first,
// the middle and the last name of each kind.
std::vector<size_t> Chosen(std::span<const std::string> names,
                           std::span<const std::string> layers) {
  std::vector<size_t> chosen;
  std::map<std::string, std::vector<size_t>> kinds;
  for (size_t i = 0; i < names.size(); ++i) {
    kinds[WithoutNumbers(names[i])].push_back(i);
    const auto is_named = [&](const std::string& layer) {
      return names[i].find(layer) != std::string::npos;
    };
    if (std::ranges::any_of(layers, is_named)) chosen.push_back(i);
  }
  if (!layers.empty()) {
    if (chosen.empty()) {
      Fail(ExitCode::kConfig, "--layer: no attention has such a name; without it all are listed");
    }
    return chosen;
  }
  for (const auto& [kind, indices] : kinds) {
    for (const size_t i : {size_t{0}, (indices.size() - 1) / 2, indices.size() - 1}) {
      chosen.push_back(indices[i]);
    }
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

struct Extent {
  int64_t queries = 1, keys = 1;
};

// The queries and keys to draw: those of the first example up to its padding, which reads nothing
// and is not read, and at most `positions` of each.
Extent ExtentOf(const AttentionWeights& attention, int64_t positions) {
  Extent used;
  for (int64_t head = 0; head < attention.heads; ++head) {
    for (int64_t query = 0; query < std::min(positions, attention.queries); ++query) {
      const auto weights = attention.Of(0, head, query);
      for (int64_t key = 0; key < std::min(positions, attention.keys); ++key) {
        if (weights[key] > 0)
          used = {std::max(used.queries, query + 1), std::max(used.keys, key + 1)};
      }
    }
  }
  return used;
}

// What the first queries of a head read of the first keys.
HeatMap MapOf(const AttentionWeights& attention, int64_t head, const Extent& extent) {
  HeatMap map{.name = "head " + std::to_string(head),
              .rows = extent.queries,
              .columns = extent.keys,
              .values = {}};
  for (int64_t query = 0; query < map.rows; ++query) {
    const auto weights = attention.Of(0, head, query).first(map.columns);
    map.values.insert(map.values.end(), weights.begin(), weights.end());
  }
  return map;
}

std::vector<HeatMapGroup> MapsOf(std::span<const AttentionWeights> attentions,
                                 const AttentionOptions& options) {
  const std::vector<std::string> names = AttentionNames(attentions);
  std::vector<HeatMapGroup> groups;
  for (const size_t i : Chosen(names, options.layers)) {
    const Extent extent = ExtentOf(attentions[i], options.positions);
    HeatMapGroup& group = groups.emplace_back(HeatMapGroup{names[i], {}});
    for (int64_t head = 0; head < attentions[i].heads; ++head) {
      group.maps.push_back(MapOf(attentions[i], head, extent));
    }
  }
  return groups;
}

Json JsonOf(std::span<const HeatMapGroup> groups) {
  Json list = Json::array();
  for (const HeatMapGroup& group : groups) {
    Json heads = Json::array();
    for (const HeatMap& map : group.maps) {
      Json rows = Json::array();
      for (int64_t row = 0; row < map.rows; ++row) {
        const auto values = std::span(map.values).subspan(row * map.columns, map.columns);
        rows.push_back(std::vector<float>(values.begin(), values.end()));
      }
      heads.push_back(std::move(rows));
    }
    list.push_back({{"attention", group.name}, {"weights", std::move(heads)}});
  }
  return list;
}

void Show(const LoadedModel& loaded, const ShownExamples& examples, const AttentionOptions& options,
          Watchdog& watchdog) {
  const Watchdog::Phase phase(watchdog, RunPhase::kEvaluation, loaded.step);
  AttentionReport report;
  std::vector<HeatMapGroup> maps;  // of the first example
  for (int64_t i = 0; i < examples.count; ++i) {
    const auto attentions = AttentionWeightsOf(loaded.replica->trained(), examples.example(i));
    report.Add(attentions);
    if (i == 0) maps = MapsOf(attentions, options);
    watchdog.Alive();
  }
  if (!options.svg.empty()) {
    WriteChosenFile(options.svg, HeatMapsSvg(maps,
                                             "Weights of attention: a row is what a position "
                                             "reads, darker where it reads more"));
  }
  if (!options.json) return fmt::print("{}", report.Text());
  Json all{{"checkpoint", loaded.path.string()},
           {"step", loaded.step},
           {"examples", examples.count},
           {"attentions", report.ToJson()}};
  if (options.weights) all["first_example"] = JsonOf(maps);
  fmt::print("{}\n", JsonText(all));
}

}  // namespace

Action SetUpInspectAttention(CLI::App& app) {
  const auto options = std::make_shared<AttentionOptions>();
  options->checkpoint = AddCheckpointOptions(app);
  auto* input = app.add_option("--input", options->input,
                               "Show how the model reads this text, as score reads it, instead of "
                               "validation examples")
                    ->type_name("TEXT");
  app.add_option("--target", options->target, "The text that the model writes for it")
      ->type_name("TEXT")
      ->needs(input);
  app.add_option("--examples", options->examples, "Take the means over this many examples")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->excludes(input);
  app.add_option("--svg", options->svg,
                 "Draw what each head reads in the first example to this file")
      ->type_name("FILE");
  Repeatable(app.add_option("--layer", options->layers,
                            "Draw the layers whose name contains this, instead of the first, the "
                            "middle and the last"))
      ->type_name("NAME");
  app.add_option("--positions", options->positions, "Draw this many of the first positions")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  auto* json = app.add_flag("--json", options->json, "Print JSON, with a histogram of the weights");
  app.add_flag("--weights", options->weights, "With --json: print what --svg draws as numbers, too")
      ->needs(json);
  return [options] {
    // Only the CPU has a kernel that keeps the weights.
    options->checkpoint->overrides.emplace_back("train.device=CPU");
    return WithRanks("inspect", [&](Communicator& ranks, Watchdog& watchdog) {
      const LoadedModel loaded = options->checkpoint->LoadOnRanks(kForGeneration, ranks, watchdog);
      const ShownExamples examples = options->input
                                         ? GivenExample(loaded, *options)
                                         : ValidationExamples(loaded, *options, ranks, watchdog);
      if (ranks.rank() == 0) Show(loaded, examples, *options, watchdog);
      return ExitCode::kDone;
    });
  };
}

}  // namespace syntra
