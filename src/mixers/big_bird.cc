// SPDX-License-Identifier: Apache-2.0
// BigBird (Zaheer et al. 2020, section 2, internal transformer construction): dot-product attention
// between blocks of positions. A block reads itself, its neighbours, the first and the last block,
// and random ones; the first and the last block read every position.
#include <algorithm>

#include "core/random.h"
#include "mixers/blocks.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

class BigBird final : public TokenMixer {
 public:
  explicit BigBird(const BigBirdConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t heads = config_.heads(), size = config_.head_size();
    return {.packed_rows = PackedRows::kIndependent,
            .sees_order = config_.relative_bias(),
            .bias_heads = config_.relative_bias() ? heads : 0,
            .limits = {LengthLimit::OfMaxLength(config_.max_length())},
            .per_token = {{heads * size, {"heads", "head_size"}}}};
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    const int64_t length = shape[1], size = config_.block_size();
    SYNTRA_CHECK(length <= config_.max_length(), "{} positions for blocks of {}", length,
                 config_.max_length());
    const AttentionOperands operands{.query = ProjectQuery(scope, HeadsOf(config_), input.x),
                                     .key = ProjectKey(scope, HeadsOf(config_), input.x),
                                     .relative_bias = input.relative_bias,
                                     .value = ProjectValue(scope, HeadsOf(config_), input.x)};
    const int64_t end = std::min(length, last_block() * size);  // of what is not the last block
    const auto all = AttentionMask::Within(input.segments, {}, false);
    AttentionMask some = all;
    some.block = size;
    if (size < end) some.key_blocks = BlocksRead(scope, 1, (end - 1) / size + 1);
    std::vector<Value> parts;
    const auto add = [&](int64_t from, int64_t to, const AttentionMask& mask) {
      if (from >= to) return;
      parts.push_back(AttendFrom(scope, config_.heads(), operands, mask, from, to));
    };
    add(0, std::min(size, length), all);
    add(size, end, some);
    add(std::max(size, end), length, all);
    return ProjectOutput(scope, Concatenate(scope, 1, parts), shape[2]);
  }

 private:
  // The last block of the longest sequence.
  int64_t last_block() const { return (config_.max_length() - 1) / config_.block_size(); }

  // The blocks that blocks [first, end) of each head read, i32 [H, blocks, blocks read].
  Value BlocksRead(const Scope& scope, int64_t first, int64_t end) const {
    const int64_t count = std::min<int64_t>(5 + config_.random_blocks(), last_block() + 1);
    std::vector<int32_t> blocks;
    for (int64_t head = 0; head < config_.heads(); ++head) {
      const RandomKey key = DeriveKey(0, scope.prefix(), head);
      for (int64_t block = first; block < end; ++block) {
        std::vector<int64_t> read = {0, block - 1, block, block + 1, last_block()};
        AddRandom(key, block, read);
        std::ranges::sort(read);
        read.erase(std::unique(read.begin(), read.end()), read.end());
        blocks.insert(blocks.end(), read.begin(), read.end());
        blocks.insert(blocks.end(), count - std::ssize(read), -1);
      }
    }
    return scope.program().Constant({config_.heads(), end - first, count}, std::move(blocks));
  }

  // Adds blocks that are not yet among `read`: those whose random words are the smallest.
  void AddRandom(RandomKey key, int64_t block, std::vector<int64_t>& read) const {
    std::vector<std::pair<uint32_t, int64_t>> others;
    for (int64_t other = 0; other <= last_block(); ++other) {
      if (std::ranges::count(read, other) > 0) continue;
      others.emplace_back(RandomAt(key, other, block)[0], other);
    }
    std::ranges::sort(others);
    for (int64_t i = 0; i < std::min<int64_t>(config_.random_blocks(), std::ssize(others)); ++i) {
      read.push_back(others[i].second);
    }
  }

  BigBirdConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_big_bird(const MixerConfig& config) {
  return std::make_unique<BigBird>(config.big_bird());
}

}  // namespace syntra
