// SPDX-License-Identifier: Apache-2.0
// MultiRC's two numbers (Khashabi et al. 2018; Wang et al. 2019): F1a, the F1 of "True" over all
// answers of all questions, and EM, the share of questions, the groups, whose answers are all
// judged rightly. A text that is no label is wrong in both.
#include <algorithm>
#include <map>

#include "metrics/f1_score.h"

namespace syntra {
namespace {

double ExactMatch(std::span<const Judgement> examples) {
  std::map<std::string, bool> groups;
  double right = 0, count = 0;
  for (const Judgement& one : examples) {
    const bool is_right = one.predicted == one.expected;
    if (one.group.empty()) {
      right += is_right;
      ++count;
    } else {
      const auto group = groups.emplace(one.group, true).first;
      group->second = group->second && is_right;
    }
  }
  right += static_cast<double>(
      std::ranges::count_if(groups, [](const auto& group) { return group.second; }));
  return 100 * right / (count + static_cast<double>(groups.size()));
}

std::vector<double> MultiRc(std::span<const Judgement> examples, int) {
  return {BinaryF1(examples), ExactMatch(examples)};
}

}  // namespace

Metric metric_multirc() {
  return {
      .reads = Metric::Reads::kLabels, .values = {"f1a", "em"}, .compute = MultiRc, .classes = 2};
}

}  // namespace syntra
