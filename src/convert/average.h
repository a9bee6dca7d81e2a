// SPDX-License-Identifier: Apache-2.0
// The mean of a run's last checkpoints, as one model (Vaswani et al. 2017, "Attention Is All You
// Need", section 6.1).
#pragma once

#include "convert/stored_model.h"

namespace syntra {

// The model whose trained parameters are the means, computed in double, of those of the `count`
// newest checkpoints of the run at `path`. Everything else is the newest one's. Throws
// Error(kConfig) if there are fewer, Error(kCheckpoint) if one of them is damaged or their models
// differ.
StoredModel OpenAverage(const Path& path, int count, const Path& tokenizer);

}  // namespace syntra
