// SPDX-License-Identifier: Apache-2.0
#include "cli/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/gaps.h"

namespace syntra {
namespace {

// Where in its share of the examples a sample stands. At this place the three samples of the quick
// start are about books, an illustrator and shoes; others of its corpus are about deaths.
constexpr double kPlaceInShare = 0.85;

struct Sample {
  int64_t index = 0;  // of the validation example
  DecodeRequest request;
  std::vector<int32_t> target, output;
};

Sample ReadGaps(const ValidationData& data, const Tokenizer& tokenizer, int64_t index) {
  const Batch batch = data.Get(index, 1, 0, 1);
  const auto until_eos = [&](std::vector<int32_t> ids) {
    ids.erase(std::next(std::ranges::find(ids, tokenizer.eos_id())), ids.end());
    return ids;
  };
  Sample sample{index, {until_eos(batch["encoder_ids"]), {}}, until_eos(batch["targets"]), {}};
  for (const int32_t id : sample.request.ids) {
    if (id > tokenizer.SentinelId(tokenizer.extra_ids())) sample.request.sentinels.insert(id);
  }
  return sample;
}

// The first half of the text, to be gone on with.
Sample ReadBeginning(const ValidationData& data, int64_t index) {
  const Batch batch = data.Get(index, 1, 0, 1);
  const auto length = std::ranges::count(batch["decoder_segments"], 1);
  // What the decoder reads behind its 0, and the last token, which it only gives.
  const std::vector<int32_t>& read = batch["decoder_ids"];
  std::vector<int32_t> text(read.begin() + 1, read.begin() + length);
  text.push_back(batch["targets"][length - 1]);
  const auto middle = text.begin() + length / 2;
  return {index, {{text.begin(), middle}, {}}, {middle, text.end()}, {}};
}

// All of it, where documents end inside.
std::string TextOf(const Tokenizer& tokenizer, std::vector<int32_t> ids) {
  std::erase(ids, tokenizer.eos_id());
  return tokenizer.Decode(ids);
}

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

std::string ReadableGaps(const Sample& sample, const Tokenizer& tokenizer, size_t columns) {
  return Indented(TextWithGaps(tokenizer, sample.request.ids), columns) + "\n" +
         GapTable(tokenizer, SpansOf(tokenizer, sample.target), SpansOf(tokenizer, sample.output),
                  columns);
}

std::string ReadableBeginning(const Sample& sample, const Tokenizer& tokenizer, size_t columns) {
  const auto part = [&](const char* name, const std::vector<int32_t>& ids) {
    return fmt::format("\n  {}\n{}", name, Indented(TextOf(tokenizer, ids), columns));
  };
  return Indented(TextOf(tokenizer, sample.request.ids), columns) + part("truth:", sample.target) +
         part("model:", sample.output);
}

}  // namespace

int64_t SampleIndex(int64_t i, int64_t samples, int64_t examples) {
  const double share = static_cast<double>(examples) / static_cast<double>(samples);
  return static_cast<int64_t>((static_cast<double>(i) + kPlaceInShare) * share);
}

std::string SamplesText(BatchDecoder& decoder, Communicator& ranks, const Tokenizer& tokenizer,
                        const ValidationData& data, int64_t count, const SamplesForm& form,
                        const OnBatch& on_batch) {
  count = std::min(count, data.example_count());
  std::vector<Sample> samples;
  std::vector<DecodeRequest> requests;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = SampleIndex(i, count, data.example_count());
    samples.push_back(form.goes_on ? ReadBeginning(data, index) : ReadGaps(data, tokenizer, index));
    requests.push_back(samples.back().request);
  }
  const auto outputs = decoder.Decode(requests, ranks, on_batch);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    Sample& sample = samples[i];
    sample.output = outputs[i].front().ids;
    if (form.raw) {
      text += fmt::format("input:  {}\ntarget: {}\noutput: {}\n\n",
                          TextOf(tokenizer, sample.request.ids), TextOf(tokenizer, sample.target),
                          TextOf(tokenizer, sample.output));
      continue;
    }
    const auto readable = form.goes_on ? ReadableBeginning : ReadableGaps;
    text += fmt::format("Validation example {}\n\n{}\n", WithThousands(sample.index),
                        readable(sample, tokenizer, std::clamp(form.columns, 40, 100)));
  }
  return text;
}

}  // namespace syntra
