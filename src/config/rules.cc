// SPDX-License-Identifier: Apache-2.0
#include "config/rules.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/home.h"
#include "base/text.h"
#include "base/utf8.h"
#include "config/scalar.h"
#include "data/pattern.h"

namespace syntra {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fields outside the model whose rules about files and presence matter only to some commands.
struct PurposeOfField {
  std::string_view path;
  bool ConfigPurpose::*needed;
};
constexpr PurposeOfField kPurposes[] = {
    {"data.train", &ConfigPurpose::training_data},
    {"data.validation", &ConfigPurpose::validation_data},
    {"data.tokenizer", &ConfigPurpose::tokenizer},
    {"data.prepared", &ConfigPurpose::validation_data},
    {"train.directory", &ConfigPurpose::run},
    {"checkpoint.initial", &ConfigPurpose::run},
};

bool Needed(const std::string& path, const ConfigPurpose& purpose) {
  for (const PurposeOfField& entry : kPurposes) {
    if (path == entry.path) return purpose.*entry.needed;
  }
  return true;
}

constexpr const char* kIsDirectory = "it is a directory";

// Why `path` is not a file that can be read, or "".
std::string ReadFault(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return kIsDirectory;
  if (access(path.c_str(), R_OK) == 0) return "";
  // A disk or a file server that fails is no mistake of the configuration: whoever reads says it.
  return IsOfThePath(errno) ? SystemErrorText(errno) : "";
}

std::string PatternFault(const std::string& pattern) {
  if (!IsPattern(pattern)) {
    std::string fault = ReadFault(pattern);
    if (fault == kIsDirectory) fault += "; add /* to name all files in it";
    return fault.empty() ? "" : fmt::format("cannot read \"{}\": {}", Printable(pattern), fault);
  }
  if (!NamesOf(pattern).empty()) return "";
  const bool has_set = pattern.find('[') != std::string::npos;
  return fmt::format("no file matches \"{}\"{}", Printable(pattern),
                     has_set ? "; [ begins a set of characters, write [[] for itself" : "");
}

// What is wrong with a path. If it is relative, that includes the directory in which it was looked
// for: the command may have been meant for another one.
std::string FileFault(const Rule& rule, const std::string& text) {
  if (text.empty() || !(rule.existing_pattern() || rule.existing_path())) return "";
  std::string fault;
  if (rule.existing_pattern()) {
    fault = PatternFault(text);
  } else if (const std::string reason = ReadFault(text); !reason.empty()) {
    fault = fmt::format("cannot read \"{}\": {}", Printable(text), reason);
  }
  std::error_code code;
  if (fault.empty() || text.front() == '/') return fault;
  return fmt::format("{} (in {})", fault, std::filesystem::current_path(code).string());
}

bool IsPath(const Rule& rule) {
  return rule.path() || rule.existing_path() || rule.existing_pattern();
}

double NumberOf(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(reflection.GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, field);
    default:
      return 1;  // not a number: satisfies every rule of numbers
  }
}

std::string NumberFault(const Rule& rule, const Message& message, const FieldDescriptor* field) {
  const double value = NumberOf(message, field);
  const bool ok = std::isfinite(value) && !(rule.positive() && value <= 0) &&
                  !(rule.has_min() && value < rule.min()) &&
                  !(rule.has_max() && value > rule.max());
  if (ok) return "";
  const std::string wanted = std::isfinite(value) ? RuleText(*field) : "finite";
  return fmt::format("{} is not allowed; must be {}", ScalarToText(message, field), wanted);
}

class RuleCheck {
 public:
  RuleCheck(Layer* layer, const Location& fallback, const ConfigPurpose& purpose,
            Problems* problems)
      : layer_(layer), fallback_(fallback), purpose_(purpose), problems_(problems) {}

