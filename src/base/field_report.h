// SPDX-License-Identifier: Apache-2.0
// Reports about fields of a configuration. The owner of a message checks its fields and reports
// errors here. It need not know where the message lies in the configuration: whoever reads the file
// finds the place of an error.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace syntra {

// "model" + "width" -> "model.width"; a list's elements are "model.mixer.attention.term[0]".
std::string FieldPath(const std::string& parent, std::string_view field);
std::string ElementPath(const std::string& list, int index);

// Takes the errors in the fields of one message, which lies at `path`.
class FieldReport {
 public:
  // `fields` are the paths of all fields that the broken rule reads. The first one that is set is
  // the place of the error. If one of them has an error of its own, this error is left out.
  using Sink =
      std::function<void(const std::vector<std::string>& fields, const std::string& message)>;

  explicit FieldReport(Sink sink, std::string path = "")
      : sink_(std::move(sink)), path_(std::move(path)) {}

  // The report of a message inside this one.
  FieldReport operator/(std::string_view field) const { return FieldReport(sink_, Path(field)); }

  const std::string& path() const { return path_; }
  std::string Path(std::string_view field) const { return FieldPath(path_, field); }

  // `message` says what is wrong, with whole paths, and what to do.
  void Add(const std::vector<std::string>& fields, const std::string& message) const {
    sink_(fields, message);
  }

 private:
  Sink sink_;
  std::string path_;
};

}  // namespace syntra
