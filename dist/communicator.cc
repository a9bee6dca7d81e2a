// SPDX-License-Identifier: Apache-2.0
#include "dist/communicator.h"

#include <cstdint>
#include <cstring>
#include <span>

#include "base/divide.h"
#include "base/text.h"
#include "dist/launch.h"
#include "dist/mpi.h"
#include "dist/self.h"

namespace syntra {

bool AnyRank(Communicator& ranks, bool flag) { return LargestOfRanks(ranks, flag) > 0; }

int64_t LargestOfRanks(Communicator& ranks, int64_t number) {
  SYNTRA_CHECK(std::abs(number) <= int64_t{1} << 53, "{} is no exact double", number);
  auto largest = static_cast<double>(number);
  ranks.AllReduceMax(std::span(&largest, 1));
  return static_cast<int64_t>(largest);
}

void BroadcastText(Communicator& ranks, std::string* text) {
  if (ranks.size() == 1) return;
  text->resize(LargestOfRanks(ranks, ranks.rank() == 0 ? std::ssize(*text) : 0));
  // The communicators move words.
  std::vector<int32_t> words(DivideUp(text->size(), sizeof(int32_t)));
  if (words.empty()) return;
  std::memcpy(words.data(), text->data(), text->size());
  ranks.Broadcast({words.data(), {DType::kI32, {static_cast<int64_t>(words.size())}}}, 0);
  std::memcpy(text->data(), words.data(), text->size());
}

std::vector<std::string> AllGatherLines(Communicator& ranks, std::string_view line) {
  SYNTRA_CHECK(line.find('\n') == line.npos, "a line with a line end in it: {}", line);
  std::string text = Join(ranks.Gather(line), "\n");
  BroadcastText(ranks, &text);
  return Split(text, '\n');
}

std::unique_ptr<Communicator> MakeCommunicator(int* argc, char*** argv) {
  const Launch launch = DetectLaunch();
  CheckConnection(launch);
  if (!launch.use_mpi) return std::make_unique<SelfCommunicator>();
  auto communicator = std::make_unique<MpiCommunicator>(argc, argv);
  CheckWorldSize(launch, communicator->size());
  return communicator;
}

}  // namespace syntra