  void CheckMessage(const Message& message, const std::string& path) {
    const Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message.GetDescriptor()->field(i);
      const std::string field_path = FieldPath(path, field->name());
      if (!field->message_type()) {
        CheckScalar(message, field, field_path);
      } else if (field->is_repeated()) {
        for (int k = 0; k < reflection.FieldSize(message, field); ++k) {
          CheckMessage(reflection.GetRepeatedMessage(message, field, k),
                       ElementPath(field_path, k));
        }
      } else if (reflection.HasField(message, field) || !field->containing_oneof()) {
        // A message that is not set may still lack required fields.
        CheckMessage(reflection.GetMessage(message, field), field_path);
      }
    }
  }

 private:
  void CheckScalar(const Message& message, const FieldDescriptor* field, const std::string& path) {
    const Reflection& reflection = *message.GetReflection();
    const Rule& rule = field->options().GetExtension(syntra::rule);
    const bool needed = Needed(path, purpose_);
    const bool is_string = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    if (field->is_repeated()) {
      const int size = reflection.FieldSize(message, field);
      if (size == 0 && rule.required() && needed) AddMissing(path);
      for (int k = 0; k < size && is_string; ++k) {
        const std::string text = reflection.GetRepeatedString(message, field, k);
        if (text.empty() && rule.existing_pattern() && !rule.required()) {
          Add(ElementPath(path, k), "is empty; for none, write an empty list: " + path + "=[]");
          continue;
        }
        CheckString(rule, needed, text, ElementPath(path, k));
      }
      return;
    }
    if (is_string) {
      CheckString(rule, needed, reflection.GetString(message, field), path);
    } else if (reflection.HasField(message, field)) {
      const std::string fault = NumberFault(rule, message, field);
      if (!fault.empty()) Add(path, fault);
    }
  }

  void CheckString(const Rule& rule, bool needed, const std::string& text,
                   const std::string& path) {
    if (!IsUtf8(text)) {
      Add(path, "the string is not UTF-8");
    } else if (needed && rule.required() && text.empty()) {
      AddMissing(path);
    } else if (needed) {
      std::string fault = IsPath(rule) ? HomeFault(text) : "";
      if (fault.empty()) fault = FileFault(rule, text);
      if (!fault.empty()) Add(path, fault);
    }
  }

  void Add(const std::string& path, const std::string& fault) {
    AddFieldProblem(*layer_, fallback_, path, fmt::format("{}: {}", path, fault), problems_);
    layer_->broken.insert(path);
  }

  void AddMissing(const std::string& path) {
    if (!layer_->IsBroken(path)) {
      const Location* where = layer_->locations.PlaceOfMissing(path);
      problems_->Add(where ? *where : fallback_, path + ": must be set");
    }
    layer_->broken.insert(path);
  }

  Layer* const layer_;
  const Location& fallback_;
  const ConfigPurpose& purpose_;
  Problems* problems_;
};

}  // namespace

void AddFieldProblem(const Layer& layer, const Location& fallback, const std::string& path,
                     const std::string& message, Problems* problems) {
  if (layer.IsBroken(path)) return;
  const Location* where = layer.locations.Nearest(path);
  problems->Add(where ? *where : fallback, message);
}

void CheckRules(Layer* layer, const Location& fallback, const ConfigPurpose& purpose,
                Problems* problems) {
  RuleCheck(layer, fallback, purpose, problems).CheckMessage(layer->config, "");
}

std::string RuleText(const FieldDescriptor& field) {
  const Rule& rule = field.options().GetExtension(syntra::rule);
  std::vector<std::string> parts;
  if (rule.required()) parts.push_back("required");
  if (rule.positive()) parts.push_back("greater than 0");
  if (rule.has_min()) parts.push_back(fmt::format("at least {}", rule.min()));
  if (rule.has_max()) parts.push_back(fmt::format("at most {}", rule.max()));
  if (rule.existing_path()) parts.push_back("a file that can be read");
  if (rule.existing_pattern()) parts.push_back("a file or a pattern that matches files");
  return Join(parts, ", ");
}

}  // namespace syntra
