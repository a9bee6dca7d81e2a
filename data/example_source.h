// SPDX-License-Identifier: Apache-2.0
// Sources of examples. A source goes through its data in epochs, and the examples of an epoch can
// be asked for in any order. Everything is a function of (data, settings, seed, epoch, example):
// there is no state to save, and any rank can make any example.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/digest.h"
#include "data/example.h"

namespace syntra {

// The examples of one epoch, numbered from 0 in the order of the data. Const members may be called
// from several threads.
class ExampleEpoch {
 public:
  virtual ~ExampleEpoch() = default;

  virtual int64_t size() const = 0;
  // Known without making the example, so that rows can be planned ahead.
  virtual ExampleLengths LengthsOf(int64_t example) const = 0;
  // Begins to read what Write needs from the disk, if it is there, and does not wait.
  virtual void Prefetch(int64_t /*example*/) const {}
  // Fills `slots`, which have LengthsOf(example).
  virtual void Write(int64_t example, const ExampleSlots& slots) const = 0;

  // Examples that each fill a row, so that no plan of packed rows needs to list them; a source that
  // knows none calls all its examples short. Each kind is numbered from 0, too.
  virtual int64_t full_count() const { return 0; }
  virtual int64_t FullExample(int64_t i) const { return i; }
  virtual int64_t ShortExample(int64_t i) const { return i; }
};

class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // The name in messages: "train", "cola".
  const std::string& name() const { return name_; }
  // Epochs are counted from 0; their sizes may differ a little. The source must outlive the epoch.
  virtual std::shared_ptr<const ExampleEpoch> Epoch(int64_t epoch) const = 0;
  // Identifies the data, in every process and on every machine.
  virtual Digest ContentDigest() const = 0;

 protected:
  explicit ExampleSource(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

}  // namespace syntra
