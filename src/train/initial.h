// SPDX-License-Identifier: Apache-2.0
// checkpoint.initial: a new run that starts from the parameters of another.
#pragma once

#include <string>

#include "configs/schema/config.pb.h"
#include "convert/stored_model.h"
#include "train/replica.h"
#include "train/snapshot.h"

namespace syntra {

// What `path` names: a model of any format (convert/formats.h), of checkpoints what OpenNewest
// finds, or a single HDF5 file of tensors. Throws Error(kCheckpoint) for anything else.
StoredParameters OpenInitial(const Path& path);

// Puts the parameters of `initial` that the model has, in the same shape, in the place of the
// replica's, which are initialised, and sets `identity.initial`. If both do not have the same
// parameters, or not the same tokenizer, checkpoint.initial_missing decides: FAIL throws
// Error(kCheckpoint) with the differences, INITIALIZE logs them. If they have nothing in common, it
// always throws.
void LoadInitial(StoredParameters& initial, const CheckpointConfig& config, Replica& replica,
                 RunIdentity* identity);

}  // namespace syntra
