// SPDX-License-Identifier: Apache-2.0
#include "config/override.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/text.h"
#include "config/parser.h"
#include "config/scalar.h"
#include "config/suggest.h"

namespace syntra {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Of a path, or of what was meant as one: "batch-size", "term[-1]".
bool IsOfPath(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.[]").find(c) != std::string_view::npos;
}

// Walks down a dotted path, creating messages on the way, and sets the field at its end.
class Assignment {
 public:
  Assignment(const std::string& source, const Layer& lower, Layer* layer, Problems* problems)
      : source_(source),
        lower_(lower),
        layer_(*layer),
        problems_(*problems),
        message_(&layer->config),
        below_(&lower.config) {}

  void Set(const std::string& path, const std::string& value) {
    const std::vector<std::string> steps = Split(path, '.');
    for (size_t i = 0; i < steps.size(); ++i) {
      const size_t bracket = std::min(steps[i].find('['), steps[i].size());
      const std::string name = steps[i].substr(0, bracket), index = steps[i].substr(bracket);
      const FieldDescriptor* field = message_->GetDescriptor()->FindFieldByName(name);
      if (!field) return ReportUnknown(name, i + 1 < steps.size() ? steps.back() : "");
      owner_ = FieldPath(owner_, name);
      if (!KeepsElementKind(field)) return;
      const bool last = i + 1 == steps.size();
      if (index.empty() && last) return SetValue(field, value);
      if (!last && index.empty() && !field->is_repeated() && field->message_type()) {
        Enter(field);
      } else if (last || !EnterElement(field, index)) {
        return ReportPath(field, index);
      }
    }
  }

 private:
  // Of the field at owner_; checks that depend on it are then left out.
  void Report(const std::string& message) {
    layer_.broken.insert(owner_);
    problems_.Add({source_}, message);
  }

  void ReportUnknown(const std::string& name, const std::string& last) {
    const UnknownField unknown{*message_->GetDescriptor(), owner_, name, last};
    const std::vector<std::string> meant = MeantFields(unknown);
    layer_.broken.insert(meant.begin(), meant.end());
    problems_.Add({source_}, UnknownFieldMessage(unknown, meant));
  }

  void ReportPath(const FieldDescriptor* field, const std::string& index) {
    if (!field->is_repeated()) {
      Report(
          fmt::format("{} {}", owner_, field->message_type() ? "is not a list" : "has no fields"));
    } else if (!field->message_type() || index.empty()) {
      Report(fmt::format("{0} is a list; set the whole list, e.g. --set '{0}=[...]'{1}", owner_,
                         field->message_type() ? ", or a field of one element: [0]" : ""));
    } else {
      const bool exists = ElementOf(field, index).has_value();
      Report(fmt::format("{}{}: {}", owner_, Printable(index, 20),
                         exists ? "an element cannot be set as a whole; set a field of it, or the "
                                  "whole list"
                                : NoSuchElement(ElementCount(field))));
    }
  }

  static std::string NoSuchElement(int count) {
    if (count == 0) return "there is no such element: the list is empty; set the whole list";
    const std::string numbers = count == 1   ? "0"
                                : count == 2 ? "0 and 1"
                                             : fmt::format("0 to {}", count - 1);
    return fmt::format(
        "there is no such element: the list has {} ({}); set the whole list, or a field of an "
        "existing element",
        count, numbers);
  }

  // How many elements the list has in the layer below.
  int ElementCount(const FieldDescriptor* field) const {
    return below_ ? below_->GetReflection()->FieldSize(*below_, field) : 0;
  }

  // The element that "[2]" means; nothing if `index` is not one.
  std::optional<int> ElementOf(const FieldDescriptor* field, std::string_view index) const {
    int64_t k = 0;
    if (!index.ends_with(']') || !ParseInt64(index.substr(1, index.size() - 2), &k) || k < 0 ||
        k >= ElementCount(field)) {
      return std::nullopt;
    }
    return static_cast<int>(k);
  }

