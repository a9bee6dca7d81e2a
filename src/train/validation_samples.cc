// SPDX-License-Identifier: Apache-2.0
#include "train/validation_samples.h"

#include <algorithm>

namespace syntra {
namespace {

// Where in its share of the examples a sample stands. At this place the three samples of the quick
// start are about books, an illustrator and shoes; others of its corpus are about deaths.
constexpr double kPlaceInShare = 0.85;

ValidationSample ReadGaps(const ValidationData& data, const Tokenizer& tokenizer, int64_t example) {
  const Batch batch = data.Get(example, 1, 0, 1);
  const auto until_eos = [&](std::vector<int32_t> ids) {
    ids.erase(std::next(std::ranges::find(ids, tokenizer.eos_id())), ids.end());
    return ids;
  };
  ValidationSample sample{
      example, {until_eos(batch["encoder_ids"]), {}}, until_eos(batch["targets"]), {}};
  for (const int32_t id : sample.request.ids) {
    if (id > tokenizer.SentinelId(tokenizer.extra_ids())) sample.request.sentinels.insert(id);
  }
  return sample;
}

// The first half of the text, to be gone on with.
ValidationSample ReadBeginning(const ValidationData& data, int64_t example) {
  const Batch batch = data.Get(example, 1, 0, 1);
  const auto length = std::ranges::count(batch["decoder_segments"], 1);
  // The tokens that the decoder reads after its 0, and the last token, which it only predicts.
  const std::vector<int32_t>& read = batch["decoder_ids"];
  std::vector<int32_t> text(read.begin() + 1, read.begin() + length);
  text.push_back(batch["targets"][length - 1]);
  const auto middle = text.begin() + length / 2;
  return {example, {{text.begin(), middle}, {}}, {middle, text.end()}, {}};
}

}  // namespace

int64_t SampleIndex(int64_t i, int64_t samples, int64_t examples) {
  const double share = static_cast<double>(examples) / static_cast<double>(samples);
  return static_cast<int64_t>((static_cast<double>(i) + kPlaceInShare) * share);
}

std::vector<ValidationSample> ReadSamples(const ValidationData& data, const Tokenizer& tokenizer,
                                          int64_t count, bool goes_on) {
  count = std::min(count, data.example_count());
  std::vector<ValidationSample> samples;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t example = SampleIndex(i, count, data.example_count());
    samples.push_back(goes_on ? ReadBeginning(data, example) : ReadGaps(data, tokenizer, example));
  }
  return samples;
}

void AnswerSamples(std::span<ValidationSample> samples, BatchDecoder& decoder, Communicator& ranks,
                   const OnBatch& on_batch) {
  std::vector<DecodeRequest> requests;
  for (const ValidationSample& sample : samples) requests.push_back(sample.request);
  const std::vector<Hypotheses> outputs = decoder.Decode(requests, ranks, on_batch);
  for (size_t i = 0; i < samples.size(); ++i) samples[i].output = outputs[i].front().ids;
}

std::string SampleText(const Tokenizer& tokenizer, std::vector<int32_t> ids) {
  std::erase(ids, tokenizer.eos_id());
  return tokenizer.Decode(ids);
}

}  // namespace syntra
