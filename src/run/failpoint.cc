// SPDX-License-Identifier: Apache-2.0
#include "run/failpoint.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr std::string_view kNames[] = {
    "gradient_nan",      "nan_batch",      "wrong_parameter", "stop_prepare",  "stop_evaluation",
    "slow_rank",         "freeze_init",    "freeze_prepare",  "freeze_load",   "freeze_step",
    "freeze_evaluation", "freeze_compare", "freeze_save",     "freeze_saving", "freeze_answer",
    "freeze_end",        "slow_saving",    "fail_step",       "wrong_start"};

struct Order {
  std::string name;
  int64_t first = 0, last = 0;
  int64_t rank = -1;  // the last one
};

Order ParseOrder(const std::string& text) {
  Order order;
  const size_t at = text.find('@');
  const size_t colon = std::min(text.find(':'), text.size());
  bool good = at < colon;
  if (good) {
    order.name = text.substr(0, at);
    const std::string steps = text.substr(at + 1, colon - at - 1);
    const size_t dash = steps.find('-');
    good = ParseInt64(steps.substr(0, dash), &order.first);
    order.last = order.first;
    if (good && dash != std::string::npos) good = ParseInt64(steps.substr(dash + 1), &order.last);
    if (good && colon < text.size()) good = ParseInt64(text.substr(colon + 1), &order.rank);
  }
  if (!good || std::ranges::find(kNames, order.name) == std::end(kNames)) {
    Fail(ExitCode::kConfig, "SYNTRA_FAILPOINT: \"{}\" is not NAME@STEP or NAME@FIRST-LAST[:RANK]",
         text);
  }
  return order;
}

std::vector<Order> ParseOrders() {
  std::vector<Order> orders;
  const char* text = std::getenv("SYNTRA_FAILPOINT");
  if (!text || !*text) return orders;
  for (const std::string& part : Split(text, ',')) orders.push_back(ParseOrder(part));
  Log().warn("SYNTRA_FAILPOINT is set: this run has faults on purpose");
  return orders;
}

}  // namespace

bool Failpoint(std::string_view name, int64_t step, int rank, int ranks) {
  static const std::vector<Order> orders = ParseOrders();
  for (const Order& order : orders) {
    if (order.name != name || step < order.first || step > order.last) continue;
    if (rank != (order.rank >= 0 ? order.rank : ranks - 1)) continue;
    Log().warn("failpoint {} at step {} on rank {}", name, step, rank);
    return true;
  }
  return false;
}

}  // namespace syntra
