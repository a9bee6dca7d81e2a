// SPDX-License-Identifier: Apache-2.0
// BigBird (Zaheer et al. 2020, section 2, internal transformer construction): dot-product attention
// between blocks of positions. A block reads itself, its neighbours, the first and the last block,
// and random ones; the first and the last block read every position.
#include <algorithm>

#include "core/random.h"
#include "mixers/blocks.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/attention.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

class BigBird final : public TokenMixer {
 public:
  explicit BigBird(const BigBirdConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t length = config_.max_length();
    const int64_t heads = config_.heads(), size = config_.head_size();
    return {.packed_rows = PackedRows::kIndependent,
            .sees_order = false,
            .limits = {{length, "big_bird.max_length", std::to_string(length)}},
            .per_token = {{heads * size, {"big_bird.heads", "big_bird.head_size"}}}};
  }

  void Validate(const FieldReport&) const override {}

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    SYNTRA_CHECK(shape[1] <= config_.max_length(), "{} positions for blocks of {}", shape[1],
                 config_.max_length());
    Operands operands{.query = ProjectQuery(scope, heads(), input.x),
                      .key = ProjectKey(scope, heads(), input.x),
                      .value = ProjectValue(scope, heads(), input.x),
                      .segments = AsRows(scope, input.segments)};
    for (Value* each : {&operands.query, &operands.key, &operands.value, &operands.segments}) {
      *each = PadToMultiple(scope, *each, config_.block_size());
    }
    const int64_t blocks = scope.TypeOf(operands.query).shape[1] / config_.block_size();
    std::vector<Value> parts;
    parts.push_back(ReadAll(scope, operands, 0));
    const int64_t last = blocks == last_block() + 1 ? blocks - 1 : blocks;
    if (last > 1) parts.push_back(ReadSome(scope, operands, 1, last));
    if (last > 0 && last < blocks) parts.push_back(ReadAll(scope, operands, last));
    const Value mixed = Concatenate(scope, 1, parts);
    return ProjectOutput(scope, First(scope, mixed, 1, shape[1]), shape[2]);
  }

 private:
  // Of whole blocks: [B, T, H * K], and segments f32 [B, T, 1].
  struct Operands {
    Value query, key, value, segments;
  };

  Heads heads() const { return {config_.heads(), config_.head_size(), config_.dropout()}; }
  // The last block of the longest sequence.
  int64_t last_block() const { return (config_.max_length() - 1) / config_.block_size(); }

  // What the queries of one block get from every position, [B, b, H * K].
  Value ReadAll(const Scope& scope, const Operands& operands, int64_t block) const {
    const int64_t size = config_.block_size();
    const auto own = [&](Value x) { return Slice(scope, x, 1, block * size, size); };
    return Attention(scope.program(), config_.heads(),
                     {.query = own(operands.query), .key = operands.key, .value = operands.value},
                     {.query_segments = AsSegments(scope, own(operands.segments)),
                      .key_segments = AsSegments(scope, operands.segments)});
  }

  // What the queries of blocks [first, end) get from the blocks that they read, as
  // [B, T', H * K]. Heads read different blocks, so each is a row of its own.
  Value ReadSome(const Scope& scope, const Operands& operands, int64_t first, int64_t end) const {
    const int64_t size = config_.block_size(), count = config_.heads(), width = config_.head_size();
    const Shape shape = scope.TypeOf(operands.query).shape;
    const int64_t batch = shape[0], blocks = shape[1] / size;
    const BlockReads queries = Own(first, end, blocks);
    const BlockReads keys = Reads(scope, first, end, blocks);
    // [B, T, H * K] as [B, H * N, b, K]; the segments are those of every head.
    const auto by_head = [&](Value x) {
      const bool shared = x == operands.segments;
      x = Reshape(scope, x, {batch, blocks, size, shared ? 1 : count, shared ? 1 : width});
      if (shared) {
        x = scope.One(
            "broadcast_to",
            {{"shape", Attributes::Integers{batch, blocks, size, count, 1}}, {"dtype", "f32"}},
            {x, {}});
      }
      x = Transpose(scope, x, {0, 3, 1, 2, 4});
      return Reshape(scope, x, {batch, count * blocks, size, shared ? 1 : width});
    };
    const Value segments = by_head(operands.segments);
    const Value mixed =
        Attention(scope.program(), 1,
                  {.query = ReadBlocks(scope, by_head(operands.query), queries),
                   .key = ReadBlocks(scope, by_head(operands.key), keys),
                   .value = ReadBlocks(scope, by_head(operands.value), keys)},
                  {.query_segments = AsSegments(scope, ReadBlocks(scope, segments, queries)),
                   .key_segments = AsSegments(scope, ReadBlocks(scope, segments, keys))});
    const Value rows = Transpose(
        scope, Reshape(scope, mixed, {batch, count, (end - first) * size, width}), {0, 2, 1, 3});
    return Reshape(scope, rows, {batch, (end - first) * size, count * width});
  }

  // Each block of each head itself.
  BlockReads Own(int64_t first, int64_t end, int64_t blocks) const {
    BlockReads reads{1, {}};
    for (int64_t head = 0; head < config_.heads(); ++head) {
      for (int64_t block = first; block < end; ++block) {
        reads.blocks.push_back(static_cast<int32_t>(head * blocks + block));
      }
    }
    return reads;
  }

  // What each block of each head reads. Blocks behind the row are padding.
  BlockReads Reads(const Scope& scope, int64_t first, int64_t end, int64_t blocks) const {
    const auto none = static_cast<int32_t>(config_.heads() * blocks);
    BlockReads reads{5 + config_.random_blocks(), {}};
    for (int64_t head = 0; head < config_.heads(); ++head) {
      const RandomKey key = DeriveKey(0, scope.prefix(), head);
      for (int64_t block = first; block < end; ++block) {
        std::vector<int64_t> read = {0, block - 1, block, block + 1, last_block()};
        AddRandom(key, block, read);
        std::ranges::sort(read);
        read.erase(std::ranges::unique(read).begin(), read.end());
        std::erase_if(read, [&](int64_t each) { return each >= blocks; });
        for (const int64_t each : read) {
          reads.blocks.push_back(static_cast<int32_t>(head * blocks + each));
        }
        reads.blocks.insert(reads.blocks.end(), reads.count - std::ssize(read), none);
      }
    }
    return reads;
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
