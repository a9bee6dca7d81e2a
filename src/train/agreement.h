// SPDX-License-Identifier: Apache-2.0
// Makes sure that ranks agree on everything that decides the run. Each computes its part of the
// same numbers and makes the same collective calls; ranks with different settings would train on a
// mixture, or wait for each other for ever. So they compare before they train.
//
// All calls are collective. If the ranks differ, all throw: rank 0 an Error that names what differs
// and on which ranks, the others one that leaves the message to rank 0.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/read.h"
#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "train/snapshot.h"

namespace syntra {

// Names and values, in the same order on all ranks as far as they are the same.
using Facts = std::vector<std::pair<std::string, std::string>>;

// The remedy where ranks see different files.
inline constexpr const char* kGiveSameFiles =
    "Give all ranks the same files, on a shared file system or as equal copies";
inline constexpr const char* kShareRunDirectory =
    "The run directory must be on a file system that all ranks share";

// `what`: "settings", for the message; `remedy`: a sentence without a full stop.
void CheckAgreement(Communicator& ranks, const Facts& facts, ExitCode code, const std::string& what,
                    const std::string& remedy);

// The program: its version, its file, the command that it runs. Error(kConfig).
void CheckSameProgram(Communicator& ranks, const std::string& command);

// The configuration, field by field, and the kind of device. Paths of run directories are compared
// as absolute ones. Only train.threads may differ, as machines do: no number depends on it.
// Error(kConfig).
void CheckSameSettings(Communicator& ranks, const Config& config, bool on_host);

// The digests of all ranks, by rank.
std::vector<uint64_t> GatherDigests(Communicator& ranks, uint64_t digest);

// The checkpoint that rank 0 has opened, opened by every rank: each on its own might find another,
// where a run is saving. nullopt if rank 0 has none. Throws Error(kCheckpoint) where a rank does
// not see it; `remedy` as of CheckAgreement.
std::optional<Checkpoint> OpenOnAllRanks(std::optional<Checkpoint> of_rank_0, Communicator& ranks,
                                         const std::string& remedy = kGiveSameFiles);

// The corpora and the tokenizer as each rank sees them. Throws Error(kData).
void CheckSameData(Communicator& ranks, const RunIdentity& identity);

}  // namespace syntra
