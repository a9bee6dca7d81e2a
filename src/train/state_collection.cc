// SPDX-License-Identifier: Apache-2.0
#include "train/state_collection.h"

#include <algorithm>

#include "base/text.h"
#include "checkpoint/finite.h"

namespace syntra {
namespace {

constexpr int kDone = -1;

// Elements that ranks pass at a time: 16 MiB.
constexpr int64_t kPiece = int64_t{4} << 20;

}  // namespace

StateCollection::StateCollection(Replica& replica, Communicator& ranks)
    : ranks_(ranks), is_shared_(replica.shared().size() > 0) {
  const bool is_chief = ranks.rank() == 0;
  if (!is_chief && !is_shared_) return;
  own_ = replica.FetchTensors();
  if (is_shared_) ShareRanges();
  std::vector<HostTensor> checked;  // by no other rank
  for (size_t i = 0; i < own_.size(); ++i) {
    if (is_chief || IsInParts(i)) checked.push_back(own_[i]);
    tensors_.push_back(
        {own_[i].name, own_[i].type,
         IsInParts(i) ? nullptr : reinterpret_cast<const std::byte*>(own_[i].values)});
  }
  not_finite_ = NotFinite(RecordsOf(checked));
  if (!is_shared_) return;
  std::vector<std::string> of_all = ranks.Gather(not_finite_);
  std::erase(of_all, "");
  not_finite_ = Join(of_all, ", ");
}

void StateCollection::ShareRanges() {
  std::vector<double> mine;
  for (const HostTensor& tensor : own_) {
    mine.push_back(static_cast<double>(tensor.held.begin));
    mine.push_back(static_cast<double>(tensor.held.end));
  }
  held_ = ranks_.AllGather(std::span<const double>(mine));
}

ElementRange StateCollection::HeldBy(int rank, size_t tensor) const {
  const double* held = &held_[2 * (rank * own_.size() + tensor)];
  return {static_cast<int64_t>(held[0]), static_cast<int64_t>(held[1])};
}

bool StateCollection::IsInParts(size_t tensor) const {
  return is_shared_ && HeldBy(0, tensor).size() < own_[tensor].type.shape.size();
}

int StateCollection::Request(int tensor) {
  ranks_.Broadcast({&tensor, {DType::kI32, {1}}}, 0);
  return tensor;
}

void StateCollection::Bring(std::span<TensorRecord* const> tensors) {
  const auto place = [&](const TensorRecord& record) {
    return std::ranges::find(own_, record.name, &HostTensor::name) - own_.begin();
  };
  size_t bytes = 0;
  for (const TensorRecord* record : tensors) {
    if (IsInParts(place(*record))) bytes += AlignUp(record->type.bytes());
  }
  if (brought_.size() < bytes) brought_ = Buffer(bytes, "a checkpoint's shared tensors");
  std::byte* to = brought_.data();
  for (TensorRecord* record : tensors) {
    const auto tensor = static_cast<int>(place(*record));
    if (!IsInParts(tensor)) continue;
    Move(Request(tensor), reinterpret_cast<float*>(to));
    record->data = to;
    to += AlignUp(record->type.bytes());
  }
}

void StateCollection::Finish() { Request(kDone); }

void StateCollection::Serve() {
  for (int tensor = Request(kDone); tensor != kDone; tensor = Request(kDone)) Move(tensor, nullptr);
}

void StateCollection::Move(size_t tensor, float* to) {
  if (passing_.size() == 0) passing_ = Buffer(kPiece * sizeof(float), "a checkpoint's tensors");
  auto* passing = reinterpret_cast<float*>(passing_.data());
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const ElementRange held = HeldBy(rank, tensor);
    const float* own = rank == ranks_.rank() ? own_[tensor].values : nullptr;
    for (int64_t begin = held.begin; begin < held.end; begin += kPiece) {
      const int64_t count = std::min(kPiece, held.end - begin);
      if (own) std::copy_n(own + (begin - held.begin), count, passing);
      if (rank != 0) ranks_.Broadcast({passing, {DType::kF32, {count}}}, rank);
      if (to) std::copy_n(passing, count, to + begin);
    }
  }
}

}  // namespace syntra
