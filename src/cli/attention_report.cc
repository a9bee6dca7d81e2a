// SPDX-License-Identifier: Apache-2.0
#include "cli/attention_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/text_table.h"

namespace syntra {
namespace {

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

}  // namespace

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

}  // namespace syntra
