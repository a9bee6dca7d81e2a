// SPDX-License-Identifier: Apache-2.0
#include "cli/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/gaps.h"

namespace syntra {
namespace {

std::string Indented(const std::string& text, size_t columns) {
  std::string lines;
  for (const std::string& line : WrapText(text, columns - 2)) lines += "  " + line + "\n";
  return lines;
}

// The corrupted text with its gaps as people read them: "[0]".
std::string TextWithGaps(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  const std::string text = tokenizer.Decode(ids);
  std::string readable;
  size_t from = 0;
  for (const SentinelPlace& place : tokenizer.FindSentinels(text)) {
    readable += fmt::format("{}[{}]", text.substr(from, place.begin - from), place.k);
    from = place.end;
  }
  return readable + text.substr(from);
}

std::string SpanText(const Tokenizer& tokenizer, const Spans& spans, int32_t k) {
  const auto span = spans.find(k);
  return span == spans.end() ? "-" : tokenizer.Decode(span->second);
}

// Rows "[k]  truth  model"; long cells go on below.
std::string GapTable(const Tokenizer& tokenizer, const Spans& truth, const Spans& model,
                     size_t columns) {
  constexpr size_t kGapColumns = 7;
  size_t width = 5;
  for (const auto& [k, span] : truth) {
    width = std::max(width, CodePointCount(tokenizer.Decode(span)));
  }
  width = std::min(width, (columns - kGapColumns - 3) / 2);
  const auto padded = [&](const std::string& text) {
    return text + std::string(width - CodePointCount(text), ' ');
  };
  std::string table = fmt::format("  gap  {} | model\n", padded("truth"));
  for (const auto& [k, span] : truth) {
    const auto left = WrapText(SpanText(tokenizer, truth, k), width);
    const auto right = WrapText(SpanText(tokenizer, model, k), columns - kGapColumns - width - 3);
    for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      table +=
          fmt::format("  {:4} {} | {}\n", i == 0 ? fmt::format("[{}]", k) : "",
                      padded(i < left.size() ? left[i] : ""), i < right.size() ? right[i] : "");
    }
  }
  return table;
}

std::string ReadableGaps(const ValidationSample& sample, const Tokenizer& tokenizer,
                         size_t columns) {
  return Indented(TextWithGaps(tokenizer, sample.request.ids), columns) + "\n" +
         GapTable(tokenizer, SpansOf(tokenizer, sample.target), SpansOf(tokenizer, sample.output),
                  columns);
}

std::string ReadableBeginning(const ValidationSample& sample, const Tokenizer& tokenizer,
                              size_t columns) {
  const auto part = [&](const char* name, const std::vector<int32_t>& ids) {
    return fmt::format("\n  {}\n{}", name, Indented(SampleText(tokenizer, ids), columns));
  };
  return Indented(SampleText(tokenizer, sample.request.ids), columns) +
         part("truth:", sample.target) + part("model:", sample.output);
}

}  // namespace

std::string SamplesText(std::span<const ValidationSample> samples, const Tokenizer& tokenizer,
                        const SamplesForm& form) {
  std::string text;
  for (const ValidationSample& sample : samples) {
    if (form.raw) {
      text += fmt::format(
          "input:  {}\ntarget: {}\noutput: {}\n\n", SampleText(tokenizer, sample.request.ids),
          SampleText(tokenizer, sample.target), SampleText(tokenizer, sample.output));
      continue;
    }
    const auto readable = form.goes_on ? ReadableBeginning : ReadableGaps;
    text += fmt::format("Validation example {}\n\n{}\n", WithThousands(sample.example),
                        readable(sample, tokenizer, std::clamp(form.columns, 40, 100)));
  }
  return text;
}

}  // namespace syntra
