// SPDX-License-Identifier: Apache-2.0
#include "decode/share.h"

#include <algorithm>

namespace syntra {
namespace {

double Next(std::span<const double>* values) {
  SYNTRA_CHECK(!values->empty(), "a rank sent too few results");
  const double value = values->front();
  *values = values->subspan(1);
  return value;
}

}  // namespace

void Put(const Hypotheses& hypotheses, std::vector<double>* values) {
  values->push_back(static_cast<double>(hypotheses.size()));
  for (const Hypothesis& hypothesis : hypotheses) {
    values->push_back(hypothesis.log_probability);
    values->push_back(hypothesis.score);
    values->push_back(static_cast<double>(hypothesis.ids.size()));
    values->insert(values->end(), hypothesis.ids.begin(), hypothesis.ids.end());
  }
}

void Take(std::span<const double>* values, Hypotheses* hypotheses) {
  hypotheses->assign(static_cast<size_t>(Next(values)), {});
  for (Hypothesis& hypothesis : *hypotheses) {
    hypothesis.log_probability = Next(values);
    hypothesis.score = Next(values);
    hypothesis.ids.resize(static_cast<size_t>(Next(values)));
    for (int32_t& id : hypothesis.ids) id = static_cast<int32_t>(Next(values));
  }
}

void Put(const std::vector<double>& scores, std::vector<double>* values) {
  values->push_back(static_cast<double>(scores.size()));
  values->insert(values->end(), scores.begin(), scores.end());
}

void Take(std::span<const double>* values, std::vector<double>* scores) {
  scores->resize(static_cast<size_t>(Next(values)));
  for (double& score : *scores) score = Next(values);
}

std::vector<std::vector<double>> GatherValues(Communicator& ranks, std::span<const double> values) {
  const auto own = static_cast<double>(values.size());
  std::vector<int64_t> ends;
  for (const double count : ranks.AllGather(std::span(&own, 1))) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<int64_t>(count));
  }
  const Shares shares(ends);
  std::vector<double> all(shares.elements());
  std::ranges::copy(values, all.begin() + shares.begin(ranks.rank()));
  // A tensor has no doubles; two words are one.
  const Shares words = shares.Times(sizeof(double) / sizeof(int32_t));
  if (words.elements() > 0) {
    ranks.AllGather(TensorView{all.data(), {DType::kI32, {words.elements()}}}, words);
  }
  std::vector<std::vector<double>> by_rank;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    by_rank.emplace_back(all.begin() + shares.begin(rank), all.begin() + shares.end(rank));
  }
  return by_rank;
}

}  // namespace syntra
