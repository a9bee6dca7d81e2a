// SPDX-License-Identifier: Apache-2.0
#include "config/combinations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/rules.h"
#include "core/corruption_lengths.h"

namespace syntra {
namespace {

// Reports through the layer that is checked.
class Report {
 public:
  Report(const Layer& layer, const Location& fallback, Problems* problems)
      : layer_(layer), fallback_(fallback), problems_(problems) {}

  const Config& config() const { return layer_.config; }

  // `fields` are all that the check read; the problem is placed at the first that is set.
  void Add(const std::vector<std::string>& fields, const std::string& message) const {
    if (std::ranges::any_of(fields, [&](const auto& field) { return layer_.IsBroken(field); })) {
      return;
    }
    const auto set = std::ranges::find_if(
        fields, [&](const auto& field) { return layer_.locations.Find(field) != nullptr; });
    const std::string& place = set == fields.end() ? fields.front() : *set;
    AddFieldProblem(layer_, fallback_, place, message, problems_);
  }

  bool IsBroken(const std::string& field) const { return layer_.IsBroken(field); }

 private:
  const Layer& layer_;
  const Location& fallback_;
  Problems* problems_;
};

// One attention of the model: where it is set, and the longest sequence that it meets.
struct Stack {
  std::string path;
  const AttentionConfig& attention;
  int length;
  std::string length_name, length_field;
};

CorruptionLengths LongestSegment(const DataConfig& data) {
  return LengthsFor(data.input_length(), data.noise_density(), data.mean_span_length());
}

int TargetLength(const DataConfig& data) {
  const int64_t length =
      data.target_length() > 0 ? data.target_length() : LongestSegment(data).targets;
  return static_cast<int>(length);
}

template <typename Check>
void ForEachStack(const Report& report, Check check) {
  const ModelConfig& model = report.config().model();
  if (report.IsBroken("data.input_length") || report.IsBroken("data.noise_density") ||
      report.IsBroken("data.mean_span_length") || report.IsBroken("data.target_length")) {
    return;
  }
  const int inputs = report.config().data().input_length();
  const int targets = TargetLength(report.config().data());
  const bool follows = report.config().data().target_length() == 0;
  const std::string input_field = "data.input_length";
  const std::string target_field = follows ? input_field : "data.target_length";
  const std::string input_name = fmt::format("{} {}", input_field, inputs);
  const std::string target_name =
      fmt::format("{} {}", follows ? "the target length" : target_field, targets);
  const bool shared = !model.has_decoder_mixer();
  check(Stack{"model.mixer.attention", model.mixer().attention(),
              shared ? std::max(inputs, targets) : inputs,
              shared && targets > inputs ? target_name : input_name,
              shared && targets > inputs ? target_field : input_field});
  if (shared) return;
  check(Stack{"model.decoder_mixer.attention", model.decoder_mixer().attention(), targets,
              target_name + (follows ? fmt::format(" that follows from {}", input_name) : ""),
              target_field});
}

void MixersNameTheirKind(const Report& report) {
  const ModelConfig& model = report.config().model();
  const auto check = [&](bool set, const MixerConfig& mixer, const std::string& path) {
    if (set && mixer.kind_case() == MixerConfig::KIND_NOT_SET) {
      report.Add({path}, fmt::format("{} names no kind; write e.g. {} {{ attention {{}} }}", path,
                                     path.substr(path.find('.') + 1)));
    }
  };
  check(model.has_mixer(), model.mixer(), "model.mixer");
  check(model.has_decoder_mixer(), model.decoder_mixer(), "model.decoder_mixer");
}

void TermsNameTheirKind(const Report& report) {
  ForEachStack(report, [&](const Stack& stack) {
    for (int i = 0; i < stack.attention.term_size(); ++i) {
      if (stack.attention.term(i).kind_case() != ScoreTerm::KIND_NOT_SET) continue;
      const std::string path = ElementPath(stack.path + ".term", i);
      report.Add({path}, fmt::format("{} names no kind; write e.g. term {{ random {{}} }}", path));
    }
  });
}

bool HasDotProduct(const AttentionConfig& attention) {
  return std::ranges::any_of(attention.term(), &ScoreTerm::has_dot_product);
}

void OneDotProduct(const Report& report) {
  ForEachStack(report, [&](const Stack& stack) {
    int seen = 0;
    for (int i = 0; i < stack.attention.term_size(); ++i) {
      if (!stack.attention.term(i).has_dot_product() || ++seen < 2) continue;
      const std::string path = ElementPath(stack.path + ".term", i);
      report.Add({path}, fmt::format("{} is a second dot_product; remove it, or add heads", path));
    }
  });
}

void SigmoidGateHasTwoTerms(const Report& report) {
  ForEachStack(report, [&](const Stack& stack) {
    const AttentionConfig& attention = stack.attention;
    if (attention.gate() != AttentionConfig::SIGMOID || attention.term_size() == 2) return;
    report.Add(
        {stack.path + ".gate", stack.path + ".term"},
        fmt::format("{}.gate: SIGMOID weighs exactly two terms, but there {} {}; use SOFTMAX or "
                    "SUM, or give two terms",
                    stack.path, attention.term_size() == 1 ? "is" : "are", attention.term_size()));
  });
}

void InitialAlphaHasItsGate(const Report& report) {
  ForEachStack(report, [&](const Stack& stack) {
    const AttentionConfig& attention = stack.attention;
    if (attention.gate() == AttentionConfig::SIGMOID || attention.initial_alpha() == 0) return;
    report.Add({stack.path + ".initial_alpha"},
               fmt::format("{}.initial_alpha has no effect with gate {}; set gate: SIGMOID",
                           stack.path, AttentionConfig::Gate_Name(attention.gate())));
  });
}

// The longest sequence that a term can score, with the fields that say so; no fields: any.
struct TermLimit {
  int64_t length = 0;
  std::string field;
  std::string text;
};

TermLimit LimitOf(const ScoreTerm& term, const std::string& path) {
  const auto table = [&](const char* kind, int length) {
    const std::string field = fmt::format("{}.{}.max_length", path, kind);
    return TermLimit{length, field, fmt::format("{} {}", field, length)};
  };
  switch (term.kind_case()) {
    case ScoreTerm::kRandom:
      return table("random", term.random().max_length());
    case ScoreTerm::kFactorizedRandom:
      return table("factorized_random", term.factorized_random().max_length());
    case ScoreTerm::kDense:
      return table("dense", term.dense().max_length());
    case ScoreTerm::kFactorizedDense: {
      const FactorizedDenseTerm& dense = term.factorized_dense();
      const int64_t product = int64_t{dense.a()} * dense.b();
      return {product, path + ".factorized_dense",
              fmt::format("{}.factorized_dense a * b = {} * {} = {}", path, dense.a(), dense.b(),
                          product)};
    }
    default:
      return {};
  }
}

void TablesCoverTheSequence(const Report& report) {
  ForEachStack(report, [&](const Stack& stack) {
    for (int i = 0; i < stack.attention.term_size(); ++i) {
      const TermLimit limit =
          LimitOf(stack.attention.term(i), ElementPath(stack.path + ".term", i));
      if (limit.field.empty() || limit.length >= stack.length) continue;
      report.Add({limit.field, stack.length_field},
                 fmt::format("{} is shorter than {}; make it at least {}, or lower {}", limit.text,
                             stack.length_name, stack.length, stack.length_field));
    }
  });
}

// A hidden layer that is also the query projection has the query's width.
void SharedQueryHasItsWidth(const Report& report) {
  ForEachStack(report, [&](const Stack& stack) {
    if (!HasDotProduct(stack.attention)) return;
    const int head_size = stack.attention.head_size();
    const auto check = [&](const std::string& path, bool shares, int hidden) {
      if (!shares || hidden == 0 || hidden == head_size) return;
      report.Add({path + ".hidden", path + ".share_query", stack.path + ".head_size"},
                 fmt::format("{}.hidden {} cannot share the query projection of head_size {}; set "
                             "hidden: 0 or share_query: false",
                             path, hidden, head_size));
    };
    for (int i = 0; i < stack.attention.term_size(); ++i) {
      const ScoreTerm& term = stack.attention.term(i);
      const std::string path = ElementPath(stack.path + ".term", i);
      if (term.has_dense()) {
        check(path + ".dense", term.dense().share_query(), term.dense().hidden());
      } else if (term.has_factorized_dense()) {
        check(path + ".factorized_dense", term.factorized_dense().share_query(),
              term.factorized_dense().hidden());
      }
    }
  });
}

void DeviationIsUsed(const Report& report) {
  ForEachStack(report, [&](const Stack& stack) {
    const auto check = [&](const std::string& path, const auto& term) {
      const auto& unset = std::decay_t<decltype(term)>::default_instance();
      if (term.deviation() == unset.deviation()) return;
      if (term.initialization() == TableInitialization::NORMAL) return;
      report.Add({path + ".deviation", path + ".initialization"},
                 fmt::format("{}.deviation has no effect with {}; set initialization: NORMAL or "
                             "remove it",
                             path, TableInitialization_Name(term.initialization())));
    };
    for (int i = 0; i < stack.attention.term_size(); ++i) {
      const ScoreTerm& term = stack.attention.term(i);
      const std::string path = ElementPath(stack.path + ".term", i);
      if (term.has_random()) check(path + ".random", term.random());
      if (term.has_factorized_random()) {
        check(path + ".factorized_random", term.factorized_random());
      }
    }
  });
}

void VocabularyIsEven(const Report& report) {
  const int size = report.config().model().vocabulary_size();
  if (size % 2 == 0) return;
  report.Add(
      {"model.vocabulary_size"},
      fmt::format("model.vocabulary_size {} is odd; pad it to an even size, best to a multiple "
                  "of 128 ({})",
                  size, (int64_t{size} + 127) / 128 * 128));
}

void VocabularyHoldsSentinels(const Report& report) {
  const int size = report.config().model().vocabulary_size();
  const int sentinels = report.config().data().extra_ids();
  if (!report.config().has_data() || size > sentinels) return;
  report.Add({"model.vocabulary_size", "data.extra_ids"},
             fmt::format("model.vocabulary_size {} has no room for data.extra_ids {} and the "
                         "tokenizer's pieces; enlarge it",
                         size, sentinels));
}

void RelativeBiasBuckets(const Report& report) {
  const RelativeBiasConfig& bias = report.config().model().relative_bias();
  const std::string path = "model.relative_bias";
  if (bias.buckets() % 2 != 0) {
    report.Add({path + ".buckets"},
               fmt::format("{}.buckets {} must be even: the encoder uses half for each direction",
                           path, bias.buckets()));
  } else if (bias.max_distance() <= bias.buckets() / 2) {
    report.Add({path + ".max_distance", path + ".buckets"},
               fmt::format("{}.max_distance {} must be larger than half of buckets {}", path,
                           bias.max_distance(), bias.buckets()));
  }
}

// Tasks have targets of their own, whatever corpora the configuration names beside them.
bool CorruptsText(const DataConfig& data) {
  if (data.task_size() > 0) return false;
  return data.target_length() == 0 || data.train_size() > 0 || data.validation_size() > 0;
}

void CorruptedTargetsFit(const Report& report) {
  const std::vector<std::string> fields = {"data.target_length", "data.input_length",
                                           "data.noise_density", "data.mean_span_length"};
  if (std::ranges::any_of(fields, [&](const auto& field) { return report.IsBroken(field); })) {
    return;
  }
  const DataConfig& data = report.config().data();
  const int64_t targets = LongestSegment(data).targets;
  if (!CorruptsText(data) || TargetLength(data) >= targets) return;
  report.Add(fields, fmt::format("data.target_length {} has no room for the {} targets that span "
                                 "corruption makes of data.input_length {}; leave it out, and it "
                                 "follows from the input length",
                                 data.target_length(), targets, data.input_length()));
}

void SentinelsSuffice(const Report& report) {
  const std::vector<std::string> fields = {"data.input_length", "data.noise_density",
                                           "data.mean_span_length", "data.extra_ids"};
  if (!CorruptsText(report.config().data())) return;
  if (std::ranges::any_of(fields, [&](const auto& field) { return report.IsBroken(field); })) {
    return;
  }
  const DataConfig& data = report.config().data();
  const CorruptionLengths lengths = LongestSegment(data);
  if (lengths.spans > data.extra_ids()) {
    report.Add(fields,
               fmt::format("data.input_length {} is corrupted in {} spans, but data.extra_ids "
                           "gives {} sentinels; set extra_ids to at least {}, or shorten "
                           "the input",
                           data.input_length(), lengths.spans, data.extra_ids(), lengths.spans));
  }
}

void MicroBatchesFillTheBatch(const Report& report) {
  const TrainConfig& train = report.config().train();
  if (train.micro_batch_size() <= 0 || train.batch_size() % train.micro_batch_size() == 0) return;
  report.Add(
      {"train.micro_batch_size", "train.batch_size"},
      fmt::format("train.batch_size {} is not a multiple of train.micro_batch_size {}; use a "
                  "divisor of it",
                  train.batch_size(), train.micro_batch_size()));
}

// Otherwise the micro-batch would follow the number of ranks.
void ExactReductionFixesTheMicroBatch(const Report& report) {
  const TrainConfig& train = report.config().train();
  if (train.reduction() != TrainConfig::EXACT || train.micro_batch_size() > 0) return;
  report.Add({"train.reduction", "train.micro_batch_size"},
             fmt::format("train.reduction EXACT needs a train.micro_batch_size, the examples of "
                         "each gradient that is added; set a divisor of train.batch_size {}",
                         train.batch_size()));
}

void ScheduleFalls(const Report& report) {
  const ScheduleConfig& schedule = report.config().optimizer().schedule();
  const std::string path = "optimizer.schedule";
  if (schedule.kind() != ScheduleConfig::LINEAR && schedule.kind() != ScheduleConfig::COSINE) {
    return;
  }
  const std::string& kind = ScheduleConfig::Kind_Name(schedule.kind());
  if (schedule.final_rate() > schedule.rate()) {
    report.Add({path + ".final_rate", path + ".rate", path + ".kind"},
               fmt::format("{}.final_rate {} is above rate {}; a {} schedule falls", path,
                           schedule.final_rate(), schedule.rate(), kind));
  }
  const int64_t steps = report.config().train().steps();
  if (schedule.warmup_steps() >= steps) {
    report.Add({path + ".warmup_steps", "train.steps", path + ".kind"},
               fmt::format("{}.warmup_steps {} leaves no step to fall in train.steps {}; lower it "
                           "for a {} schedule",
                           path, schedule.warmup_steps(), steps, kind));
  }
}

void MilestonesAreCheckpoints(const Report& report) {
  const CheckpointConfig& checkpoint = report.config().checkpoint();
  const int64_t every = checkpoint.every(), milestone = checkpoint.milestone_every();
  if (milestone <= 0 || (every > 0 && milestone % every == 0)) return;
  report.Add(
      {"checkpoint.milestone_every", "checkpoint.every"},
      fmt::format("checkpoint.milestone_every {} is not a multiple of checkpoint.every {}, so "
                  "those steps are not saved; use a multiple",
                  milestone, every));
}

// Far above what any machine can train, and far below where sizes could no longer be counted.
constexpr int64_t kMostTokens = int64_t{1} << 30;
constexpr double kMostActivations = 0x1p50;

struct LengthField {
  const char* field;
  int64_t length;
};

// Targets that follow from the inputs are about as long at most.
LengthField LongerSide(const DataConfig& data) {
  if (data.target_length() > data.input_length()) {
    return {"data.target_length", data.target_length()};
  }
  return {"data.input_length", data.input_length()};
}

void TokensCanBeCounted(const Report& report) {
  const LengthField longer = LongerSide(report.config().data());
  const auto check = [&](const char* field, int64_t rows) {
    const int64_t tokens = rows * longer.length;
    if (tokens <= kMostTokens) return;
    report.Add({field, longer.field},
               fmt::format("{} {} of {} {} gives {} tokens; at most {} are allowed", field, rows,
                           longer.field, longer.length, WithThousands(tokens),
                           WithThousands(kMostTokens)));
  };
  check("train.batch_size", report.config().train().batch_size());
  check("evaluation.batch_size", report.config().evaluation().batch_size());
}

// One of the vectors that a layer holds for every token, and the fields that make it so wide.
struct TokenVector {
  int64_t elements = 0;
  std::vector<std::string> fields;
};

std::vector<TokenVector> VectorsOfAToken(const ModelConfig& model) {
  std::vector<TokenVector> vectors = {{model.width(), {"model.width"}},
                                      {model.feed_forward().width(), {"model.feed_forward.width"}}};
  const auto add = [&](const std::string& path, int64_t heads, const std::string& size_field,
                       int64_t size) {
    vectors.push_back({heads * size, {path + ".heads", size_field}});
  };
  const CrossAttentionConfig& cross = model.cross_attention();
  add("model.cross_attention", cross.heads(), "model.cross_attention.head_size", cross.head_size());
  for (const bool decoder : {false, true}) {
    const std::string path = decoder ? "model.decoder_mixer.attention" : "model.mixer.attention";
    const AttentionConfig& attention =
        (decoder ? model.decoder_mixer() : model.mixer()).attention();
    add(path, attention.heads(), path + ".head_size", attention.head_size());
    for (int i = 0; i < attention.term_size(); ++i) {
      const std::string term = ElementPath(path + ".term", i);
      const DenseTerm& dense = attention.term(i).dense();
      const FactorizedDenseTerm& factorized = attention.term(i).factorized_dense();
      add(path, attention.heads(), term + ".dense.hidden", dense.hidden());
      add(path, attention.heads(), term + ".factorized_dense.hidden", factorized.hidden());
      if (!attention.term(i).has_factorized_dense()) continue;
      add(path, attention.heads(), term + ".factorized_dense.a", factorized.a());
      add(path, attention.heads(), term + ".factorized_dense.b", factorized.b());
    }
  }
  return vectors;
}

void ActivationsCanBeCounted(const Report& report) {
  const Config& config = report.config();
  const int64_t layers = int64_t{config.model().encoder_layers()} + config.model().decoder_layers();
  const bool cut = config.train().micro_batch_size() > 0;
  const int64_t rows = cut ? config.train().micro_batch_size() : config.train().batch_size();
  const LengthField longer = LongerSide(config.data());
  const double tokens = static_cast<double>(rows) * static_cast<double>(longer.length);
  const std::vector<TokenVector> vectors = VectorsOfAToken(config.model());
  const TokenVector& widest = *std::ranges::max_element(vectors, {}, &TokenVector::elements);
  if (tokens * static_cast<double>(widest.elements) * static_cast<double>(layers) <=
      kMostActivations) {
    return;
  }
  std::vector<std::string> fields = widest.fields;
  const std::string rows_field = cut ? "train.micro_batch_size" : "train.batch_size";
  for (const char* field : {longer.field, "model.encoder_layers", "model.decoder_layers"}) {
    fields.push_back(field);
  }
  fields.push_back(rows_field);
  report.Add(fields, fmt::format("{} {} of {} {} in {} layers with {} elements a token ({}) are "
                                 "more than 2^50 values; lower one of them",
                                 rows_field, rows, longer.field, longer.length, layers,
                                 WithThousands(widest.elements), Join(widest.fields, ", ")));
}

void StrategyGivesTheOutputs(const Report& report) {
  const DecodingConfig& decoding = report.config().decoding();
  const int outputs = decoding.outputs();
  if (decoding.has_sample()) return;
  if (decoding.has_beam() && outputs > decoding.beam().size()) {
    report.Add({"decoding.outputs", "decoding.beam.size"},
               fmt::format("a beam of {} does not give {} outputs; raise decoding.beam.size or "
                           "lower decoding.outputs",
                           decoding.beam().size(), outputs));
  } else if (!decoding.has_beam() && outputs > 1) {
    report.Add({"decoding.outputs"},
               fmt::format("greedy decoding gives one output, not {}; set decoding.beam or "
                           "decoding.sample",
                           outputs));
  }
}

constexpr void (*kCombinations[])(const Report&) = {
    MixersNameTheirKind,
    TermsNameTheirKind,
    OneDotProduct,
    SigmoidGateHasTwoTerms,
    InitialAlphaHasItsGate,
    TablesCoverTheSequence,
    SharedQueryHasItsWidth,
    DeviationIsUsed,
    VocabularyIsEven,
    VocabularyHoldsSentinels,
    RelativeBiasBuckets,
    SentinelsSuffice,
    CorruptedTargetsFit,
    MicroBatchesFillTheBatch,
    ScheduleFalls,
    MilestonesAreCheckpoints,
    ExactReductionFixesTheMicroBatch,
    TokensCanBeCounted,
    ActivationsCanBeCounted,
    StrategyGivesTheOutputs,
};

}  // namespace

void CheckCombinations(const Layer& layer, const Location& fallback, Problems* problems) {
  const Report report(layer, fallback, problems);
  for (const auto& check : kCombinations) check(report);
}

}  // namespace syntra
