// SPDX-License-Identifier: Apache-2.0
// checkpoint.initial: a new run that starts from the parameters of another.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "configs/schema/config.pb.h"
#include "convert/stored_model.h"
#include "dist/communicator.h"
#include "train/replica.h"
#include "train/snapshot.h"

namespace syntra {

// The model that checkpoint.initial names, opened and verified once for everything that a run takes
// from it.
struct InitialModel : StoredParameters {
  std::string config;                    // as text; empty: a file of tensors alone
  std::optional<std::string> tokenizer;  // the SentencePiece model's bytes
};

// Opens what checkpoint.initial_kept_in holds or, if that is nothing yet, what checkpoint.initial
// names: a model of any format (convert/formats.h), which for checkpoints is what OpenNewest finds,
// or a single HDF5 file of tensors. Throws Error(kCheckpoint) for anything else, and Error(kConfig)
// if a checkpoint of another checkpoint.initial is kept. nullopt if the field is not set, or if the
// run directory has checkpoints, from which the run continues. A directory of another format that
// has no tokenizer is taken to have data.tokenizer.
std::optional<InitialModel> InitialOf(const Config& config);

// Keeps `opened`, which is InitialOf(config), in checkpoint.initial_kept_in, if that is set and
// `opened` is a checkpoint. Returns what is kept: of several processes that come at once, the
// first one's. Throws Error(kResources).
std::optional<InitialModel> KeepInitial(std::optional<InitialModel> opened, const Config& config);

// The size of everything that InitialOf may read.
double InitialBytes(const CheckpointConfig& config);

// Collective. The model that rank 0 has opened by InitialOf, on every rank; the others open the
// same one, unless they are given what they have opened. On its own each might find another
// checkpoint, where a run is saving.
std::optional<InitialModel> InitialOnAllRanks(std::optional<InitialModel> opened,
                                              const Config& config, Communicator& ranks);

// The model in a directory of a format other than this program's checkpoints; nullopt if there is
// none. `tokenizer`: the SentencePiece model of a directory that has none; "": it must have one.
std::optional<StoredModel> OpenForeign(const Path& path, const Path& tokenizer = {});

// The configuration of the model with which the run continues or starts: that of its newest
// checkpoint or, if it has none, that of `initial`, which is InitialOf(config). nullopt if there is
// no such model, or it is a file that holds tensors alone.
std::optional<Config> ConfigOfStart(const Config& config,
                                    const std::optional<InitialModel>& initial);

// The parameters of a start that a model takes: those of the same name and shape.
struct InitialMatch {
  std::set<std::string> taken;
  std::string summary;      // "runs/a at step 1,000: 72 of 74 parameters"
  std::string differences;  // one a line; empty: both have the same parameters and tokenizer
};

// If they differ, checkpoint.initial_missing decides: FAIL throws Error(kCheckpoint) with the
// differences. If they have nothing in common, it always throws.
InitialMatch MatchInitial(const StoredParameters& initial, const CheckpointConfig& config,
                          const ParameterStore& model, const std::string& tokenizer_identity);

// Puts the parameters that MatchInitial takes in the place of the replica's, which are initialised,
// and sets `identity.initial`. With checkpoint.initial_state CONTINUED, the optimizer's state of
// these parameters and its count of steps come with them. Throws as MatchInitial.
void LoadInitial(StoredParameters& initial, const CheckpointConfig& config, Replica& replica,
                 RunIdentity* identity);

}  // namespace syntra
