// SPDX-License-Identifier: Apache-2.0
// A look at the beginning of every corpus file, and at the end of some, before hours are spent on
// the first of them.
#pragma once

namespace syntra {

class DataConfig;

// Opens every file of the training and the validation patterns and reads its records up to the
// first good one: a few kilobytes of each, on all threads. Throws one Error with all files that
// PrepareCorpus would refuse for these records, and why: no such field (and which there are),
// another format, damage, not readable. Files that CheckEnd finds to be cut short are named, too.
// Nothing after the first records is seen: a gzip or text file that was cut there passes, and is
// found when it is prepared. The error is kData, or kResources if a file could not be read for want
// of rights or memory.
void CheckFirstRecords(const DataConfig& config);

}  // namespace syntra
