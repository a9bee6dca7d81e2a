// SPDX-License-Identifier: Apache-2.0
// Which keys a query may read by the numbers of their rows alone: causal, in a window, a dilated
// window, or a window with global tokens (Beltagy et al. 2020, section 3.1).
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace syntra::attention {

struct Pattern {
  bool causal = false;  // only keys up to the query's own row
  // With a window w > 0, query i reads key j if i - j is a multiple of the dilation d and
  // |i - j| < w d. 0: every key.
  int64_t window = 0, dilation = 1;
  // With a window, the first `globals` rows read every key, and every query reads the keys of these
  // rows.
  int64_t globals = 0;

  SYNTRA_HOST_DEVICE bool is_window() const { return window > 0; }

  SYNTRA_HOST_DEVICE bool Allows(int64_t query, int64_t key) const {
    if (causal && key > query) return false;
    if (!is_window() || query < globals || key < globals) return true;
    const int64_t distance = query < key ? key - query : query - key;
    return distance < window * dilation && (dilation == 1 || distance % dilation == 0);
  }

  // Whether any, and whether all, of `queries` rows from `query` on may read any or all of `keys`
  // rows from `key` on. `some` may be true for pairs of which none is allowed.
  struct Extent {
    bool some, all;
  };
  SYNTRA_HOST_DEVICE Extent Of(int64_t query, int64_t queries, int64_t key, int64_t keys) const {
    const int64_t last_query = query + queries - 1, last_key = key + keys - 1;
    Extent extent{!causal || key <= last_query, !causal || last_key <= query};
    if (!is_window()) return extent;
    const int64_t reach = window * dilation;
    const bool global = query < globals || key < globals;
    const bool near = key < last_query + reach && query < last_key + reach;
    extent.some = extent.some && (global || near);
    extent.all =
        extent.all && (last_query < globals || last_key < globals ||
                       (dilation == 1 && last_key - query < reach && last_query - key < reach));
    return extent;
  }
};

}  // namespace syntra::attention
