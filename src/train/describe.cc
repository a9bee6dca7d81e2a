// SPDX-License-Identifier: Apache-2.0
#include "train/describe.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "configs/schema/kind_of.h"
#include "model/encoder_decoder.h"
#include "model/programs.h"

namespace syntra {
namespace {

std::string DescribeMixer(const MixerConfig& mixer) {
  std::vector<std::string> terms;
  for (const ScoreTerm& term : mixer.attention().term()) terms.push_back(KindOf(term));
  if (terms.empty()) terms.push_back("dot_product");
  return Join(terms, " + ");
}

std::string Count(int64_t count, const char* thing) {
  return fmt::format("{} {}{}", WithThousands(count), thing, count == 1 ? "" : "s");
}

}  // namespace

std::string DescribeModel(const ModelConfig& model) {
  std::string mixers = DescribeMixer(model.mixer());
  if (model.has_decoder_mixer()) mixers += ", decoder " + DescribeMixer(model.decoder_mixer());
  const int64_t parameters = DeclareParameters(EncoderDecoder(model)).element_count();
  return fmt::format("{}+{} layers of width {}, {}; {} parameters", model.encoder_layers(),
                     model.decoder_layers(), model.width(), mixers,
                     HumanCount(static_cast<double>(parameters)));
}

std::vector<std::string> DescribeStart(const Config& config, const RunStart& start) {
  const TrainConfig& train = config.train();
  const std::string steps = WithThousands(train.steps());
  const double epochs = static_cast<double>(train.steps()) *
                        static_cast<double>(train.batch_size()) /
                        static_cast<double>(start.rows_in_epoch);
  const std::set<std::string> hosts(start.hosts.begin(), start.hosts.end());
  return {
      fmt::format("run {}: {}", train.directory(),
                  start.step == 0
                      ? fmt::format("{} steps of {} rows", steps, train.batch_size())
                      : fmt::format("{} of {} steps are done", WithThousands(start.step), steps)),
      "model: " + DescribeModel(config.model()),
      fmt::format("data: {}; the run takes {:.3g} epochs", start.data, epochs),
      fmt::format("machine: {} on {}, {} each, {} on {}",
                  Count(static_cast<int64_t>(start.hosts.size()), "rank"),
                  Count(static_cast<int64_t>(hosts.size()), "host"), Count(start.threads, "thread"),
                  TrainConfig::Precision_Name(train.precision()), start.backend),
  };
}

}  // namespace syntra
