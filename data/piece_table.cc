#include "data/piece_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace syntra {
namespace {

constexpr float kUnknownPenalty = 10.0f;
constexpr double kNone = -std::numeric_limits<double>::infinity();

// Of the UTF-8 character that starts with `lead`; stray bytes count for one.
size_t CharacterBytes(char lead, size_t left) {
  const auto byte = static_cast<uint8_t>(lead);
  const size_t bytes = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
  return std::min(bytes, left);
}

size_t Mix(uint64_t key) {
  key *= 0x9e3779b97f4a7c15ull;
  return key ^ (key >> 29);
}

}  // namespace

void PieceTable::Grow() {
  std::vector<uint64_t> keys(std::max<size_t>(1024, keys_.size() * 2));
  std::vector<uint32_t> children(keys.size());
  keys.swap(keys_);
  children.swap(children_);
  const size_t mask = keys_.size() - 1;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == 0) continue;
    size_t slot = Mix(keys[i]) & mask;
    while (keys_[slot] != 0) slot = (slot + 1) & mask;
    keys_[slot] = keys[i];
    children_[slot] = children[i];
  }
}

uint32_t PieceTable::Child(uint32_t node, uint8_t byte) const {
  const uint64_t key = (uint64_t{node} << 8 | byte) + 1;
  const size_t mask = keys_.size() - 1;
  for (size_t slot = Mix(key) & mask; keys_[slot] != 0; slot = (slot + 1) & mask) {
    if (keys_[slot] == key) return children_[slot];
  }
  return 0;
}

void PieceTable::Add(std::string_view piece, int32_t id, float score) {
  uint32_t node = 0;
  for (const char c : piece) {
    if (2 * id_of_node_.size() >= keys_.size()) Grow();
    const auto byte = static_cast<uint8_t>(c);
    uint32_t child = Child(node, byte);
    if (child == 0) {
      child = static_cast<uint32_t>(id_of_node_.size());
      id_of_node_.push_back(-1);
      const uint64_t key = (uint64_t{node} << 8 | byte) + 1;
      const size_t mask = keys_.size() - 1;
      size_t slot = Mix(key) & mask;
      while (keys_[slot] != 0) slot = (slot + 1) & mask;
      keys_[slot] = key;
      children_[slot] = child;
    }
    node = child;
  }
  id_of_node_[node] = id;
  if (score_of_id_.size() <= static_cast<size_t>(id)) score_of_id_.resize(id + 1);
  score_of_id_[id] = score;
  lowest_ = std::min(lowest_, score);
}

void PieceTable::Finish(int32_t unknown_id) {
  SYNTRA_CHECK(!keys_.empty());
  unknown_id_ = unknown_id;
  unknown_score_ = lowest_ - kUnknownPenalty;
}

template <typename Visit>
void PieceTable::VisitPrefixes(std::string_view text, const Visit& visit) const {
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Child(node, static_cast<uint8_t>(text[i]));
    if (node == 0) return;
    if (id_of_node_[node] >= 0) visit(i + 1, id_of_node_[node]);
  }
}

void PieceTable::Segment(std::string_view text, float start, bool with_margin,
                         Segmentation* result) {
  nodes_.assign(text.size() + 1, Node{});
  nodes_[0].score = start;
  result->characters = 0;
  for (size_t at = 0; at < text.size();) {
    const float here = nodes_[at].score;
    const size_t character = CharacterBytes(text[at], text.size() - at);
    bool has_single = false;
    VisitPrefixes(text.substr(at), [&](size_t length, int32_t id) {
      // The sum is compared in double before it is kept in float; ties depend on that.
      const double sum = static_cast<double>(score_of_id_[id]) + here;
      Node& node = nodes_[at + length];
      if (node.begin < 0 || sum > node.score) {
        node = {static_cast<float>(sum), static_cast<int32_t>(at), id};
      }
      has_single |= length == character;
    });
    if (!has_single) {
      const float sum = unknown_score_ + here;
      Node& node = nodes_[at + character];
      if (node.begin < 0 || sum > node.score) {
        node = {sum, static_cast<int32_t>(at), unknown_id_};
      }
    }
    at += character;
    ++result->characters;
  }
  path_.clear();
  for (auto at = static_cast<int32_t>(text.size()); at > 0; at = nodes_[at].begin) {
    path_.push_back(nodes_[at].id);
  }
  result->ids.clear();
  result->scores.clear();
  for (auto id = path_.rbegin(); id != path_.rend(); ++id) {
    const bool unknown = *id == unknown_id_;
    result->scores.push_back(unknown ? unknown_score_ : score_of_id_[*id]);
    if (unknown && !result->ids.empty() && result->ids.back() == unknown_id_) continue;
    result->ids.push_back(*id);
  }
  result->margin = with_margin ? Margin(text) : 0;
}

// The two best sums at every place, in double.
double PieceTable::Margin(std::string_view text) {
  best_.assign(text.size() + 1, kNone);
  second_.assign(text.size() + 1, kNone);
  best_[0] = 0;
  const auto offer = [&](size_t to, double sum) {
    if (sum > best_[to]) std::swap(sum, best_[to]);
    second_[to] = std::max(second_[to], sum);
  };
  for (size_t at = 0; at < text.size();) {
    const size_t character = CharacterBytes(text[at], text.size() - at);
    bool has_single = false;
    const auto step = [&](size_t length, double score) {
      offer(at + length, best_[at] + score);
      offer(at + length, second_[at] + score);
    };
    VisitPrefixes(text.substr(at), [&](size_t length, int32_t id) {
      step(length, score_of_id_[id]);
      has_single |= length == character;
    });
    if (!has_single) step(character, unknown_score_);
    at += character;
  }
  return best_[text.size()] - second_[text.size()];
}

}  // namespace syntra
