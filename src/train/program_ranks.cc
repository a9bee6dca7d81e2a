// SPDX-License-Identifier: Apache-2.0
#include "train/program_ranks.h"

#include <fmt/format.h>

#include "train/agreement.h"

namespace syntra {

void ProgramRanks::CheckAlike(const std::vector<std::string>& collectives) {
  Facts facts;
  for (const std::string& collective : collectives) {
    facts.emplace_back(fmt::format("exchange {}", facts.size() + 1), collective);
  }
  CheckAgreement(ranks_, facts, ExitCode::kConfig, "exchanges between ranks in their programs",
                 "All ranks must record the same program");
}

}  // namespace syntra
