// SPDX-License-Identifier: Apache-2.0
#include "convert/huggingface_names.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "model/programs.h"

namespace syntra {
namespace {

constexpr size_t kMostNamed = 8;

enum class Count { kOnce, kPerStack, kPerLayer, kPerDecoderLayer };

bool Always(const ModelConfig&) { return true; }
bool IsUntied(const ModelConfig& model) { return !model.tied_embeddings(); }
bool IsGated(const ModelConfig& model) {
  return model.feed_forward().activation() == FeedForwardConfig::GATED_GELU;
}
bool IsPlain(const ModelConfig& model) { return !IsGated(model); }

// {stack} is encoder or decoder, {layer} counts from 0, {last} is the sublayer of the feed-forward
// network: 1 in the encoder, 2 in the decoder.
struct NamePair {
  const char* ours;
  const char* theirs;
  bool transposed;
  Count count = Count::kPerLayer;
  bool (*exists)(const ModelConfig&) = Always;
};

constexpr NamePair kNames[] = {
    {"embedding", "shared.weight", false, Count::kOnce},
    {"output_embedding", "lm_head.weight", false, Count::kOnce, IsUntied},
    {"{stack}/relative_bias",
     "{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", true,
     Count::kPerStack},
    {"{stack}/norm", "{stack}.final_layer_norm.weight", false, Count::kPerStack},
    {"{stack}/layer_{layer:02}/mixer/norm", "{stack}.block.{layer}.layer.0.layer_norm.weight",
     false},
    {"{stack}/layer_{layer:02}/mixer/query", "{stack}.block.{layer}.layer.0.SelfAttention.q.weight",
     true},
    {"{stack}/layer_{layer:02}/mixer/key", "{stack}.block.{layer}.layer.0.SelfAttention.k.weight",
     true},
    {"{stack}/layer_{layer:02}/mixer/value", "{stack}.block.{layer}.layer.0.SelfAttention.v.weight",
     true},
    {"{stack}/layer_{layer:02}/mixer/output",
     "{stack}.block.{layer}.layer.0.SelfAttention.o.weight", true},
    {"{stack}/layer_{layer:02}/cross_attention/norm",
     "{stack}.block.{layer}.layer.1.layer_norm.weight", false, Count::kPerDecoderLayer},
    {"{stack}/layer_{layer:02}/cross_attention/query",
     "{stack}.block.{layer}.layer.1.EncDecAttention.q.weight", true, Count::kPerDecoderLayer},
    {"{stack}/layer_{layer:02}/cross_attention/key",
     "{stack}.block.{layer}.layer.1.EncDecAttention.k.weight", true, Count::kPerDecoderLayer},
    {"{stack}/layer_{layer:02}/cross_attention/value",
     "{stack}.block.{layer}.layer.1.EncDecAttention.v.weight", true, Count::kPerDecoderLayer},
    {"{stack}/layer_{layer:02}/cross_attention/output",
     "{stack}.block.{layer}.layer.1.EncDecAttention.o.weight", true, Count::kPerDecoderLayer},
    {"{stack}/layer_{layer:02}/feed_forward/norm",
     "{stack}.block.{layer}.layer.{last}.layer_norm.weight", false},
    {"{stack}/layer_{layer:02}/feed_forward/input",
     "{stack}.block.{layer}.layer.{last}.DenseReluDense.wi.weight", true, Count::kPerLayer,
     IsPlain},
    {"{stack}/layer_{layer:02}/feed_forward/input",
     "{stack}.block.{layer}.layer.{last}.DenseReluDense.wi_0.weight", true, Count::kPerLayer,
     IsGated},
    {"{stack}/layer_{layer:02}/feed_forward/gate",
     "{stack}.block.{layer}.layer.{last}.DenseReluDense.wi_1.weight", true, Count::kPerLayer,
     IsGated},
    {"{stack}/layer_{layer:02}/feed_forward/output",
     "{stack}.block.{layer}.layer.{last}.DenseReluDense.wo.weight", true},
};

// In files of early versions of transformers; no version uses it.
constexpr const char* kUnused[] = {
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};

std::vector<std::string> AliasesOf(const std::string& ours, const ModelConfig& model) {
  if (ours != "embedding") return {};
  std::vector<std::string> aliases{"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  if (model.tied_embeddings()) aliases.push_back("lm_head.weight");
  return aliases;
}

void AddNames(const NamePair& pair, const char* stack, int layers,
              std::vector<HuggingFaceName>* names) {
  for (int layer = 0; layer < layers; ++layer) {
    const auto fill = [&](const char* pattern) {
      return fmt::format(fmt::runtime(pattern), fmt::arg("stack", stack), fmt::arg("layer", layer),
                         fmt::arg("last", stack == std::string_view("encoder") ? 1 : 2));
    };
    names->push_back({fill(pair.ours), fill(pair.theirs), pair.transposed, {}});
  }
}

TensorType TransposedIf(const TensorType& type, bool transposed) {
  if (!transposed) return type;
  return {type.dtype, {type.shape[1], type.shape[0]}};
}

// `to` [columns, rows] from `from` [rows, columns], in blocks that the cache holds.
void TransposeInto(std::span<const float> from, int64_t rows, int64_t columns,
                   std::span<float> to) {
  constexpr int64_t kBlock = 32;
  for (int64_t i = 0; i < rows; i += kBlock) {
    for (int64_t j = 0; j < columns; j += kBlock) {
      for (int64_t a = i; a < std::min(i + kBlock, rows); ++a) {
        for (int64_t b = j; b < std::min(j + kBlock, columns); ++b) {
          to[b * rows + a] = from[a * columns + b];
        }
      }
    }
  }
}

// Tensors of another source under other names, some of them transposed.
class RenamedSource : public TensorSource {
 public:
  explicit RenamedSource(TensorSource& inner) : inner_(inner) {}

  void Read(std::string_view name, std::span<float> values) override {
    const auto it = places_.find(name);
    SYNTRA_CHECK(it != places_.end(), "no tensor {}", name);
    const auto& [inner_name, transposed] = it->second;
    if (!transposed) return inner_.Read(inner_name, values);
    const Shape& shape = inner_.tensors().find(inner_name)->second.shape;
    std::vector<float> stored(values.size());
    inner_.Read(inner_name, stored);
    TransposeInto(stored, shape[0], shape[1], values);
  }

  void Add(const std::string& name, const std::string& inner_name, bool transposed) {
    tensors_.emplace(name, TransposedIf(inner_.tensors().find(inner_name)->second, transposed));
    places_.emplace(name, std::pair(inner_name, transposed));
  }

 private:
  TensorSource& inner_;
  std::map<std::string, std::pair<std::string, bool>, std::less<>> places_;
};

class OwningRenamedSource final : public RenamedSource {
 public:
  explicit OwningRenamedSource(std::unique_ptr<TensorSource> inner)
      : RenamedSource(*inner), owned_(std::move(inner)) {}

 private:
  std::unique_ptr<TensorSource> owned_;
};

class SourceOfOneTokenMore final : public TensorSource {
 public:
  SourceOfOneTokenMore(std::unique_ptr<TensorSource> inner, int64_t rows)
      : inner_(std::move(inner)) {
    tensors_ = inner_->tensors();
    for (const char* name : kRowsOfTokens) {
      const auto found = tensors_.find(name);
      if (found == tensors_.end()) continue;
      Shape& shape = found->second.shape;
      if (shape.rank() != 2 || shape[0] != rows) continue;
      shape = {rows + 1, shape[1]};
      longer_.insert(name);
    }
  }

  void Read(std::string_view name, std::span<float> values) override {
    if (!longer_.contains(name)) return inner_->Read(name, values);
    const auto width = static_cast<size_t>(tensors_.find(name)->second.shape[1]);
    inner_->Read(name, values.first(values.size() - width));
    std::ranges::copy(values.first(width), values.last(width).begin());
  }

 private:
  static constexpr const char* kRowsOfTokens[] = {"shared.weight", "encoder.embed_tokens.weight",
                                                  "decoder.embed_tokens.weight", "lm_head.weight"};

  std::unique_ptr<TensorSource> inner_;
  std::set<std::string, std::less<>> longer_;
};

bool Same(TensorSource& source, const std::string& a, const std::string& b) {
  const auto& type = source.tensors().find(a)->second;
  if (type != source.tensors().find(b)->second) return false;
  std::vector<float> left(type.shape.size()), right(type.shape.size());
  source.Read(a, left);
  source.Read(b, right);
  return std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

// The tensor that stands for the parameter; "" if there is none. All that are there must be equal.
std::string Choose(TensorSource& theirs, const HuggingFaceName& name) {
  std::string chosen;
  std::vector<std::string> candidates{name.theirs};
  candidates.insert(candidates.end(), name.aliases.begin(), name.aliases.end());
  for (const std::string& candidate : candidates) {
    if (!theirs.tensors().contains(candidate)) continue;
    if (chosen.empty()) {
      chosen = candidate;
    } else if (!Same(theirs, chosen, candidate)) {
      Fail(ExitCode::kCheckpoint,
           "{} and {} differ, but by config.json they are the same matrix; its "
           "tie_word_embeddings is not what the weights were saved with",
           chosen, candidate);
    }
  }
  return chosen;
}

void AddListed(const char* what, const std::vector<std::string>& names, std::string* text) {
  if (names.empty()) return;
  *text += fmt::format("\n  {} ({}): {}", what, names.size(), JoinFirst(names, kMostNamed));
}

}  // namespace

std::vector<HuggingFaceName> HuggingFaceNames(const ModelConfig& model) {
  std::vector<HuggingFaceName> names;
  for (const NamePair& pair : kNames) {
    if (!pair.exists(model)) continue;
    const bool layered = pair.count == Count::kPerLayer || pair.count == Count::kPerDecoderLayer;
    if (pair.count == Count::kPerLayer || pair.count == Count::kPerStack) {
      AddNames(pair, "encoder", layered ? model.encoder_layers() : 1, &names);
    }
    AddNames(pair, "decoder", layered ? model.decoder_layers() : 1, &names);
  }
  for (HuggingFaceName& name : names) name.aliases = AliasesOf(name.ours, model);
  return names;
}

std::unique_ptr<TensorSource> FromHuggingFaceNames(std::unique_ptr<TensorSource> theirs,
                                                   const ModelConfig& model,
                                                   bool shares_embeddings) {
  TensorSource& stored = *theirs;
  auto renamed = std::make_unique<OwningRenamedSource>(std::move(theirs));
  const ParameterStore parameters = DeclareParameters(Model(model));
  std::set<std::string> known(std::begin(kUnused), std::end(kUnused));
  std::vector<std::string> missing, others, unknown;
  std::string embedding;  // the tensor that is the first in the list
  for (const HuggingFaceName& name : HuggingFaceNames(model)) {
    known.insert(name.theirs);
    known.insert(name.aliases.begin(), name.aliases.end());
    std::string chosen = Choose(stored, name);
    if (name.ours == "embedding") embedding = chosen;
    if (name.ours == "output_embedding" && chosen.empty() && shares_embeddings) chosen = embedding;
    const auto found = stored.tensors().find(chosen);
    const TensorType type{DType::kF32, parameters.Get(name.ours).shape};
    if (found == stored.tensors().end()) {
      missing.push_back(name.theirs);
    } else if (found->second != TransposedIf(type, name.transposed)) {
      others.push_back(fmt::format("{} is {} there, {} by config.json", chosen,
                                   ToString(found->second.shape),
                                   ToString(TransposedIf(type, name.transposed).shape)));
    } else {
      renamed->Add(name.ours, chosen, name.transposed);
    }
  }
  for (const auto& [name, type] : stored.tensors()) {
    if (!known.contains(name)) unknown.push_back(Printable(name, 80));
  }
  std::string problems;
  AddListed("missing", missing, &problems);
  AddListed("of another shape", others, &problems);
  AddListed("unknown", unknown, &problems);
  if (!problems.empty()) {
    Fail(ExitCode::kCheckpoint, "the tensors are not those of the T5 that config.json describes:{}",
         problems);
  }
  return renamed;
}

std::unique_ptr<TensorSource> WithAnotherToken(std::unique_ptr<TensorSource> theirs, int64_t rows) {
  return std::make_unique<SourceOfOneTokenMore>(std::move(theirs), rows);
}

std::unique_ptr<TensorSource> ToHuggingFaceNames(TensorSource& ours, const ModelConfig& model) {
  auto renamed = std::make_unique<RenamedSource>(ours);
  for (const HuggingFaceName& name : HuggingFaceNames(model)) {
    renamed->Add(name.theirs, name.ours, name.transposed);
  }
  SYNTRA_CHECK(renamed->tensors().size() == ours.tensors().size(),
               "{} of {} parameters have a name in transformers", renamed->tensors().size(),
               ours.tensors().size());
  return renamed;
}

}  // namespace syntra
