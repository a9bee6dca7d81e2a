// SPDX-License-Identifier: Apache-2.0
// A look at the beginning of every corpus file, and at the end of some, before hours are spent on
// the first of them.
#pragma once

#include <vector>

#include "base/file.h"

namespace syntra {

class DataConfig;

// Opens every file of the training and the validation patterns and reads its records up to the
// first good one that is not empty: a few kilobytes of each, on all threads. Throws one Error with
// all files that PrepareCorpus would refuse for these records, and why: no such field (and which
// there are), another format, damage, not readable. Files that CheckEnd finds to be cut short are
// named, too. Nothing after the first records is seen: a gzip or text file that was cut there
// passes, and is found when it is prepared. The error is kData, or kResources if a file could not
// be read for want of rights or memory. Throws as PrepareCorpus if no file of a split has a
// document; otherwise returns the files that have none.
std::vector<Path> CheckFirstRecords(const DataConfig& config);

}  // namespace syntra
