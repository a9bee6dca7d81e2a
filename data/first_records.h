// SPDX-License-Identifier: Apache-2.0
// Checks the beginning of every corpus file, before hours are spent on preparing the first of them.
#pragma once

namespace syntra {

class DataConfig;

// Opens every training and validation file and reads its records up to the first good one: a few
// kilobytes of each file, on all threads. Throws one Error that lists the files whose beginning
// PrepareCorpus would refuse, each with its reason: missing field (and the fields that exist),
// wrong format, damage, not readable. Later records are not checked. The error is kData, or
// kResources if a file could not be read for lack of permission or memory.
void CheckFirstRecords(const DataConfig& config);

}  // namespace syntra