  void Enter(const FieldDescriptor* field) {
    if (!layer_.locations.Find(owner_)) layer_.locations.SetOnTheWay(owner_, {source_});
    const Reflection& reflection = *message_->GetReflection();
    message_ = reflection.MutableMessage(message_, field);
    below_ = below_ && reflection.HasField(*below_, field) ? &reflection.GetMessage(*below_, field)
                                                           : nullptr;
  }

  // Lists are replaced as a whole, so an element is changed in a copy of the list.
  bool EnterElement(const FieldDescriptor* field, std::string_view index) {
    if (!field->is_repeated() || !field->message_type()) return false;
    const std::optional<int> k = ElementOf(field, index);
    if (!k) return false;
    const Reflection& reflection = *message_->GetReflection();
    const int count = ElementCount(field);
    for (int i = 0; !in_element_ && i < count; ++i) {
      reflection.AddMessage(message_, field)
          ->CopyFrom(reflection.GetRepeatedMessage(*below_, field, i));
    }
    layer_.locations.CopyTree(lower_.locations, owner_);
    in_element_ = true;
    message_ = reflection.MutableRepeatedMessage(message_, field, *k);
    below_ = message_;
    owner_ = ElementPath(owner_, *k);
    return true;
  }

  // Naming another kind inside an element is a wrong index more often than a wish to replace it.
  bool KeepsElementKind(const FieldDescriptor* field) {
    const auto* oneof = field->containing_oneof();
    if (!in_element_ || !oneof) return true;
    const auto* kind = message_->GetReflection()->GetOneofFieldDescriptor(*message_, oneof);
    if (!kind || kind == field) return true;
    Report(fmt::format("{}: this element is {}, not {}", owner_, kind->name(), field->name()));
    return false;
  }

  // The value is a layer of its own: an element may have one of the field already.
  void SetValue(const FieldDescriptor* field, const std::string& value) {
    const std::unique_ptr<Message> message(message_->New());
    Layer set;
    set.locations.Set(owner_, {source_});
    const std::string stripped(StripSpace(value));
    const bool is_list = field->is_repeated() && stripped.starts_with('[');
    const bool quoted = stripped.starts_with('"') || stripped.starts_with('\'');
    if (field->type() != FieldDescriptor::TYPE_STRING || is_list || quoted) {
      ParseOverrideValue(source_, stripped, message.get(), field, owner_, &set, &problems_);
    } else if (const std::string error =
                   SetScalar(message.get(), field, {TokenKind::kString, value});
               !error.empty()) {
      Report(fmt::format("{}: {}", owner_, error));
    }
    const size_t outer = owner_.size() - std::min(owner_.size(), field->name().size() + 1);
    MergeMessage(*message, set.locations, owner_.substr(0, outer), message_, &layer_.locations);
    layer_.broken.merge(set.broken);
  }

  const std::string& source_;
  const Layer& lower_;
  Layer& layer_;
  Problems& problems_;
  Message* message_;      // where the walk is in the new layer
  const Message* below_;  // and in the one below; null where that sets nothing
  std::string owner_;     // path of message_
  bool in_element_ = false;
};

}  // namespace

void ParseOverride(const std::string& assignment, const Layer& lower, Layer* layer,
                   Problems* problems) {
  const std::string source = "--set " + Printable(assignment, 100);
  size_t end = 0;
  while (end < assignment.size() && IsOfPath(assignment[end])) ++end;
  const std::string path = assignment.substr(0, end);
  const std::string_view after = std::string_view(assignment).substr(end);
  const std::string_view rest = StripSpace(after);
  if (!path.empty() && rest.starts_with('=')) {
    // Spaces are part of a text, but not those around " = ".
    const size_t sign = after.find('=');
    const std::string_view value = after.substr(sign + 1);
    Assignment(source, lower, layer, problems)
        .Set(path, std::string(sign > 0 ? StripSpace(value) : value));
  } else if (!path.empty() && path.find('.') == std::string::npos && !rest.empty()) {
    ParseOverrideText(source, assignment, layer, problems);
  } else {
    problems->Add({source}, "expected FIELD=VALUE, e.g. --set train.steps=1000");
  }
}

}  // namespace syntra
