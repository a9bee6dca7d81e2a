// SPDX-License-Identifier: Apache-2.0
#include "train/describe.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "configs/schema/kind_of.h"
#include "model/programs.h"

namespace syntra {
namespace {

std::string DescribeMixer(const MixerConfig& mixer) {
  if (const std::string kind = MixerKind(mixer); kind != "attention") return kind;
  std::vector<std::string> terms;
  for (const ScoreTerm& term : mixer.attention().term()) terms.push_back(KindOf(term));
  if (terms.empty()) terms.push_back("dot_product");
  return Join(terms, " + ");
}

// "random + dot_product", or "5 random, 1 dot_product" where not all layers mix alike.
std::string DescribeStack(const ModelConfig& model, Side side) {
  std::vector<std::pair<std::string, int64_t>> mixers;
  for (const LayerGroup& group : LayersOf(model, side)) {
    const std::string mixer = DescribeMixer(group.mixer);
    if (mixers.empty() || mixers.back().first != mixer) mixers.emplace_back(mixer, 0);
    mixers.back().second += group.repeat;
  }
  if (mixers.size() == 1) return mixers[0].first;
  std::vector<std::string> parts;
  for (const auto& [mixer, layers] : mixers) parts.push_back(fmt::format("{} {}", layers, mixer));
  return Join(parts, ", ");
}

// The cores of one host, as an example of all.
std::string DescribeCores(const RunStart& start) {
  std::vector<std::string> cpus;
  for (size_t rank = 0; rank < start.cpus.size(); ++rank) {
    const bool is_new = cpus.empty() || cpus.back() != start.cpus[rank];
    if (start.hosts[rank] == start.hosts.front() && is_new) cpus.push_back(start.cpus[rank]);
  }
  return fmt::format("cores: the ranks of {} compute on cpus {}", start.hosts.front(),
                     Join(cpus, "; "));
}

}  // namespace

std::string DescribeModel(const ModelConfig& model, int64_t parameters) {
  std::vector<std::string> layers, mixers;
  for (const Side side : ArchitectureOf(model).sides()) {
    layers.push_back(std::to_string(LayerCount(model, side)));
    const std::string mixer = DescribeStack(model, side);
    if (mixers.empty()) {
      mixers.push_back(mixer);
    } else if (mixer != mixers.front()) {
      mixers.push_back(fmt::format("{} {}", NameOf(side), mixer));
    }
  }
  return fmt::format("{} layers of width {}, {}; {} parameters", Join(layers, "+"), model.width(),
                     Join(mixers, ", "), HumanCount(static_cast<double>(parameters)));
}

std::string DescribeModel(const ModelConfig& model) {
  return DescribeModel(model, DeclareParameters(Model(model)).element_count());
}

std::vector<std::string> DescribeStart(const Config& config, const RunStart& start) {
  const TrainConfig& train = config.train();
  const std::string steps = WithThousands(train.steps());
  const double epochs = static_cast<double>(train.steps()) *
                        static_cast<double>(train.batch_size()) /
                        static_cast<double>(start.rows_in_epoch);
  const std::set<std::string> hosts(start.hosts.begin(), start.hosts.end());
  const bool is_shared = train.sharding() == TrainConfig::OPTIMIZER_STATE && start.hosts.size() > 1;
  const bool is_wide = train.precision() == TrainConfig::FP32 && start.is_faster_in_bf16;
  std::vector<std::string> lines = {
      fmt::format("run {}: {}", train.directory(),
                  start.step == 0
                      ? fmt::format("{} of {}", Counted(train.steps(), "step"),
                                    Counted(train.batch_size(), "row"))
                      : fmt::format("{} of {} steps are done", WithThousands(start.step), steps)),
      "model: " + DescribeModel(config.model(), start.parameters),
      fmt::format("data: {}; the run takes {:.3g} epochs", start.data, epochs),
      fmt::format("machine: {} on {}, {} each, {} on {}{}{}",
                  Counted(static_cast<int64_t>(start.hosts.size()), "rank"),
                  Counted(static_cast<int64_t>(hosts.size()), "host"),
                  Counted(start.threads, "thread"), TrainConfig::Precision_Name(train.precision()),
                  start.backend, is_wide ? ", which is faster with train.precision=BF16" : "",
                  is_shared ? "; the ranks share the optimizer's state" : ""),
  };
  if (start.hosts.size() > 1) lines.push_back(DescribeCores(start));
  return lines;
}

}  // namespace syntra
